//! Bank conflicts of shared memory: how long an access keeps it busy.

use crate::exec::memory::address::{Addresses, span};
use crate::kit::lane_mask::LaneMask;

/// How many cycles shared memory needs for `lanes`, with `bytes` each, and how many of them are due to bank conflicts.
/// Each bank gives one word per cycle, to all lanes that want it.
pub(crate) fn shared_turns<const N: usize>(
    addresses: &Addresses<N>,
    bytes: u32,
    lanes: LaneMask,
    banks: u32,
) -> (u32, u32) {
    let words = bytes.div_ceil(4);
    let of: [u32; N] = match *addresses {
        Addresses::Uniform(_) if words == 1 => return (1, 0),
        // Consecutive words lie in different banks.
        Addresses::Stride { step: 4, .. } if words == 1 && N as u32 <= banks => return (1, 0),
        Addresses::Lanes(ref all) => {
            // As many words in a row as there are banks lie in different ones.
            if words == 1 && lanes.count() as usize == N && span(all) < 4 * banks {
                return (1, 0);
            }
            all.map(|address| (address / 4) as u32)
        }
        addresses => std::array::from_fn(|lane| (addresses.at(lane) / 4) as u32),
    };
    // A pass of a wide access is made by as many neighbouring lanes as move one word per lane of the whole warp: half a
    // warp for 64 bits, a quarter for 128 (the programming guide, shared memory of compute capability 2.x).
    let together = N as u32 / words;
    let (mut turns, mut passes) = (0, 0);
    for pass in 0..words {
        let some = lanes & LaneMask((u64::MAX >> (64 - together)) << (pass * together));
        if !some.is_empty() {
            turns += pass_turns(&of, some, words, banks);
            passes += 1;
        }
    }
    (turns, turns - passes)
}

/// The cycles of one pass: the most different words that any bank is asked for.
fn pass_turns<const N: usize>(first: &[u32; N], lanes: LaneMask, words: u32, banks: u32) -> u32 {
    const NONE: u32 = u32::MAX;
    let mut asked = [NONE; 64];
    let mut conflict = false;
    let mut ask = |word: u32| {
        // The same word again is a broadcast.
        let before = std::mem::replace(&mut asked[(word & (banks - 1) & 63) as usize], word);
        conflict |= before != word && before != NONE;
    };
    if lanes.count() as usize == N {
        first.iter().for_each(|word| ask(*word));
    } else {
        lanes.lanes().for_each(|lane| (0..words).for_each(|at| ask(first[lane].wrapping_add(at))));
    }
    if !conflict {
        return 1;
    }
    let mut different = [NONE; 64];
    let mut count = 0;
    let mut depth = [0u32; 64];
    for word in lanes.lanes().flat_map(|lane| (0..words).map(move |at| first[lane].wrapping_add(at))) {
        if !different[..count].contains(&word) {
            different[count] = word;
            count += 1;
            depth[(word & (banks - 1)) as usize] += 1;
        }
    }
    depth.into_iter().max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: LaneMask = LaneMask(u32::MAX as u64);

    fn turns(bytes: u32, lanes: LaneMask, address: impl Fn(u64) -> u64) -> (u32, u32) {
        let addresses = Addresses::<32>::of(std::array::from_fn(|lane| address(lane as u64)), lanes);
        shared_turns(&addresses, bytes, lanes, 32)
    }

    #[test]
    fn words_of_different_banks_and_broadcasts_take_one_cycle() {
        assert_eq!(turns(4, ALL, |lane| 4 * lane), (1, 0));
        assert_eq!(turns(4, ALL, |_| 64), (1, 0));
        assert_eq!(turns(4, LaneMask(0xffff), |lane| 4 * (lane / 2)), (1, 0));
        assert_eq!(turns(1, ALL, |lane| lane), (1, 0));
        // Neighbouring words in any order, and more than the banks apart.
        assert_eq!(turns(4, ALL, |lane| 4 * (100 + lane * 7 % 32)), (1, 0));
        assert_eq!(turns(4, ALL, |lane| 4 * (100 + lane + lane / 31)), (2, 1));
    }

    #[test]
    fn words_of_one_bank_wait_for_each_other() {
        assert_eq!(turns(4, ALL, |lane| 8 * lane), (2, 1));
        assert_eq!(turns(4, ALL, |lane| 128 * lane), (32, 31));
        assert_eq!(turns(4, LaneMask(0b11), |lane| 128 * lane), (2, 1));
    }

    #[test]
    fn wide_accesses_go_in_passes() {
        assert_eq!(turns(8, ALL, |lane| 8 * lane), (2, 0));
        assert_eq!(turns(16, ALL, |lane| 16 * lane), (4, 0));
        assert_eq!(turns(8, LaneMask(0xffff), |lane| 8 * lane), (1, 0));
    }
}
