//! Moves words between rows and memory, once an access is checked.

use multiversion::multiversion;
use warploom_isa::{AtomOp, Space, Ty};

use crate::kit::lane_mask::LaneMask;
use crate::lanes::{self, AtomicUnit, all_lanes};
use crate::memory::address::Addresses;
use crate::memory::rows::Rows;
use crate::warp::Warp;

/// Lanes whose accesses lie in one piece of memory: an allocation, a line, or a whole space.
pub struct Piece<'a, const N: usize> {
    pub space: Space,
    /// Number of the allocation (global memory).
    pub at: usize,
    /// The piece's first address.
    pub base: u64,
    pub mask: LaneMask,
    pub addresses: &'a Addresses<N>,
    pub bytes: u32,
}

impl<'a, const N: usize> Piece<'a, N> {
    /// Bytes of global memory from `base` on: an allocation or a line of it.
    #[inline(always)]
    pub fn of_global(base: u64, mask: LaneMask, addresses: &'a Addresses<N>, bytes: u32) -> Self {
        Piece { space: Space::Global, at: 0, base, mask, addresses, bytes }
    }

    fn is_full(&self) -> bool {
        self.mask == all_lanes::<N>()
    }

    /// Where a lane's bytes begin in the piece.
    #[inline(always)]
    fn offset(&self, lane: usize) -> usize {
        (self.addresses.at(lane) - self.base) as usize
    }
}

impl<const N: usize> Clone for Piece<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<const N: usize> Copy for Piece<'_, N> {}

/// An element of a loaded vector as a low and a high word.
#[inline]
pub fn extend<const N: usize>(rows: &[[u32; N]], ty: Ty, element: usize) -> ([u32; N], [u32; N]) {
    match ty.bytes() {
        8 => (rows[2 * element], rows[2 * element + 1]),
        4 => {
            let low = rows[element];
            (low, if ty == Ty::S32 { low.map(|v| ((v as i32) >> 31) as u32) } else { [0; N] })
        }
        bytes => {
            let bits = bytes as usize * 8;
            let bit = element * bits;
            let drop = 32 - bits;
            let up = rows[bit / 32].map(|v| v >> (bit % 32) << drop);
            if ty.is_signed() {
                let low = up.map(|v| (v as i32 >> drop) as u32);
                (low, low.map(|v| (v as i32 >> 31) as u32))
            } else {
                (up.map(|v| v >> drop), [0; N])
            }
        }
    }
}

#[inline(always)]
fn word(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(data[at..at + 4].try_into().expect("four bytes"))
}

#[inline(always)]
fn scalar(data: &[u8], at: usize, bytes: u32) -> u32 {
    match bytes {
        1 => data[at] as u32,
        2 => u16::from_le_bytes([data[at], data[at + 1]]) as u32,
        _ => word(data, at),
    }
}

#[inline(always)]
fn put(data: &mut [u8], at: usize, bytes: u32, value: u32) {
    let value = value.to_le_bytes();
    match bytes {
        1 => data[at] = value[0],
        2 => data[at..at + 2].copy_from_slice(&value[..2]),
        _ => data[at..at + 4].copy_from_slice(&value),
    }
}

/// Lanes in a row that mostly read words side by side, or one word, even if not the whole warp does: blocks of threads
/// have sides of 8 or 16.
const RUN: usize = 8;

/// How the words of [`RUN`] lanes lie.
enum Run {
    Same,
    Consecutive,
    Scattered,
}

impl Run {
    #[inline(always)]
    fn of(words: &[u32; RUN]) -> Run {
        let first = words[0];
        let mut following = [0; RUN];
        for (lane, word) in following.iter_mut().enumerate() {
            *word = first.wrapping_add(lane as u32);
        }
        // Comparisons of whole arrays are an instruction or two.
        if *words == following {
            Run::Consecutive
        } else if *words == [first; RUN] {
            Run::Same
        } else {
            Run::Scattered
        }
    }
}

/// Lanes read memory into rows.
#[multiversion(targets(
    "x86_64+avx+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt+sse3+sse4.1+sse4.2+ssse3+xsave",
))]
pub fn gather_flat<const N: usize>(data: &[u8], piece: &Piece<'_, N>, rows: &mut [[u32; N]]) {
    gather_inline(data, piece, rows);
}

/// As [`gather_flat`], inside a function that is compiled for several vector instruction sets.
#[inline(always)]
pub(super) fn gather_inline<const N: usize>(data: &[u8], piece: &Piece<'_, N>, rows: &mut [[u32; N]]) {
    match *piece.addresses {
        Addresses::Uniform(address) => {
            let at = (address - piece.base) as usize;
            for (row, values) in rows.iter_mut().enumerate() {
                *values = [scalar(data, at + 4 * row, piece.bytes.min(4)); N];
            }
        }
        Addresses::Stride { first, step: 4 } if piece.bytes == 4 && piece.is_full() => {
            let at = (first - piece.base) as usize;
            for (value, bytes) in rows[0].iter_mut().zip(data[at..at + 4 * N].as_chunks::<4>().0) {
                *value = u32::from_le_bytes(*bytes);
            }
        }
        Addresses::Lanes(ref addresses)
            if piece.bytes == 4 && piece.is_full() && u32::try_from(data.len()).is_ok() =>
        {
            // Words are aligned, in memory and in its pieces.
            let words = data.as_chunks::<4>().0;
            // Their numbers fit 32 bits, of which twice as many fit a vector of the host.
            let mut numbers = [0; N];
            for (number, &address) in numbers.iter_mut().zip(addresses) {
                *number = (address.wrapping_sub(piece.base) as u32) / 4;
            }
            let runs = numbers.as_chunks::<RUN>().0;
            for (values, run) in rows[0].as_chunks_mut::<RUN>().0.iter_mut().zip(runs) {
                let first = run[0] as usize;
                match Run::of(run) {
                    Run::Same => *values = [u32::from_le_bytes(words[first]); RUN],
                    Run::Consecutive => {
                        for (value, word) in values.iter_mut().zip(&words[first..first + RUN]) {
                            *value = u32::from_le_bytes(*word);
                        }
                    }
                    Run::Scattered => {
                        for (value, &number) in values.iter_mut().zip(run) {
                            *value = u32::from_le_bytes(words[number as usize]);
                        }
                    }
                }
            }
        }
        _ => {
            for (row, values) in rows.iter_mut().enumerate() {
                for lane in piece.mask.lanes() {
                    values[lane] = scalar(data, piece.offset(lane) + 4 * row, piece.bytes.min(4));
                }
            }
        }
    }
}

/// Lanes write rows to memory. Of several lanes that write one place, the highest one's value stays.
#[multiversion(targets(
    "x86_64+avx+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt+sse3+sse4.1+sse4.2+ssse3+xsave",
))]
pub fn scatter_flat<const N: usize>(data: &mut [u8], piece: &Piece<'_, N>, rows: &[[u32; N]]) {
    match *piece.addresses {
        Addresses::Stride { first, step: 4 } if piece.bytes == 4 && piece.is_full() => {
            let at = (first - piece.base) as usize;
            for (value, bytes) in rows[0].iter().zip(data[at..at + 4 * N].as_chunks_mut::<4>().0) {
                *bytes = value.to_le_bytes();
            }
        }
        _ => {
            for (row, values) in rows.iter().enumerate() {
                for lane in piece.mask.lanes() {
                    put(data, piece.offset(lane) + 4 * row, piece.bytes.min(4), values[lane]);
                }
            }
        }
    }
}

/// The lanes whose bytes in memory differ from those of their rows.
pub fn differing_lanes<const N: usize>(data: &[u8], piece: &Piece<'_, N>, rows: &[[u32; N]]) -> LaneMask {
    let keep = if piece.bytes < 4 { (1u32 << (8 * piece.bytes)) - 1 } else { u32::MAX };
    let differs = |lane: &usize| {
        let held = |row: usize| scalar(data, piece.offset(*lane) + 4 * row, piece.bytes.min(4));
        rows.iter().enumerate().any(|(row, values)| (values[*lane] ^ held(row)) & keep != 0)
    };
    piece.mask.lanes().filter(differs).collect()
}

/// Lanes change memory one after the other, and keep what they found. Returns the lanes that changed it.
#[inline]
pub fn update_flat<const N: usize>(
    data: &mut [u8],
    piece: &Piece<'_, N>,
    atomic: (AtomOp, Ty),
    rows: &mut Rows<N>,
) -> LaneMask {
    match piece.bytes {
        16 => update_quads(data, piece, atomic.0, rows),
        8 => update_words::<N, 8>(data, piece, atomic, rows),
        2 => update_words::<N, 2>(data, piece, atomic, rows),
        _ => update_words::<N, 4>(data, piece, atomic, rows),
    }
}

fn update_words<const N: usize, const BYTES: usize>(
    data: &mut [u8],
    piece: &Piece<'_, N>,
    (op, ty): (AtomOp, Ty),
    rows: &mut Rows<N>,
) -> LaneMask {
    let unit = AtomicUnit::of(piece.space);
    let mut changed = 0;
    for lane in piece.mask.lanes() {
        let at = piece.offset(lane);
        let word: &mut [u8; BYTES] = (&mut data[at..at + BYTES]).try_into().expect("of this length");
        let mut bytes = [0; 8];
        bytes[..BYTES].copy_from_slice(word);
        let found = u64::from_le_bytes(bytes);
        let [b, c] = rows.operands(op, BYTES as u32, lane);
        let new = lanes::atomic(unit, op, ty, [found, b, c]).to_le_bytes();
        changed |= ((word[..] != new[..BYTES]) as u64) << lane;
        word.copy_from_slice(&new[..BYTES]);
        rows.set_found(BYTES as u32, lane, found);
    }
    LaneMask(changed)
}

/// As [`update_flat`] on 16 bytes, which are exchanged as one.
fn update_quads<const N: usize>(
    data: &mut [u8],
    piece: &Piece<'_, N>,
    op: AtomOp,
    rows: &mut Rows<N>,
) -> LaneMask {
    let mut changed = LaneMask::NONE;
    for lane in piece.mask.lanes() {
        let at = piece.offset(lane);
        let place: &mut [u8; 16] = (&mut data[at..at + 16]).try_into().expect("of this length");
        let found = u128::from_le_bytes(*place);
        let new = lanes::exchanged(op, found, rows.quads(lane));
        rows.set_quads(lane, [found, new]);
        *place = new.to_le_bytes();
        if new != found {
            changed |= LaneMask::of(lane);
        }
    }
    changed
}

/// As [`update_flat`] in local memory, where every lane has its own words.
pub fn update_local<const N: usize>(
    warp: &mut Warp<N>,
    piece: &Piece<'_, N>,
    (op, ty): (AtomOp, Ty),
    rows: &mut Rows<N>,
) {
    let mut new = [[0u32; N]; 4];
    if piece.bytes == 16 {
        gather_local(warp, piece, &mut new);
        for lane in piece.mask.lanes() {
            let found = (0..4).fold(0, |found, row| found | u128::from(new[row][lane]) << (32 * row));
            let left = lanes::exchanged(op, found, rows.quads(lane));
            rows.set_quads(lane, [found, left]);
            (0..4).for_each(|row| new[row][lane] = (left >> (32 * row)) as u32);
        }
        return scatter_local(warp, piece, &new);
    }
    gather_local(warp, piece, rows.found_mut(piece.bytes));
    for lane in piece.mask.lanes() {
        let [b, c] = rows.operands(op, piece.bytes, lane);
        let value = lanes::atomic(AtomicUnit::Sm, op, ty, [rows.found(piece.bytes, lane), b, c]);
        (new[0][lane], new[1][lane]) = (value as u32, (value >> 32) as u32);
    }
    scatter_local(warp, piece, &new[..(piece.bytes as usize).div_ceil(4)]);
}

/// As [`gather_flat`] in local memory.
pub fn gather_local<const N: usize>(warp: &Warp<N>, piece: &Piece<'_, N>, rows: &mut [[u32; N]]) {
    for (row, values) in rows.iter_mut().enumerate() {
        if let Addresses::Uniform(address) = *piece.addresses {
            let at = address as usize + 4 * row;
            let stored = warp.local_word(at / 4);
            let shift = 8 * (at % 4);
            let keep = if piece.bytes < 4 { (1u32 << (8 * piece.bytes)) - 1 } else { u32::MAX };
            for lane in 0..N {
                values[lane] = stored[lane] >> shift & keep;
            }
            continue;
        }
        for lane in piece.mask.lanes() {
            let at = piece.addresses.at(lane) as usize + 4 * row;
            let stored = warp.local_word(at / 4)[lane] >> (8 * (at % 4));
            values[lane] = match piece.bytes {
                1 => stored & 0xff,
                2 => stored & 0xffff,
                _ => stored,
            };
        }
    }
}

/// As [`scatter_flat`] in local memory.
pub fn scatter_local<const N: usize>(warp: &mut Warp<N>, piece: &Piece<'_, N>, rows: &[[u32; N]]) {
    for (row, values) in rows.iter().enumerate() {
        for lane in piece.mask.lanes() {
            let at = piece.addresses.at(lane) as usize + 4 * row;
            let stored = &mut warp.local_word_mut(at / 4)[lane];
            let shift = 8 * (at % 4);
            let keep = if piece.bytes < 4 { ((1u32 << (8 * piece.bytes)) - 1) << shift } else { u32::MAX };
            *stored = *stored & !keep | values[lane] << shift & keep;
        }
    }
}
