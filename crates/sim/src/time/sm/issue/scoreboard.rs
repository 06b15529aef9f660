//! The scoreboard: registers with a pending result. An instruction that reads or writes one of them does not issue.

/// A set of a warp's registers and predicates. A bit stands for one register of the first 256 rows; deeper
/// activations of a call chain wrap around, which can only make an instruction wait needlessly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RegSet {
    predicates: u64,
    /// The first 64 rows, which is all that most kernels have.
    low: u64,
    high: [u64; 3],
    /// Some other row is, or was, in the set.
    is_wide: bool,
}

impl RegSet {
    pub const ALL: RegSet =
        RegSet { predicates: u64::MAX, low: u64::MAX, high: [u64::MAX; 3], is_wide: true };

    /// Adds the register in row `row`.
    pub fn insert_register(&mut self, row: u32) {
        let bit = 1 << (row % 64);
        match row as usize % 256 / 64 {
            0 => self.low |= bit,
            word => {
                self.high[word - 1] |= bit;
                self.is_wide = true;
            }
        }
    }

    pub fn insert_predicate(&mut self, predicate: u32) {
        self.predicates |= 1 << (predicate % 64);
    }

    /// Whether the sets share a register or predicate.
    #[inline(always)]
    pub fn meets(&self, other: &RegSet) -> bool {
        let mut common = self.predicates & other.predicates | self.low & other.low;
        if other.is_wide {
            for (a, b) in self.high.iter().zip(&other.high) {
                common |= a & b;
            }
        }
        common != 0
    }

    #[inline(always)]
    pub fn add(&mut self, other: &RegSet) {
        self.predicates |= other.predicates;
        self.low |= other.low;
        if other.is_wide {
            self.high.iter_mut().zip(&other.high).for_each(|(a, b)| *a |= b);
            self.is_wide = true;
        }
    }

    #[inline(always)]
    pub fn remove(&mut self, other: &RegSet) {
        self.predicates &= !other.predicates;
        self.low &= !other.low;
        if other.is_wide {
            self.high.iter_mut().zip(&other.high).for_each(|(a, b)| *a &= !b);
        }
    }

    /// This set without the other's registers.
    fn without(mut self, other: &RegSet) -> RegSet {
        self.predicates &= !other.predicates;
        self.low &= !other.low;
        self.high.iter_mut().zip(&other.high).for_each(|(a, b)| *a &= !b);
        self
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.predicates | self.low == 0 && (!self.is_wide || self.high == [0; 3])
    }

    /// Calls `f` with the set of a function's own registers as rows of an activation whose registers start at row
    /// `registers`.
    #[inline(always)]
    pub fn at<R>(&self, registers: u32, predicates: u32, f: impl FnOnce(&RegSet) -> R) -> R {
        if registers | predicates == 0 { f(self) } else { f(&self.moved(registers, predicates)) }
    }

    #[cold]
    fn moved(&self, registers: u32, predicates: u32) -> RegSet {
        let rows = [self.low, self.high[0], self.high[1], self.high[2]];
        let (words, bits) = (registers as usize % 256 / 64, registers % 64);
        let word = |i: usize| rows[(i + 4 - words) % 4];
        let shifted =
            |i: usize| if bits == 0 { word(i) } else { word(i) << bits | word((i + 3) % 4) >> (64 - bits) };
        let high = [shifted(1), shifted(2), shifted(3)];
        RegSet {
            predicates: self.predicates.rotate_left(predicates % 64),
            low: shifted(0),
            high,
            is_wide: high != [0; 3],
        }
    }
}

/// A warp's pending results.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scoreboard {
    pending: RegSet,
    /// Of those, results of loads and atomics.
    from_memory: RegSet,
    /// Of those, results of accesses to shared memory alone; also registers whose result is no longer pending.
    from_shared: RegSet,
    /// There was such a result: most kernels have none.
    has_shared: bool,
}

impl Scoreboard {
    /// Whether an instruction that needs `registers` free waits for a result.
    #[inline(always)]
    pub fn waits(&self, registers: &RegSet) -> bool {
        self.pending.meets(registers)
    }

    /// Whether it waits for a result of a load or an atomic.
    #[inline(always)]
    pub fn waits_for_memory(&self, registers: &RegSet) -> bool {
        self.from_memory.meets(registers)
    }

    /// Whether an instruction that waits for results of loads or atomics waits only for shared memory.
    #[inline(always)]
    pub fn waits_for_shared(&self, registers: &RegSet) -> bool {
        self.has_shared && !self.from_memory.without(&self.from_shared).meets(registers)
    }

    /// An access to memory issues that writes `registers`.
    #[inline(always)]
    pub fn reserve_for_access(&mut self, registers: &RegSet, is_shared: bool) {
        self.reserve(registers, true);
        if is_shared {
            self.from_shared.add(registers);
            self.has_shared = true;
        } else if self.has_shared {
            self.from_shared.remove(registers);
        }
    }

    /// An instruction that writes `registers` issues.
    #[inline(always)]
    pub fn reserve(&mut self, registers: &RegSet, from_memory: bool) {
        self.pending.add(registers);
        if from_memory {
            self.from_memory.add(registers);
        }
    }

    /// The results in `registers` are written.
    #[inline(always)]
    pub fn release(&mut self, registers: &RegSet) {
        self.pending.remove(registers);
        self.from_memory.remove(registers);
    }

    pub fn is_clear(&self) -> bool {
        self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(rows: &[u32]) -> RegSet {
        let mut set = RegSet::default();
        rows.iter().for_each(|&row| set.insert_register(row));
        set
    }

    #[test]
    fn activations_move_their_registers() {
        for base in [0, 1, 40, 63, 64, 65, 130, 255, 256, 300] {
            let moved = set(&[0, 5, 63, 64, 200]).at(base, 0, |moved| *moved);
            assert_eq!(moved, set(&[base, base + 5, base + 63, base + 64, base + 200]), "base {base}");
        }
    }

    #[test]
    fn a_result_is_waited_for_until_it_is_written() {
        let mut board = Scoreboard::default();
        board.reserve(&set(&[3]), false);
        board.reserve(&set(&[70]), true);
        let check =
            |board: &Scoreboard, rows: &[u32]| (board.waits(&set(rows)), board.waits_for_memory(&set(rows)));
        assert_eq!(check(&board, &[4, 71]), (false, false));
        assert_eq!(check(&board, &[3, 4]), (true, false));
        assert_eq!(check(&board, &[3, 70]), (true, true));
        board.release(&set(&[70]));
        assert_eq!(check(&board, &[3, 70]), (true, false));
        board.release(&set(&[3]));
        assert!(board.is_clear());
    }

    #[test]
    fn a_wait_is_for_shared_memory_if_it_is_for_nothing_else() {
        let mut board = Scoreboard::default();
        board.reserve_for_access(&set(&[3]), false);
        assert!(!board.waits_for_shared(&set(&[3])));
        board.reserve_for_access(&set(&[4, 200]), true);
        assert!(board.waits_for_shared(&set(&[4])) && board.waits_for_shared(&set(&[200])));
        assert!(!board.waits_for_shared(&set(&[3, 4])));
        board.release(&set(&[4, 200]));
        board.reserve_for_access(&set(&[4]), false);
        assert!(!board.waits_for_shared(&set(&[4])));
    }
}
