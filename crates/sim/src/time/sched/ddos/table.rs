//! The spin-inducing-branch prediction table (SIB-PT), which the warps of an SM share.

use warploom_isa::Pc;

use crate::chip::spinning::DdosSpec;

/// A backward branch under suspicion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub pc: Pc,
    /// Rises when spinning warps execute the branch, falls when others take it. From the threshold on the branch is
    /// confirmed as spin-inducing.
    pub confidence: u32,
}

/// An entry whose confidence falls to zero is removed.
#[derive(Clone, Debug)]
pub(crate) struct SibTable {
    capacity: usize,
    threshold: u32,
    keep_confirmed: bool,
    /// Oldest first.
    entries: Vec<Entry>,
}

impl SibTable {
    pub(crate) fn new(spec: &DdosSpec) -> SibTable {
        SibTable {
            capacity: spec.table_entries as usize,
            threshold: spec.threshold,
            keep_confirmed: spec.keep_confirmed,
            entries: Vec::new(),
        }
    }

    /// A warp executes a backward branch. Returns whether it is spin-inducing, as far as the table knows now.
    pub(crate) fn executed(&mut self, pc: Pc, spinning: bool, taken: bool) -> bool {
        let Some(at) = self.entries.iter().position(|entry| entry.pc == pc) else {
            return spinning && self.enter(pc);
        };
        let entry = &mut self.entries[at];
        let confirmed = entry.confidence >= self.threshold;
        if spinning {
            // The counter has no bits for more than the threshold.
            entry.confidence = (entry.confidence + 1).min(self.threshold);
        } else if taken && !(confirmed && self.keep_confirmed) {
            entry.confidence -= 1;
        }
        let confidence = entry.confidence;
        if confidence == 0 {
            self.entries.remove(at);
        }
        confidence >= self.threshold
    }

    /// A branch is suspected for the first time. In a full table it replaces the oldest entry of the lowest
    /// confidence, unless all are confirmed. Returns whether the branch is confirmed at once.
    fn enter(&mut self, pc: Pc) -> bool {
        if self.entries.len() >= self.capacity {
            let places = self.entries.iter().enumerate().filter(|(_, e)| e.confidence < self.threshold);
            let Some((at, _)) = places.min_by_key(|(at, entry)| (entry.confidence, *at)) else {
                return false;
            };
            self.entries.remove(at);
        }
        self.entries.push(Entry { pc, confidence: 1 });
        self.threshold <= 1
    }

    pub(crate) fn holds(&self, pc: Pc) -> bool {
        self.entries.iter().any(|entry| entry.pc == pc)
    }

    /// Its entries, oldest first.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::Chip;

    fn table(set: &[&str]) -> SibTable {
        let set: Vec<_> = set.iter().map(|s| s.to_string()).collect();
        SibTable::new(&Chip::load("gtx480", &set).unwrap().issue.ddos)
    }

    fn entries(table: &SibTable) -> Vec<(u32, u32)> {
        table.entries.iter().map(|entry| (entry.pc.0, entry.confidence)).collect()
    }

    #[test]
    fn confidence_rises_falls_and_is_frozen_at_the_threshold() {
        let mut table = table(&[]);
        // Other warps take it, but no spinning one has executed it.
        assert!(!table.executed(Pc(19), false, true));
        assert_eq!(entries(&table), []);
        let spin = |table: &mut SibTable| table.executed(Pc(19), true, true);
        assert_eq!([spin(&mut table), spin(&mut table)], [false, false]);
        assert_eq!(entries(&table), [(19, 2)]);
        assert!(!table.executed(Pc(19), false, true));
        assert_eq!(entries(&table), [(19, 1)]);
        // Executed and not taken says nothing.
        assert!(!table.executed(Pc(19), false, false));
        assert_eq!(entries(&table), [(19, 1)]);
        assert!(!table.executed(Pc(19), false, true));
        assert_eq!(entries(&table), []);
        assert_eq!([0; 4].map(|_| spin(&mut table)), [false, false, false, true]);
        assert!(spin(&mut table) && table.executed(Pc(19), false, true));
        assert_eq!(entries(&table), [(19, 4)]);
    }

    #[test]
    fn without_freezing_a_confirmed_branch_can_be_lost() {
        let mut table = table(&["issue.ddos.keep_confirmed=false"]);
        let confirmed = [0; 4].map(|_| table.executed(Pc(1), true, true));
        assert_eq!(confirmed, [false, false, false, true]);
        assert!(!table.executed(Pc(1), false, true));
        assert!(table.executed(Pc(1), true, true));
    }

    #[test]
    fn a_full_table_gives_up_the_least_likely() {
        let mut table = table(&["issue.ddos.table_entries=3", "issue.ddos.threshold=2"]);
        for pc in [1, 2, 3, 2] {
            table.executed(Pc(pc), true, true);
        }
        assert_eq!(entries(&table), [(1, 1), (2, 2), (3, 1)]);
        table.executed(Pc(4), true, true);
        assert_eq!(entries(&table), [(2, 2), (3, 1), (4, 1)]);
        for pc in [3, 4] {
            assert!(table.executed(Pc(pc), true, true));
        }
        // All are confirmed.
        assert!(!table.executed(Pc(5), true, true));
        assert_eq!(entries(&table), [(2, 2), (3, 2), (4, 2)]);
        assert!(table.holds(Pc(4)) && !table.holds(Pc(5)));
    }

    #[test]
    fn a_threshold_of_one_confirms_at_once() {
        let mut table = table(&["issue.ddos.threshold=1"]);
        assert!(table.executed(Pc(5), true, true));
    }
}
