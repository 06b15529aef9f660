//! Counters of the load/store unit and the memories beside it.

use crate::kit::counters::counters;
use crate::time::sm::load_store::l1::Refusal;

counters! {
    /// Counters of the load/store unit of an SM and of the memories beside it.
    L1Stats {
        /// Lanes of loads, stores and atomics on global memory.
        global_lanes,
        /// Lines of global memory that hit in the L1.
        hits,
        /// Lines of global memory that missed.
        misses,
        /// Lines that were in flight already.
        merges,
        /// Loads that bypass the L1, in lines.
        bypasses,
        /// Stores, in lines.
        stores,
        /// Lines that a store evicted from the L1.
        evictions_by_write,
        /// Atomics on global memory, in lines.
        atomics,
        /// Lanes of atomics on global memory.
        atomic_lanes,
        /// Attempts that found no free MSHR.
        refused_mshrs,
        /// Attempts that found no room in the MSHR of their line.
        refused_merges,
        /// Attempts that found every way of their set waiting for data.
        refused_ways,
        /// Pieces that the network had no room for, and their retries after an answer arrived.
        refused_network,
        /// Rows of local memory that hit in the L1.
        local_hits,
        /// Rows of local memory that missed.
        local_misses,
        /// Lines of local memory written back.
        write_backs,
        /// Accesses to shared memory.
        shared_accesses,
        /// Words that lanes read or wrote in shared memory.
        shared_words,
        /// Cycles of shared-memory accesses beyond the first: bank conflicts.
        bank_conflicts,
        /// Lanes of atomics on shared memory.
        shared_atomics,
        /// Lanes that tried to take a lock bit.
        lock_tries,
        /// Lanes that found the lock bit taken.
        lock_failures,
        /// Constant words that hit.
        constant_hits,
        /// Lines of constants that missed.
        constant_misses,
        /// Instruction fetches that hit.
        fetch_hits,
        /// Instruction fetches that missed.
        fetch_misses,
        /// Cycles that operands waited for a register bank.
        register_conflicts,
    }
}

impl L1Stats {
    /// Counts a refused attempt.
    pub fn refuse(&mut self, refusal: Refusal) {
        match refusal {
            Refusal::Mshrs => self.refused_mshrs += 1,
            Refusal::Merges => self.refused_merges += 1,
            Refusal::Ways => self.refused_ways += 1,
            Refusal::Network => self.refused_network += 1,
        }
    }
}
