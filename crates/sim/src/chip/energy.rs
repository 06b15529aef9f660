//! The part of a chip's configuration that says what its events cost in energy. `docs/energy.md` says what each key means
//! and where its value comes from.

use serde::{Deserialize, Serialize};

macro_rules! energies {
    ($($(#[$doc:meta])* $key:ident,)*) => {
        /// Energies of events, in picojoules, and powers of what goes on all the time, in watts.
        #[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
        #[serde(deny_unknown_fields)]
        pub struct EnergySpec {
            $($(#[$doc])* pub $key: f64,)*
        }

        impl EnergySpec {
            /// Full name and value of each key.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
                [$((concat!("energy.", stringify!($key)), self.$key)),*].into_iter()
            }
        }
    };
}

energies! {
    /// An access of the instruction cache, which brings `fetch.width` instructions.
    fetch_pj,
    /// A warp instruction: decoded and kept until it issues.
    decode_pj,
    /// A warp instruction: chosen, checked by the scoreboard, its mask found.
    schedule_pj,
    /// A 32-bit register of one lane, read and brought to its unit.
    register_read_pj,
    /// The same, written.
    register_write_pj,
    /// An instruction of one lane on its way: collectors, latches between the stages, buses for results.
    pipeline_pj,
    /// Additions, comparisons, logic and moves, a lane.
    int_add_pj,
    /// Multiplications, with or without an addition.
    int_mul_pj,
    /// Divisions and remainders.
    int_div_pj,
    /// Additions, comparisons and conversions in single precision.
    float_add_pj,
    /// Multiplications.
    float_mul_pj,
    /// Multiplications with an addition.
    float_fma_pj,
    /// Divisions and roots that are rounded.
    float_div_pj,
    /// Additions, comparisons and conversions in double precision.
    double_add_pj,
    /// Multiplications.
    double_mul_pj,
    /// Multiplications with an addition.
    double_fma_pj,
    /// Divisions and roots.
    double_div_pj,
    /// Approximations of reciprocal, root, exponential, logarithm, sine.
    special_pj,
    /// Votes and shuffles.
    exchange_pj,
    /// The address of a lane's access to memory.
    address_pj,
    /// A turn of shared memory.
    shared_turn_pj,
    /// A word that a lane reads or writes there.
    shared_word_pj,
    /// A look into the L1's tags.
    l1_tag_pj,
    /// A line of the L1 read or written.
    l1_line_pj,
    /// An access of the constant cache.
    constant_pj,
    /// A flit from an SM to an L2 slice, or back.
    flit_pj,
    /// A look into the L2's tags.
    l2_tag_pj,
    /// A cycle of an L2 slice's port: `l2.port_bytes` read or written.
    l2_port_pj,
    /// A lane of an atomic at an L2 slice.
    l2_atomic_pj,
    /// A row opened, and closed some time.
    dram_activate_pj,
    /// A burst read.
    dram_read_pj,
    /// A burst written.
    dram_write_pj,
    /// Clocks and idle logic of an SM.
    idle_sm_w,
    /// The same of the rest: network, L2, memory controllers, and the memory's standby.
    idle_chip_w,
    /// Leakage of an SM.
    leakage_sm_w,
    /// Leakage of the rest.
    leakage_chip_w,
}
