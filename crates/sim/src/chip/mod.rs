//! The chip as data: read from TOML, overridden key by key, checked before anything runs.

use std::path::Path;

use serde::{Deserialize, Serialize};

pub mod aggregator;
mod check;
pub mod energy;
pub mod spinning;
pub mod timing;

#[cfg(test)]
mod tests;

use crate::chip::aggregator::{AggregatorSpec, YieldSpec};
use crate::chip::energy::EnergySpec;
use crate::chip::spinning::LockQueueSpec;
use crate::chip::timing::*;

/// A chip's configuration.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Chip {
    /// What `--chip` calls it.
    pub name: String,
    /// One line about it.
    pub description: String,
    /// What a launch may ask for.
    pub launch: LaunchLimits,
    /// One streaming multiprocessor.
    pub sm: SmSpec,
    /// Memory sizes.
    pub memory: MemorySpec,
    /// Frequencies.
    pub clock: ClockSpec,
    /// Instruction supply.
    pub fetch: FetchSpec,
    /// Warp schedulers.
    pub issue: IssueSpec,
    /// Register banks and operand collectors.
    pub operands: OperandSpec,
    /// Execution units.
    pub units: UnitSpec,
    /// Shared memory.
    pub shared: SharedSpec,
    /// The lock unit beside shared memory; without the section there is none.
    #[serde(default)]
    pub lock: LockSpec,
    /// Queues of locks in global memory; without the section there are none.
    #[serde(default)]
    pub lock_queue: LockQueueSpec,
    /// The L1 data cache.
    pub l1: L1Spec,
    /// The constant cache.
    pub constant: ConstantSpec,
    /// The network.
    pub interconnect: InterconnectSpec,
    /// The L2 cache.
    pub l2: L2Spec,
    /// Device memory.
    pub dram: DramSpec,
    /// The control processor that runs firmware, if it has one.
    #[serde(default)]
    pub aggregator: Option<AggregatorSpec>,
    /// Wavefront yield, if it can.
    #[serde(default, rename = "yield")]
    pub wavefront_yield: Option<YieldSpec>,
    /// Energies of events.
    pub energy: EnergySpec,
    /// Hang detection.
    pub hang: HangSpec,
}

/// Limits of a launch.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LaunchLimits {
    /// Threads in a CTA.
    pub max_threads_per_cta: u32,
    /// Largest CTA in each dimension.
    pub max_cta_dims: [u32; 3],
    /// Largest grid in each dimension.
    pub max_grid_dims: [u32; 3],
    /// Shared memory of one CTA, static and dynamic.
    pub max_shared_bytes_per_cta: u32,
    /// Bytes of kernel parameters.
    pub max_param_bytes: u32,
    /// Time from the host's call to the first CTA, in nanoseconds. Reported apart from the kernel's cycles.
    pub overhead_ns: u32,
}

/// How threads of a warp that part ways go on.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Divergence {
    /// A stack of masks; paths run one after the other and meet at the immediate post-dominator.
    SimtStack,
    /// Every thread has its own program counter and makes progress.
    IndependentThreads,
}

/// What an SM holds.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SmSpec {
    /// How many there are.
    pub count: u32,
    /// Lanes of a warp: 32 or 64.
    pub warp_lanes: u32,
    /// What happens at a divergent branch.
    pub divergence: Divergence,
    /// Resident threads.
    pub max_threads: u32,
    /// Resident warps.
    pub max_warps: u32,
    /// Resident CTAs.
    pub max_ctas: u32,
    /// 32-bit registers.
    pub registers: u32,
    /// Registers are given to a warp in multiples of this.
    pub register_unit: u32,
    /// Most registers a thread can have; a kernel that needs more would spill.
    pub max_registers_per_thread: u32,
    /// Shared memory.
    pub shared_bytes: u32,
    /// Shared memory is given to a CTA in multiples of this.
    pub shared_unit_bytes: u32,
    /// Named barriers of a CTA.
    pub barriers_per_cta: u32,
}

/// Memory sizes.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MemorySpec {
    /// Device memory.
    pub global_bytes: u64,
    /// Constant memory of a module.
    pub constant_bytes: u32,
    /// Local memory of a thread: its variables and its call stack.
    pub local_bytes_per_thread: u32,
}

/// Why a chip cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ChipError {
    /// No built-in chip of that name, and no such file.
    #[error("no chip `{0}`; built in are {list}; or give the path of a chip file", list = names().join(", "))]
    Unknown(String),
    /// The file cannot be read.
    #[error("cannot read chip file `{path}`: {error}")]
    Read {
        /// The path.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// The text is not a chip.
    #[error("chip `{name}`: {message}")]
    Parse {
        /// Which chip.
        name: String,
        /// What the parser says.
        message: String,
    },
    /// `--set` names a key that the chip does not have, or gives it a value that cannot be.
    #[error("--set {assignment}: {message}")]
    Set {
        /// As given.
        assignment: String,
        /// What is wrong.
        message: String,
    },
    /// A value that no chip can have.
    #[error("chip `{name}`: `{key}` is {value}, but {rule}")]
    Impossible {
        /// Which chip.
        name: String,
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What it must be.
        rule: String,
    },
}

/// The chips that come with Warploom, with their files' text.
pub const BUILT_IN: &[(&str, &str)] = warploom_chips::CHIPS;

/// Names of the built-in chips.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|&(name, _)| name).collect()
}

/// The text of a chip: a built-in one by name, or a file by path.
pub fn text(name_or_path: &str) -> Result<String, ChipError> {
    if let Some((_, text)) = BUILT_IN.iter().find(|&&(name, _)| name == name_or_path) {
        return Ok((*text).to_string());
    }
    if !Path::new(name_or_path).exists() {
        return Err(ChipError::Unknown(name_or_path.to_string()));
    }
    std::fs::read_to_string(name_or_path)
        .map_err(|error| ChipError::Read { path: name_or_path.to_string(), error })
}

impl Chip {
    /// A built-in chip by name, or a chip file by path, with `key.path=value` overrides applied in order.
    pub fn load(name_or_path: &str, overrides: &[String]) -> Result<Chip, ChipError> {
        Chip::parse(name_or_path, &text(name_or_path)?, overrides)
    }

    /// A chip from its text.
    pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Chip, ChipError> {
        let parse_error = |message: String| ChipError::Parse { name: name.to_string(), message };
        let mut table: toml::Table =
            toml::from_str(text).map_err(|e| parse_error(e.to_string().trim_end().to_string()))?;
        // Read once without overrides, so that a mistake is blamed on the file or on the override it is in.
        let _: Chip = toml::from_str(text).map_err(|e| parse_error(e.to_string().trim_end().to_string()))?;
        for assignment in overrides {
            apply(&mut table, assignment)?;
            let _: Chip = table.clone().try_into().map_err(|e: toml::de::Error| ChipError::Set {
                assignment: assignment.clone(),
                message: e.message().to_string(),
            })?;
        }
        let chip: Chip =
            table.try_into().map_err(|e: toml::de::Error| parse_error(e.message().to_string()))?;
        chip.check()?;
        Ok(chip)
    }

    /// Bytes that all channels of the memory together move in a core cycle, at most.
    pub fn peak_dram_bytes_per_cycle(&self) -> f64 {
        let bytes = u64::from(self.dram.bus_bytes) * u64::from(self.dram.transfers_per_clock);
        let clocks = f64::from(self.clock.dram_mhz) / f64::from(self.clock.core_mhz);
        (u64::from(self.l2.partitions) * bytes) as f64 * clocks
    }
}

/// Applies one `path.to.key=value` to a chip's table.
fn apply(table: &mut toml::Table, assignment: &str) -> Result<(), ChipError> {
    let error = |message: String| ChipError::Set { assignment: assignment.to_string(), message };
    let (path, value) =
        assignment.split_once('=').ok_or_else(|| error("write it as path.to.key=value".to_string()))?;
    let value = value.trim();
    // A word that is no TOML value is meant as a string.
    let value = toml::from_str::<toml::Table>(&format!("v = {value}"))
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| toml::Value::String(value.to_string()));
    let (parents, key) = match path.trim().rsplit_once('.') {
        Some((parents, key)) => (parents.split('.').collect(), key),
        None => (Vec::new(), path.trim()),
    };
    let mut at = table;
    for parent in parents {
        let known = at.keys().cloned().collect::<Vec<_>>().join(", ");
        at = at
            .get_mut(parent)
            .and_then(toml::Value::as_table_mut)
            .ok_or_else(|| error(format!("the chip has no section `{parent}`; it has {known}")))?;
    }
    if !at.contains_key(key) {
        let known = at.keys().cloned().collect::<Vec<_>>().join(", ");
        return Err(error(format!("the chip has no key `{key}` there; it has {known}")));
    }
    at.insert(key.to_string(), value);
    Ok(())
}
