//! Counts of what happened: the probe that every timed launch has, and the counters of the units.

use crate::mem::dram::DramStats;
use crate::mem::interconnect::NetworkStats;
use crate::mem::l1::Refusal;
use crate::mem::l2::PartitionStats;
use crate::probe::{CtaEvent, Probe, State};
use crate::sched::{Issue, WarpSlot};
use crate::sm::decode::{Class, Decoded};
use crate::sm::operation::Operation;

/// What the warps of an SM did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmStats {
    /// Instructions issued, by class.
    pub issued: [u64; Class::ALL.len()],
    /// The same, each counted once for every active lane.
    pub thread_instructions: u64,
    /// The same by what they ask of a lane.
    pub lanes: [u64; Operation::COUNT],
    /// Registers read, each counted once for every active lane.
    pub register_reads: u64,
    /// Registers written, counted alike.
    pub register_writes: u64,
    /// Cycles of resident warps by state.
    pub spent: [u64; State::COUNT],
    /// Of the ready cycles, those in which no unit could take the instruction.
    pub unit_busy: u64,
    /// Cycles of resident warps, counted when CTAs come and go.
    pub warp_cycles: u64,
    /// CTAs run.
    pub ctas: u64,
    /// Cycles in which it had no warp, in a run of firmware.
    pub stalled_on_aggregator: u64,
    /// Lanes that found a wait over, and lanes that found it not.
    pub waits: [u64; 2],
}

impl SmStats {
    /// All instructions issued.
    pub fn warp_instructions(&self) -> u64 {
        self.issued.iter().sum()
    }

    /// Why warps did not issue: cycles of resident warps by reason. With `issued` they make up `warp_cycles`.
    pub fn stalls(&self) -> Vec<(&'static str, u64)> {
        State::ALL
            .iter()
            .flat_map(|&state| match state {
                State::Ready => {
                    let busy = self.unit_busy.min(self.spent[state as usize]);
                    vec![("not_selected", self.spent[state as usize] - busy), ("unit_busy", busy)]
                }
                state => vec![(state.name(), self.spent[state as usize])],
            })
            .collect()
    }

    /// Instructions issued, by class.
    pub fn classes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Class::ALL.iter().map(|&class| (class.name(), self.issued[class as usize]))
    }

    /// Adds another SM's counts.
    pub fn add(&mut self, other: &SmStats) {
        for (a, b) in self.issued.iter_mut().zip(other.issued) {
            *a += b;
        }
        for (a, b) in self.lanes.iter_mut().zip(other.lanes) {
            *a += b;
        }
        for (a, b) in self.spent.iter_mut().zip(other.spent) {
            *a += b;
        }
        for (a, b) in self.waits.iter_mut().zip(other.waits) {
            *a += b;
        }
        self.thread_instructions += other.thread_instructions;
        self.register_reads += other.register_reads;
        self.register_writes += other.register_writes;
        self.unit_busy += other.unit_busy;
        // While CTAs run, it is not a sum yet (see `cta_started`).
        self.warp_cycles = self.warp_cycles.wrapping_add(other.warp_cycles);
        self.ctas += other.ctas;
        self.stalled_on_aggregator += other.stalled_on_aggregator;
    }
}

impl Probe for SmStats {
    #[inline(always)]
    fn issued(&mut self, _now: u64, issue: &Issue, inst: &Decoded) {
        self.issued[inst.class as usize] += 1;
        let lanes = u64::from(issue.lanes.count_ones());
        self.thread_instructions += lanes;
        self.lanes[inst.operation as usize] += lanes;
        self.register_reads += lanes * inst.reads.len() as u64;
        self.register_writes += lanes * u64::from(inst.written);
    }

    #[inline(always)]
    fn spent(&mut self, _slot: WarpSlot, state: State, _from: u64, cycles: u64) {
        self.spent[state as usize] += cycles;
    }

    fn cta_started(&mut self, now: u64, cta: CtaEvent) {
        // Subtracted now and added at the end, so that the sum does not come from the states it is compared with.
        self.warp_cycles = self.warp_cycles.wrapping_sub(now * cta.warps as u64);
        self.ctas += 1;
    }

    fn cta_ended(&mut self, now: u64, cta: CtaEvent) {
        self.warp_cycles = self.warp_cycles.wrapping_add(now * cta.warps as u64);
    }

    fn warp_left(&mut self, now: u64, _slot: WarpSlot) {
        self.warp_cycles = self.warp_cycles.wrapping_add(now);
    }

    fn warp_came_back(&mut self, now: u64, _slot: WarpSlot) {
        self.warp_cycles = self.warp_cycles.wrapping_sub(now);
    }
}

/// Lets the counters of a unit be added up and listed.
macro_rules! add_up {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $name {
            /// Adds another's counts.
            pub fn add(&mut self, other: &$name) {
                $(self.$field += other.$field;)*
            }

            /// Takes off what had been counted before.
            pub fn subtract(&mut self, before: &$name) {
                $(self.$field -= before.$field;)*
            }

            /// Name and value of each count.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }
        }
    };
}

add_up!(PartitionStats {
    reads,
    writes,
    atomics,
    hits,
    misses,
    merges,
    writebacks,
    stall_mshr_cycles,
    stall_line_cycles,
    stall_dram_cycles,
    stall_reply_cycles,
    stall_atomic_cycles,
    atomic_lanes,
    same_word_cycles,
    port_busy_cycles,
    queue_wait_cycles,
});
add_up!(DramStats { reads, writes, row_hits, row_misses, precharges, busy_clocks, wait_clocks, bytes });
add_up!(NetworkStats { packets, flits, queue_cycles, blocked_by_sink });

/// A struct of counters that can be added up and listed.
macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)*
        }

        $crate::stats::add_up!($name { $($field),* });
    };
}
pub(crate) use add_up;
pub(crate) use counters;

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

counters! {
    /// What happened at locks and waits, in lanes.
    LockStats {
        /// Locks taken.
        acquired,
        /// Tries that failed because a thread of the same warp held the lock.
        failed_intra,
        /// Tries that failed because a thread of another warp held it.
        failed_inter,
        /// Waits that found their condition true.
        wait_ok,
        /// Waits that found it false.
        wait_fail,
        /// Failed tries that were queued (`lock_queue.mode`).
        queued,
        /// Those that a lock given back let go.
        granted,
        /// Failed tries that were not queued, because all ways of their set held locked lines.
        not_queued,
    }
}
