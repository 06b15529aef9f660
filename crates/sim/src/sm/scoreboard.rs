//! Registers that wait for a result: an instruction that reads or writes one of them does not issue.

/// A set of a warp's registers and predicates. A bit stands for one register of the first 256 rows; deeper
/// activations of a call chain wrap around, which can only make an instruction wait that need not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegSet {
    words: [u64; 4],
    predicates: u64,
}

impl RegSet {
    /// Every register and predicate.
    pub const ALL: RegSet = RegSet { words: [u64::MAX; 4], predicates: u64::MAX };

    /// Adds the register in row `row`.
    pub fn insert_register(&mut self, row: u32) {
        let bit = row % 256;
        self.words[bit as usize / 64] |= 1 << (bit % 64);
    }

    /// Adds a predicate.
    pub fn insert_predicate(&mut self, predicate: u32) {
        self.predicates |= 1 << (predicate % 64);
    }

    /// Whether some register is in both.
    #[inline(always)]
    pub fn meets(&self, other: &RegSet) -> bool {
        let mut common = self.predicates & other.predicates;
        for (a, b) in self.words.iter().zip(&other.words) {
            common |= a & b;
        }
        common != 0
    }

    /// Adds all of `other`.
    #[inline(always)]
    pub fn add(&mut self, other: &RegSet) {
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a |= b;
        }
        self.predicates |= other.predicates;
    }

    /// Takes out all of `other`.
    #[inline(always)]
    pub fn remove(&mut self, other: &RegSet) {
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a &= !b;
        }
        self.predicates &= !other.predicates;
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == RegSet::default()
    }

    /// The set of a function's own registers as rows of an activation whose registers start at row `registers`.
    #[inline(always)]
    pub fn at(&self, registers: u32, predicates: u32) -> RegSet {
        if registers == 0 && predicates == 0 {
            return *self;
        }
        let (words, bits) = (registers as usize % 256 / 64, registers % 64);
        let word = |i: usize| self.words[(i + 4 - words) % 4];
        let shifted =
            |i: usize| if bits == 0 { word(i) } else { word(i) << bits | word((i + 3) % 4) >> (64 - bits) };
        RegSet {
            words: std::array::from_fn(shifted),
            predicates: self.predicates.rotate_left(predicates % 64),
        }
    }
}

/// A warp's pending results.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scoreboard {
    /// Of any instruction.
    pending: RegSet,
    /// Of those, the ones that come from memory.
    from_memory: RegSet,
}

impl Scoreboard {
    /// Whether an instruction that needs `registers` free waits for the result of another, and whether for one of a load or
    /// an atomic.
    #[inline(always)]
    pub fn check(&self, registers: &RegSet) -> (bool, bool) {
        (self.pending.meets(registers), self.from_memory.meets(registers))
    }

    /// An instruction that writes `registers` issues.
    #[inline(always)]
    pub fn reserve(&mut self, registers: &RegSet, from_memory: bool) {
        self.pending.add(registers);
        if from_memory {
            self.from_memory.add(registers);
        }
    }

    /// Its results are written.
    #[inline(always)]
    pub fn release(&mut self, registers: &RegSet) {
        self.pending.remove(registers);
        self.from_memory.remove(registers);
    }

    /// Whether nothing is pending.
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
            let moved = set(&[0, 5, 63, 64, 200]).at(base, 0);
            assert_eq!(moved, set(&[base, base + 5, base + 63, base + 64, base + 200]), "base {base}");
        }
    }

    #[test]
    fn a_result_is_waited_for_until_it_is_written() {
        let mut board = Scoreboard::default();
        board.reserve(&set(&[3]), false);
        board.reserve(&set(&[70]), true);
        assert_eq!(board.check(&set(&[4, 71])), (false, false));
        assert_eq!(board.check(&set(&[3, 4])), (true, false));
        assert_eq!(board.check(&set(&[3, 70])), (true, true));
        board.release(&set(&[70]));
        assert_eq!(board.check(&set(&[3, 70])), (true, false));
        board.release(&set(&[3]));
        assert!(board.is_clear());
    }
}
