//! Counters of the load/store unit and the memories beside it.

use crate::kit::counters::counters;
use crate::time::sm::load_store::l1::Refusal;

counters! {
    /// What the load/store unit of an SM and the memories beside it did.
    L1Stats {
        /// Lines of global memory found in the L1.
        hits,
        /// Lines asked for.
        misses,
        /// Lines that were on their way already.
        merges,
        /// Loads past the L1, in lines.
        bypasses,
        /// Stores, in lines.
        stores,
        /// Lines that a store put out of the L1.
        evictions_by_write,
        /// Atomics on global memory, in lines.
        atomics,
        /// Lanes of these.
        atomic_lanes,
        /// Tries that found no free miss register.
        refused_mshrs,
        /// Tries that found no room in a miss register.
        refused_merges,
        /// Tries that found every way of their set waiting.
        refused_ways,
        /// Pieces that the network had no room for, and tries by those that an answer might have helped.
        refused_network,
        /// Rows of local memory found in the L1.
        local_hits,
        /// Rows of local memory not found.
        local_misses,
        /// Lines of local memory written back.
        write_backs,
        /// Accesses to shared memory.
        shared_accesses,
        /// Words that lanes read or wrote there.
        shared_words,
        /// Turns of shared memory beyond the first of an access.
        bank_conflicts,
        /// Lanes of atomics on shared memory.
        shared_atomics,
        /// Lanes that tried to take a lock bit.
        lock_tries,
        /// Lanes that found it taken.
        lock_failures,
        /// Words of constants found.
        constant_hits,
        /// Lines of constants asked for.
        constant_misses,
        /// Instruction fetches that found their line.
        fetch_hits,
        /// Instruction fetches that did not.
        fetch_misses,
        /// Cycles that operands waited for a register bank.
        register_conflicts,
    }
}

impl L1Stats {
    /// Counts a refused try.
    pub fn refuse(&mut self, refusal: Refusal) {
        match refusal {
            Refusal::Mshrs => self.refused_mshrs += 1,
            Refusal::Merges => self.refused_merges += 1,
            Refusal::Ways => self.refused_ways += 1,
            Refusal::Network => self.refused_network += 1,
        }
    }
}
