//! The section of a chip file with the energy of each event. `docs/energy.md` explains the keys and their sources.

use serde::{Deserialize, Serialize};

macro_rules! energies {
    ($($(#[$doc:meta])* $key:ident,)*) => {
        /// Energy per event, in picojoules (`_pj`), and power drawn all the time, in watts (`_w`).
        #[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
        #[serde(deny_unknown_fields)]
        pub struct EnergySpec {
            $($(#[$doc])* pub $key: f64,)*
        }

        impl EnergySpec {
            /// Full name (`energy.fetch_pj`) and value of each key.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
                [$((concat!("energy.", stringify!($key)), self.$key)),*].into_iter()
            }
        }
    };
}

energies! {
    /// Per access of the instruction cache, which fetches `fetch.width` instructions.
    fetch_pj,
    /// Per warp instruction: decoding, and buffering until it issues.
    decode_pj,
    /// Per warp instruction: scheduler, scoreboard and active mask.
    schedule_pj,
    /// Per 32-bit register of one lane, read and moved to its unit.
    register_read_pj,
    /// Per 32-bit register of one lane, written.
    register_write_pj,
    /// Per lane of an instruction: operand collectors, pipeline latches, result buses.
    pipeline_pj,
    /// Per lane: additions, comparisons, logic and moves.
    int_add_pj,
    /// Per lane: multiplications, with or without an addition.
    int_mul_pj,
    /// Per lane: divisions and remainders.
    int_div_pj,
    /// Per lane, single precision: additions, comparisons and conversions.
    float_add_pj,
    float_mul_pj,
    float_fma_pj,
    /// Per lane, single precision: correctly rounded divisions and roots.
    float_div_pj,
    /// Per lane, double precision: additions, comparisons and conversions.
    double_add_pj,
    double_mul_pj,
    double_fma_pj,
    /// Per lane, double precision: divisions and roots.
    double_div_pj,
    /// Per lane: approximate reciprocal, root, exponential, logarithm, sine.
    special_pj,
    /// Per lane: votes and shuffles.
    exchange_pj,
    /// Per lane: the address of a memory access.
    address_pj,
    /// Per conflict-free pass over the banks of shared memory.
    shared_turn_pj,
    /// Per word that a lane reads or writes in shared memory.
    shared_word_pj,
    /// Per tag lookup in the L1.
    l1_tag_pj,
    /// Per line of the L1 read or written.
    l1_line_pj,
    /// Per access of the constant cache.
    constant_pj,
    /// Per flit between an SM and an L2 slice, either way.
    flit_pj,
    /// Per tag lookup in the L2.
    l2_tag_pj,
    /// Per busy cycle of an L2 slice's port: `l2.port_bytes` read or written.
    l2_port_pj,
    /// Per lane of an atomic at an L2 slice.
    l2_atomic_pj,
    /// Per row activated, with its precharge.
    dram_activate_pj,
    /// Per burst read.
    dram_read_pj,
    /// Per burst written.
    dram_write_pj,
    /// Clocks and idle logic, per SM.
    idle_sm_w,
    /// Clocks and idle logic of everything else: network, L2, memory controllers, and the DRAM's standby power.
    idle_chip_w,
    /// Leakage, per SM.
    leakage_sm_w,
    /// Leakage of everything else.
    leakage_chip_w,
}
