//! Loads and stores of whole words, straight between memory and registers.
//!
//! Addresses are compared as 32-bit distances from the start of the memory that holds the first lane's: all lanes at
//! once, and eight to a vector of the host. That takes the place of `Reach::each_space`, whose 64-bit addresses are
//! first told apart by their pattern. Whatever is not inside that memory, or not aligned, is left to it.

use warploom_isa::{Dst, Reg, Space};

use crate::kit::lane_mask::LaneMask;
use crate::lanes::frequent::Row;
use crate::lanes::{Registers, all_lanes, spread};
use crate::memory::store::Memory;
use crate::straight::Reached;

/// Words of the largest access.
pub(super) const MAX_WORDS: usize = 4;

/// Lanes in a row that mostly read words side by side, or one word, even if not the whole warp does: blocks of threads
/// have sides of 8 or 16.
const RUN: usize = 8;

/// A load or store of `count` words.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) space: Space,
    pub(super) count: usize,
    /// The base address has two rows.
    pub(super) wide: bool,
    /// Bytes to add to the base, signed.
    pub(super) offset: u32,
    pub(super) base: Row,
    /// Registers that a load writes, and values that a store takes.
    pub(super) rows: [Option<Row>; MAX_WORDS],
    /// The allocation in which the instruction last found its lanes.
    pub(super) hint: usize,
}

impl Default for Words {
    fn default() -> Self {
        Words {
            space: Space::Global,
            count: 0,
            wide: false,
            offset: 0,
            base: Row::default(),
            rows: [None; MAX_WORDS],
            hint: 0,
        }
    }
}

/// Finds the lanes' words: the number of each lane's first one, from the start of the piece of memory on, or of any of
/// the piece in lanes that take no part. Returns the allocation, in global memory; `None` if the words are not all in
/// one piece of memory, and aligned.
#[inline(always)]
fn find_places<const N: usize>(
    words: &mut Words,
    reached: &Reached<'_, N>,
    constants: &[[u32; N]],
    mask: LaneMask,
    places: &mut [u32; N],
) -> Option<usize> {
    let registers = reached.registers.words as &[_];
    let (low, high) = (words.base.lanes(registers, constants), words.base.next().lanes(registers, constants));
    let first = mask.lowest() % N;
    let offset = words.offset as i32 as i64 as u64;
    let (mut at, mut base) = (0, 0);
    let bytes = match words.space {
        Space::Global | Space::Generic => {
            let address = match words.wide {
                true => (u64::from(low[first]) | u64::from(high[first]) << 32).wrapping_add(offset),
                false => u64::from(low[first].wrapping_add(words.offset)),
            };
            at = find(reached.memory, &mut words.hint, address)?;
            let (start, bytes) = reached.memory.allocation(at);
            base = start;
            bytes.len() as u64
        }
        Space::Shared => reached.shared.len() as u64,
        Space::Const => reached.constants.len() as u64,
        Space::Param => reached.params.len() as u64,
        Space::Local => reached.local.1,
        Space::Cluster => return None,
    };
    let size = 4 * words.count as u64;
    if bytes < size || base & (size - 1) != 0 {
        return None;
    }
    let mut inside = Inside { start: base, ahead: 0, last: bytes - size, size: size as u32 };
    if words.wide {
        inside.start = base.wrapping_sub(offset);
        // Below zero there is nothing that a register would hold.
        if inside.start > inside.start.wrapping_add(bytes) {
            inside.ahead = inside.start.wrapping_neg() as u32;
            (inside.start, inside.last) = (0, inside.last.checked_sub(inside.start.wrapping_neg())?);
        }
    }
    // All of it must have the same high word.
    if (inside.start & u64::from(u32::MAX)) + bytes > 1 << 32 {
        return None;
    }
    let mut high = high;
    if !words.wide {
        if base >> 32 != 0 {
            return None;
        }
        // 32-bit addresses wrap as 32-bit registers do.
        inside.start = u64::from((base as u32).wrapping_sub(words.offset));
        high = const { &[0; N] };
    }
    let good = match mask & all_lanes::<N>() == all_lanes::<N>() {
        true => inside.places::<N, true>(low, high, const { &[u32::MAX; N] }, places),
        false => inside.places::<N, false>(low, high, &spread(mask.0), places),
    };
    good.then_some(at)
}

/// Values of address registers that lead to a piece of memory.
struct Inside {
    /// The first one.
    start: u64,
    /// Where in the piece that is.
    ahead: u32,
    /// How far behind the first one the last one is.
    last: u64,
    /// Bytes of a lane's words.
    size: u32,
}

impl Inside {
    /// Puts the place of every lane's word. Returns whether all are inside and aligned, of the lanes that take part:
    /// the active ones, whose words are all ones, and with `ALL` every one.
    #[inline(always)]
    fn places<const N: usize, const ALL: bool>(
        &self,
        low: &[u32; N],
        high: &[u32; N],
        active: &[u32; N],
        places: &mut [u32; N],
    ) -> bool {
        let (start_low, start_high) = (self.start as u32, (self.start >> 32) as u32);
        let (last, unaligned) = (self.last as u32, self.size - 1);
        let mut bad = 0;
        for lane in 0..N {
            let active = if ALL { u32::MAX } else { active[lane] };
            let distance = low[lane].wrapping_sub(start_low) & active;
            let place = distance.wrapping_add(self.ahead);
            let outside = u32::from(distance > last).wrapping_neg();
            bad |= ((high[lane] ^ start_high) | (place & unaligned)) & active | outside;
            places[lane] = place / 4;
        }
        bad == 0
    }
}

/// The allocation that holds an address: mostly the one that the instruction found last.
#[inline(always)]
fn find(memory: &Memory, hint: &mut usize, address: u64) -> Option<usize> {
    if !memory.holds(*hint, address) {
        *hint = memory.find(address)?;
    }
    Some(*hint)
}

/// How the words of the lanes lie, in every [`RUN`] of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    Same,
    Consecutive,
    Scattered,
}

impl Runs {
    #[inline(always)]
    fn of<const N: usize>(places: &[u32; N]) -> Runs {
        // Lane by lane of the runs, so that there is one test at the end and not one for each run.
        let (mut differ, mut gaps) = ([0; RUN], [0; RUN]);
        for places in places.as_chunks::<RUN>().0 {
            for lane in 0..RUN {
                differ[lane] |= places[lane] ^ places[0];
                gaps[lane] |= places[lane] ^ places[0].wrapping_add(lane as u32);
            }
        }
        if gaps == [0; RUN] {
            Runs::Consecutive
        } else if differ == [0; RUN] {
            Runs::Same
        } else {
            Runs::Scattered
        }
    }
}

/// Loads words into registers. Returns false, and does nothing, if that is not for a straight run.
#[inline(always)]
pub(super) fn load<const N: usize>(
    words: &mut Words,
    reached: &mut Reached<'_, N>,
    constants: &[[u32; N]],
    mask: LaneMask,
) -> bool {
    let mut places = [0; N];
    let Some(at) = find_places(words, reached, constants, mask, &mut places) else { return false };
    let Reached { registers, local, memory, shared, .. } = reached;
    let bytes = match words.space {
        Space::Global | Space::Generic => memory.allocation(at).1,
        Space::Shared => &**shared,
        Space::Const => reached.constants,
        Space::Param => reached.params,
        Space::Local => {
            load_local(words, &places, registers, local.0, mask);
            return true;
        }
        Space::Cluster => return false,
    };
    let data = bytes.as_chunks::<4>().0;
    if words.count == 1 {
        if let Some(row) = words.rows[0] {
            put(registers, row, &gather(data, &places), mask);
        }
        return true;
    }
    let first = places[0];
    let differ = places.iter().fold(0, |differ, place| differ | (place ^ first));
    for (word, row) in words.rows.iter().enumerate().take(words.count) {
        let Some(row) = row else { continue };
        let mut values = [u32::from_le_bytes(data[first as usize + word]); N];
        if differ != 0 {
            for (value, &place) in values.iter_mut().zip(&places) {
                *value = u32::from_le_bytes(data[place as usize + word]);
            }
        }
        put(registers, *row, &values, mask);
    }
    true
}

#[inline(always)]
fn put<const N: usize>(registers: &mut Registers<'_, N>, row: Row, values: &[u32; N], mask: LaneMask) {
    registers.write32(Dst::Reg(Reg(row.register())), values, mask);
}

#[inline(always)]
fn gather<const N: usize>(data: &[[u8; 4]], places: &[u32; N]) -> [u32; N] {
    let mut out = [0; N];
    let (all, _) = out.as_chunks_mut::<RUN>();
    let runs = all.iter_mut().zip(places.as_chunks::<RUN>().0);
    match Runs::of(places) {
        Runs::Consecutive => {
            for (values, places) in runs {
                let first = places[0] as usize;
                for (value, word) in values.iter_mut().zip(&data[first..first + RUN]) {
                    *value = u32::from_le_bytes(*word);
                }
            }
        }
        Runs::Same => {
            for (values, places) in runs {
                *values = [u32::from_le_bytes(data[places[0] as usize]); RUN];
            }
        }
        Runs::Scattered => {
            for (value, &place) in out.iter_mut().zip(places) {
                *value = u32::from_le_bytes(data[place as usize]);
            }
        }
    }
    out
}

/// Every lane has words of its own in local memory.
#[inline(never)]
fn load_local<const N: usize>(
    words: &Words,
    places: &[u32; N],
    registers: &mut Registers<'_, N>,
    local: &[[u32; N]],
    mask: LaneMask,
) {
    let first = places[0];
    let differ = places.iter().fold(0, |differ, place| differ | (place ^ first));
    for (word, row) in words.rows.iter().enumerate().take(words.count) {
        let Some(row) = row else { continue };
        // What was never written is zero.
        let mut values = [0; N];
        if differ == 0 {
            values = *local.get(first as usize + word).unwrap_or(&values);
        } else {
            for lane in 0..N {
                let held = local.get(places[lane] as usize + word);
                values[lane] = held.map_or(0, |held| held[lane]);
            }
        }
        put(registers, *row, &values, mask);
    }
}

/// Stores words. Returns false, and does nothing, if that is not for a straight run.
#[inline(always)]
pub(super) fn store<const N: usize>(
    words: &mut Words,
    reached: &mut Reached<'_, N>,
    constants: &[[u32; N]],
    mask: LaneMask,
) -> bool {
    let mut places = [0; N];
    let Some(at) = find_places(words, reached, constants, mask, &mut places) else { return false };
    let Reached { registers, local, memory, shared, .. } = reached;
    let registers = registers.words as &[_];
    let bytes = match words.space {
        Space::Global | Space::Generic => memory.allocation_mut(at).1,
        Space::Shared => &mut **shared,
        Space::Local => {
            for (word, row) in words.rows.iter().enumerate().take(words.count) {
                let Some(row) = row else { continue };
                store_local(word, row.lanes(registers, constants), &places, local.0, mask);
            }
            return true;
        }
        Space::Const | Space::Param | Space::Cluster => return false,
    };
    let data = bytes.as_chunks_mut::<4>().0;
    // Of several lanes that write one place, the highest one's value stays.
    if words.count == 1 && mask & all_lanes::<N>() == all_lanes::<N>() {
        let Some(row) = words.rows[0] else { return true };
        let values = row.lanes(registers, constants);
        if Runs::of(&places) == Runs::Consecutive {
            let runs = places.as_chunks::<RUN>().0;
            for (values, places) in values.as_chunks::<RUN>().0.iter().zip(runs) {
                let first = places[0] as usize;
                for (word, value) in data[first..first + RUN].iter_mut().zip(values) {
                    *word = value.to_le_bytes();
                }
            }
        } else {
            for (value, &place) in values.iter().zip(&places) {
                data[place as usize] = value.to_le_bytes();
            }
        }
        return true;
    }
    for (word, row) in words.rows.iter().enumerate().take(words.count) {
        let Some(row) = row else { continue };
        let values = row.lanes(registers, constants);
        for lane in mask.lanes() {
            data[places[lane] as usize + word] = values[lane].to_le_bytes();
        }
    }
    true
}

#[inline(never)]
fn store_local<const N: usize>(
    word: usize,
    values: &[u32; N],
    places: &[u32; N],
    local: &mut Vec<[u32; N]>,
    mask: LaneMask,
) {
    let end = mask.lanes().map(|lane| places[lane]).max().unwrap_or(0) as usize + word + 1;
    if local.len() < end {
        local.resize(end, [0; N]);
    }
    for lane in mask.lanes() {
        local[places[lane] as usize + word][lane] = values[lane];
    }
}
