//! Loads and stores of whole words, straight between memory and registers.
//!
//! Addresses are compared as 32-bit distances from the start of the memory that holds the first lane's: all lanes at
//! once, and eight to a vector of the host. That takes the place of `Reach::each_space`, whose 64-bit addresses are
//! first told apart by their pattern. Whatever is not inside that memory, or not aligned, is left to it.
//!
//! What is found out about a base address holds for all accesses that add another offset to it, up to the next write of
//! a base address ([`Patterns`]): the 32 loads of an unrolled loop over a tile have two patterns.

use std::hint::black_box;
use std::ops::Range;

use warploom_isa::Space;

use crate::kit::lane_mask::LaneMask;
use crate::lanes::frequent::{ConstantRow, Row, Spare};
use crate::lanes::{Taking, blend, merge};
use crate::memory::store::Memory;
use crate::straight::Reached;

/// Words of the largest access.
pub(super) const MAX_WORDS: usize = 4;

/// Lanes in a row that mostly read words side by side, or one word, even if not the whole warp does: blocks of threads
/// have sides of 8 or 16.
const RUN: usize = 8;

/// A load or store of `count` words: one, two or four.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) space: Space,
    pub(super) stores: bool,
    pub(super) count: usize,
    /// The base address has two rows.
    pub(super) wide: bool,
    /// Bytes to add to the base, signed.
    pub(super) offset: u32,
    pub(super) base: Row,
    /// The base's register; `usize::MAX / 2`, which is none, if it is a constant.
    pub(super) base_register: usize,
    /// Number of its pattern.
    pub(super) pattern: usize,
    /// Other accesses may find their words by the same pattern, and this one does not write its base.
    pub(super) keeps_pattern: bool,
    /// Registers that a load writes, and values that a store takes.
    pub(super) rows: [Option<Row>; MAX_WORDS],
    /// The allocation in which the instruction last found its lanes.
    pub(super) hint: usize,
}

/// How the words of the lanes lie, in every [`RUN`] of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    Same,
    Consecutive,
    Scattered,
}

/// Where the words of the lanes are that one base address leads to.
pub(super) struct Pattern<const N: usize> {
    /// The space, the base, whether it has two rows, and the number of words.
    of: (Space, Row, bool, usize),
    /// The run in which it was found out, and what [`Patterns::writes`] said then. 0 is no run.
    run: u64,
    writes: u64,
    mask: LaneMask,
    /// The allocation, in global memory.
    at: usize,
    /// The offset with which the other fields were found out.
    offset: u32,
    /// Bytes from the start of the memory to the lowest place, and from behind the highest one to the end.
    before: i64,
    after: i64,
    runs: Runs,
    /// Bytes from the start of the memory to each lane's words; to those of any other lane in lanes that take no part.
    places: [u32; N],
}

/// The patterns of a kernel's base addresses.
pub(super) struct Patterns<const N: usize> {
    patterns: Vec<Pattern<N>>,
    run: u64,
    /// By register: how often it was written, if it is a base address or the upper half of one.
    writes: Vec<u64>,
}

impl<const N: usize> Patterns<N> {
    /// For functions of so many registers.
    pub(super) fn new(registers: usize) -> Self {
        Patterns { patterns: Vec::new(), run: 0, writes: vec![0; registers] }
    }

    /// The number of the pattern for a space, a base, whether that has two rows, and a number of words.
    pub(super) fn place(&mut self, of: (Space, Row, bool, usize)) -> usize {
        self.patterns.iter().position(|pattern| pattern.of == of).unwrap_or_else(|| {
            let (mask, places) = (LaneMask::NONE, [0; N]);
            let (run, writes, at, offset, before, after) = (0, 0, 0, 0, 0, 0);
            let runs = Runs::Scattered;
            self.patterns.push(Pattern { of, run, writes, mask, at, offset, before, after, runs, places });
            self.patterns.len() - 1
        })
    }

    /// Another run begins: of another warp, perhaps.
    #[inline(always)]
    pub(super) fn forget(&mut self) {
        self.run += 1;
    }

    /// These registers are written.
    #[inline(always)]
    pub(super) fn written(&mut self, registers: &Range<usize>) {
        for register in registers.clone() {
            self.writes[register] += 1;
        }
    }

    /// The pattern of an access, and the present run and writes of its base.
    #[inline(always)]
    pub(super) fn of(&mut self, words: &Words) -> (&mut Pattern<N>, (u64, u64)) {
        let writes = match self.writes.get(words.base_register..words.base_register + 2) {
            Some(&[low, high]) => low + high,
            _ => 0,
        };
        (&mut self.patterns[words.pattern], (self.run, writes))
    }
}

impl<const N: usize> Pattern<N> {
    /// What the offset of an access adds to the places. `None` if the pattern does not tell where its words are.
    #[inline(always)]
    fn shift(&self, words: &Words, mask: LaneMask, now: (u64, u64)) -> Option<u32> {
        let shift = i64::from(words.offset as i32) - i64::from(self.offset as i32);
        let known = (self.run, self.writes) == now && self.mask == mask;
        let fits = -self.before <= shift && shift <= self.after && shift & (4 * words.count as i64 - 1) == 0;
        (known & fits).then_some(shift as u32)
    }

    /// Finds out where the words of an access are. `None` if they are not all in one piece of memory, and aligned.
    #[inline(always)]
    fn find(
        &mut self,
        words: &mut Words,
        reached: &Reached<'_, N>,
        constants: &[ConstantRow],
        taking: Taking<'_, N>,
    ) -> Option<()> {
        let registers = reached.registers.words as &[_];
        // Of a base of one word, it is not used.
        let (low, mut high) = (words.base.lanes(registers, constants), words.base.high(registers, constants));
        let first = taking.mask.lowest() % N;
        let offset = words.offset as i32 as i64 as u64;
        let mut base = 0;
        let bytes = match words.space {
            Space::Global | Space::Generic => {
                let address = match words.wide {
                    true => (u64::from(low[first]) | u64::from(high[first]) << 32).wrapping_add(offset),
                    false => u64::from(low[first].wrapping_add(words.offset)),
                };
                self.at = find(reached.memory, &mut words.hint, address)?;
                let (start, bytes) = reached.memory.allocation(self.at);
                base = start;
                bytes.len() as u64
            }
            Space::Shared => reached.shared.len() as u64,
            Space::Const => reached.launch.constants.len() as u64,
            Space::Param => reached.launch.params.len() as u64,
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
        if !words.wide {
            if base >> 32 != 0 {
                return None;
            }
            // 32-bit addresses wrap as 32-bit registers do.
            inside.start = u64::from((base as u32).wrapping_sub(words.offset));
            high = const { &[0; N] };
        }
        let (least, most) = if taking.full {
            inside.places((low, high), (const { &[u32::MAX; N] }, first), &mut self.places)?
        } else {
            inside.places((low, high), (&taking.words(), first), &mut self.places)?
        };
        (self.mask, self.offset) = (taking.mask, words.offset);
        self.before = i64::from(least);
        self.after = (bytes - size) as i64 - i64::from(most);
        self.runs = match words.space {
            // Only whether all are at one place matters.
            Space::Local if least == most => Runs::Same,
            Space::Local => Runs::Scattered,
            _ => Runs::of(&self.places, size as u32),
        };
        Some(())
    }

    /// The number of a lane's first word in the memory.
    #[inline(always)]
    fn word(&self, lane: usize, shift: u32) -> usize {
        (self.places[lane].wrapping_add(shift) / 4) as usize
    }
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
    /// Puts the place of the words of every lane that is `active`; the others go where the lane `first` goes, which is.
    /// Returns the lowest and the highest place; `None` unless all are inside and aligned.
    #[inline(always)]
    fn places<const N: usize>(
        &self,
        (low, high): (&[u32; N], &[u32; N]),
        (active, first): (&[u32; N], usize),
        places: &mut [u32; N],
    ) -> Option<(u32, u32)> {
        let (start_low, start_high) = (self.start as u32, (self.start >> 32) as u32);
        let of_first = low[first].wrapping_sub(start_low);
        let (mut bad, mut least, mut most) = (0, u32::MAX, 0);
        for lane in 0..N {
            let distance = blend(active[lane], low[lane].wrapping_sub(start_low), of_first);
            let place = distance.wrapping_add(self.ahead);
            least = least.min(distance);
            most = most.max(distance);
            bad |= active[lane] & (high[lane] ^ start_high) | place & (self.size - 1);
            places[lane] = place;
        }
        // None is beyond the last one, so that adding does not overflow.
        (bad == 0 && u64::from(most) <= self.last).then(|| (least + self.ahead, most + self.ahead))
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

impl Runs {
    #[inline(always)]
    fn of<const N: usize>(places: &[u32; N], size: u32) -> Runs {
        let mut firsts = [0; N];
        for (firsts, places) in firsts.as_chunks_mut::<RUN>().0.iter_mut().zip(places.as_chunks::<RUN>().0) {
            *firsts = [places[0]; RUN];
        }
        let steps: [u32; N] = std::array::from_fn(|lane| (lane % RUN) as u32 * size);
        // The compiler must not see what every eighth lane has: it would make these lanes special cases, and 150 to 250
        // instructions of 40.
        let (firsts, steps) = black_box((firsts, steps));
        let (mut differ, mut gaps) = (0, 0);
        for lane in 0..N {
            let step = places[lane].wrapping_sub(firsts[lane]);
            differ |= step;
            gaps |= step ^ steps[lane];
        }
        match (differ, gaps) {
            (0, _) => Runs::Same,
            (_, 0) => Runs::Consecutive,
            _ => Runs::Scattered,
        }
    }
}

/// Loads or stores words. Returns false, and does nothing, if that is not for a straight run.
#[inline(always)]
pub(super) fn transfer<const N: usize>(
    words: &mut Words,
    (pattern, now): (&mut Pattern<N>, (u64, u64)),
    reached: &mut Reached<'_, N>,
    constants: &[ConstantRow],
    spare: &mut Spare<N>,
    taking: Taking<'_, N>,
) -> bool {
    let shift = match pattern.shift(words, taking.mask, now) {
        Some(shift) => shift,
        None => {
            pattern.run = 0;
            if pattern.find(words, reached, constants, taking).is_none() {
                return false;
            }
            if words.keeps_pattern {
                (pattern.run, pattern.writes) = now;
            }
            0
        }
    };
    let registers = &mut *reached.registers.words;
    if words.space == Space::Local {
        move_local(words, (pattern, shift), registers, constants, reached.local.0, taking);
    } else if words.stores {
        let data = match words.space {
            Space::Global | Space::Generic => reached.memory.allocation_mut(pattern.at).1,
            _ => &mut *reached.shared,
        };
        let data = data.as_chunks_mut::<4>().0;
        match words.count {
            1 => store::<N, 1>(words, (pattern, shift), registers, constants, data, taking),
            2 => store::<N, 2>(words, (pattern, shift), registers, constants, data, taking),
            _ => store::<N, 4>(words, (pattern, shift), registers, constants, data, taking),
        }
    } else {
        let data = match words.space {
            Space::Global | Space::Generic => reached.memory.allocation(pattern.at).1,
            Space::Const => reached.launch.constants,
            Space::Param => reached.launch.params,
            _ => &*reached.shared,
        };
        let data = data.as_chunks::<4>().0;
        match words.count {
            1 => load::<N, 1>(words, (pattern, shift), registers, data, spare, taking),
            2 => load::<N, 2>(words, (pattern, shift), registers, data, spare, taking),
            _ => load::<N, 4>(words, (pattern, shift), registers, data, spare, taking),
        }
    }
    true
}

#[inline(always)]
fn load<const N: usize, const COUNT: usize>(
    words: &Words,
    (pattern, shift): (&Pattern<N>, u32),
    registers: &mut [[u32; N]],
    data: &[[u8; 4]],
    spare: &mut Spare<N>,
    taking: Taking<'_, N>,
) {
    for word in 0..COUNT {
        let Some(row) = words.rows[word] else { continue };
        let row = row.register() as usize;
        let found = if taking.full { &mut registers[row] } else { &mut spare[0] };
        let runs = found.as_chunks_mut::<RUN>().0.iter_mut().enumerate();
        match pattern.runs {
            Runs::Consecutive => {
                for (run, found) in runs {
                    let first = pattern.word(RUN * run, shift) + word;
                    let data = &data[first..first + COUNT * (RUN - 1) + 1];
                    *found = std::array::from_fn(|lane| u32::from_le_bytes(data[COUNT * lane]));
                }
            }
            Runs::Same => {
                for (run, found) in runs {
                    *found = [u32::from_le_bytes(data[pattern.word(RUN * run, shift) + word]); RUN];
                }
            }
            Runs::Scattered => {
                for lane in 0..N {
                    found[lane] = u32::from_le_bytes(data[pattern.word(lane, shift) + word]);
                }
            }
        }
        if !taking.full {
            merge(&mut registers[row], &spare[0], &taking.words());
        }
    }
}

#[inline(always)]
fn store<const N: usize, const COUNT: usize>(
    words: &Words,
    (pattern, shift): (&Pattern<N>, u32),
    registers: &[[u32; N]],
    constants: &[ConstantRow],
    data: &mut [[u8; 4]],
    taking: Taking<'_, N>,
) {
    for word in 0..COUNT {
        let Some(row) = words.rows[word] else { continue };
        let values = row.lanes(registers, constants);
        let runs = values.as_chunks::<RUN>().0.iter().enumerate();
        // Of several lanes that write one place, the highest one's value stays.
        match pattern.runs {
            Runs::Consecutive if taking.full => {
                for (run, values) in runs {
                    let first = pattern.word(RUN * run, shift) + word;
                    let data = &mut data[first..first + COUNT * (RUN - 1) + 1];
                    let values = values.map(u32::to_le_bytes);
                    for lane in 0..RUN {
                        data[COUNT * lane] = values[lane];
                    }
                }
            }
            Runs::Same if taking.full => {
                for (run, values) in runs {
                    data[pattern.word(RUN * run, shift) + word] = values[RUN - 1].to_le_bytes();
                }
            }
            _ => {
                for lane in taking.mask.lanes() {
                    data[pattern.word(lane, shift) + word] = values[lane].to_le_bytes();
                }
            }
        }
    }
}

/// Every lane has words of its own in local memory.
#[inline(always)]
fn move_local<const N: usize>(
    words: &Words,
    (pattern, shift): (&Pattern<N>, u32),
    registers: &mut [[u32; N]],
    constants: &[ConstantRow],
    local: &mut Vec<[u32; N]>,
    taking: Taking<'_, N>,
) {
    let active = taking.words();
    let uniform = pattern.runs == Runs::Same;
    for (word, row) in words.rows.iter().enumerate().take(words.count) {
        let Some(row) = *row else { continue };
        let at = |lane: usize| pattern.word(lane, shift) + word;
        let end = 1 + if uniform { at(0) } else { (0..N).map(at).max().unwrap_or(0) };
        if words.stores {
            let values = row.lanes(registers, constants);
            if local.len() < end {
                local.resize(end, [0; N]);
            }
            if uniform {
                merge(&mut local[at(0)], values, &active);
            } else {
                let local = local.as_flattened_mut();
                taking.mask.lanes().for_each(|lane| local[at(lane) * N + lane] = values[lane]);
            }
            continue;
        }
        let mut found = [0; N];
        if local.len() < end {
            // What was never written is zero.
            (0..N).for_each(|lane| found[lane] = local.get(at(lane)).map_or(0, |held| held[lane]));
        } else if uniform {
            found = local[at(0)];
        } else {
            let local = local.as_flattened();
            (0..N).for_each(|lane| found[lane] = local[at(lane) * N + lane]);
        }
        merge(&mut registers[row.register() as usize], &found, &active);
    }
}
