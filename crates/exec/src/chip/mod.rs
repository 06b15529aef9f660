//! A chip's specification: read from TOML, overridden key by key, checked before anything runs.
//!
//! [`Chip`] is one struct per section of a chip file, and unknown keys are refused. `chips/` has the files, with the
//! source of every number. Start at [`Chip::load`].

use std::io::Read;
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

/// A chip's specification.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Chip {
    /// The name that `--chip` takes.
    pub name: String,
    /// One line, for listings.
    pub description: String,
    pub launch: LaunchLimits,
    pub sm: SmSpec,
    pub memory: MemorySpec,
    pub clock: ClockSpec,
    /// The compiler's part of the chip; none without the section.
    #[serde(default)]
    pub compiler: CompilerSpec,
    pub fetch: FetchSpec,
    pub issue: IssueSpec,
    pub operands: OperandSpec,
    pub units: UnitSpec,
    pub shared: SharedSpec,
    /// Lock bits beside shared memory; none without the section.
    #[serde(default)]
    pub lock: LockSpec,
    /// Queues for locks in global memory; none without the section.
    #[serde(default)]
    pub lock_queue: LockQueueSpec,
    pub l1: L1Spec,
    /// Texture units, if the chip has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texture: Option<TextureSpec>,
    pub constant: ConstantSpec,
    pub interconnect: InterconnectSpec,
    pub l2: L2Spec,
    pub atomic: AtomicSpec,
    pub dram: DramSpec,
    /// Clusters of CTAs, if the chip has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterSpec>,
    /// The copy engine of an SM, if the chip has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_engine: Option<CopyEngineSpec>,
    /// The control processor that runs firmware, if the chip has one.
    #[serde(default)]
    pub aggregator: Option<AggregatorSpec>,
    /// Present if wavefronts can yield.
    #[serde(default, rename = "yield")]
    pub wavefront_yield: Option<YieldSpec>,
    pub energy: EnergySpec,
    pub hang: HangSpec,
}

/// What a launch may ask for.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LaunchLimits {
    pub max_threads_per_cta: u32,
    /// In threads, in each dimension.
    pub max_cta_dims: [u32; 3],
    /// In CTAs, in each dimension.
    pub max_grid_dims: [u32; 3],
    /// Static and dynamic shared memory together.
    pub max_shared_bytes_per_cta: u32,
    pub max_param_bytes: u32,
    /// From the host's call to the first CTA. Reported apart from the kernel's cycles.
    pub overhead_ns: u32,
    /// From the start of one CTA to that of the next, on all SMs together; 0: as many start at a time as there is room.
    #[serde(default)]
    pub cta_cycles: f64,
}

/// How the threads of a warp continue after a divergent branch.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Divergence {
    /// A stack of masks: paths run one after the other and reconverge at the immediate post-dominator.
    SimtStack,
    /// Every thread has its own program counter, and every path makes progress.
    IndependentThreads,
}

/// The resources of one streaming multiprocessor.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SmSpec {
    /// SMs on the chip.
    pub count: u32,
    /// 32 or 64.
    pub warp_lanes: u32,
    pub divergence: Divergence,
    /// Resident threads per SM.
    pub max_threads: u32,
    /// Resident warps per SM: its warp slots, at most 64.
    pub max_warps: u32,
    /// Resident CTAs per SM.
    pub max_ctas: u32,
    /// 32-bit registers per SM.
    pub registers: u32,
    /// Registers are allocated to a warp in multiples of this.
    pub register_unit: u32,
    /// A kernel that needs more would spill.
    pub max_registers_per_thread: u32,
    /// Shared memory per SM.
    pub shared_bytes: u32,
    /// Shared memory is allocated to a CTA in multiples of this.
    pub shared_unit_bytes: u32,
    /// Named barriers, 1 to 16.
    pub barriers_per_cta: u32,
}

/// Memory sizes.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MemorySpec {
    /// Device memory.
    pub global_bytes: u64,
    /// Constant memory per module.
    pub constant_bytes: u32,
    /// A thread's local variables and its call stack.
    pub local_bytes_per_thread: u32,
}

/// Why a chip cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ChipError {
    /// Neither a built-in chip nor a file.
    #[error("no chip `{0}`; built in are {list}; or give the path of a chip file", list = names().join(", "))]
    Unknown(String),
    #[error("cannot read chip file `{path}`: {error}")]
    Read { path: String, error: std::io::Error },
    /// The text is not TOML, or its keys are not those of a chip.
    #[error("chip `{name}`: {message}")]
    Parse { name: String, message: String },
    /// `--set` names a key that the chip does not have, or gives it a value of the wrong type.
    #[error("--set {assignment}: {message}")]
    Set { assignment: String, message: String },
    /// A value that the machine cannot be built with.
    #[error("chip `{name}`: `{key}` is {value}, but {rule}")]
    Impossible { name: String, key: String, value: String, rule: String },
}

/// The built-in chips have less than a fiftieth of that. A device such as `/dev/zero` has no end.
const LARGEST_FILE: u64 = 1 << 20;

/// Names and texts of the chips that come with Warploom.
const BUILT_IN: &[(&str, &str)] = warploom_chips::CHIPS;

/// Names of the built-in chips.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|&(name, _)| name).collect()
}

/// The TOML text of a built-in chip, by name, or of a chip file, by path.
pub fn text(name_or_path: &str) -> Result<String, ChipError> {
    if let Some((_, text)) = BUILT_IN.iter().find(|&&(name, _)| name == name_or_path) {
        return Ok((*text).to_string());
    }
    if !Path::new(name_or_path).exists() {
        return Err(ChipError::Unknown(name_or_path.to_string()));
    }
    let cannot = |error| ChipError::Read { path: name_or_path.to_string(), error };
    let mut text = String::new();
    let file = std::fs::File::open(name_or_path).map_err(cannot)?;
    file.take(LARGEST_FILE + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > LARGEST_FILE {
        let message = format!("the file has more than {LARGEST_FILE} bytes");
        return Err(ChipError::Parse { name: name_or_path.to_string(), message });
    }
    Ok(text)
}

impl Chip {
    /// Whether L1s keep values that memory does not have yet.
    pub fn has_coherent_l1s(&self) -> bool {
        self.l1.coherence != Coherence::None
    }

    /// A built-in chip by name, or a chip file by path, with `key.path=value` overrides applied in order.
    pub fn load(name_or_path: &str, overrides: &[String]) -> Result<Chip, ChipError> {
        Chip::parse(name_or_path, &text(name_or_path)?, overrides)
    }

    /// A chip from its TOML text, with overrides as in [`Chip::load`]. `name` is for error messages.
    ///
    /// A text with `base = "NAME"` has the keys in which it differs from that built-in chip.
    pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Chip, ChipError> {
        let parse_error = |message: String| ChipError::Parse { name: name.to_string(), message };
        let mut table: toml::Table =
            toml::from_str(text).map_err(|e| parse_error(e.to_string().trim_end().to_string()))?;
        // Parsed once without overrides, so that an error names the file or the override that causes it.
        if let Some(base) = table.remove("base") {
            table = derive(name, &base, table)?;
            let _: Chip = table
                .clone()
                .try_into()
                .map_err(|e: toml::de::Error| parse_error(e.to_string().trim_end().to_string()))?;
        } else {
            let _: Chip =
                toml::from_str(text).map_err(|e| parse_error(e.to_string().trim_end().to_string()))?;
        }
        for assignment in overrides {
            let unknown = apply(&mut table, assignment)?;
            let _: Chip = table.clone().try_into().map_err(|e: toml::de::Error| ChipError::Set {
                assignment: assignment.clone(),
                message: unknown
                    .filter(|_| e.message().starts_with("unknown field"))
                    .unwrap_or_else(|| with_range(e.message())),
            })?;
        }
        let chip: Chip =
            table.try_into().map_err(|e: toml::de::Error| parse_error(e.message().to_string()))?;
        chip.check()?;
        Ok(chip)
    }

    /// Peak DRAM bandwidth over all channels, in bytes per core cycle.
    pub fn peak_dram_bytes_per_cycle(&self) -> f64 {
        let bytes = u64::from(self.dram.bus_bytes) * u64::from(self.dram.transfers_per_clock);
        let clocks = f64::from(self.clock.dram_mhz) / f64::from(self.clock.core_mhz);
        (u64::from(self.l2.partitions) * bytes) as f64 * clocks
    }
}

/// The keys of a built-in chip, which has no base of its own, with those of `changes` in their place.
fn derive(name: &str, base: &toml::Value, changes: toml::Table) -> Result<toml::Table, ChipError> {
    let text = base.as_str().and_then(|base| BUILT_IN.iter().find(|(name, _)| *name == base));
    let table = text.and_then(|(_, text)| toml::from_str::<toml::Table>(text).ok());
    let Some(mut table) = table.filter(|table| !table.contains_key("base")) else {
        let whole: Vec<_> = BUILT_IN.iter().filter(|(_, text)| !text.contains("\nbase = ")).collect();
        let list = whole.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let message = format!("`base` is {base}, but it must be one of {list}");
        return Err(ChipError::Parse { name: name.to_string(), message });
    };
    lay_over(&mut table, changes);
    Ok(table)
}

/// Replaces values of a table by those of `changes`, section by section.
fn lay_over(table: &mut toml::Table, changes: toml::Table) {
    for (key, value) in changes {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(section)), toml::Value::Table(changes)) => lay_over(section, changes),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// The message of a value that does not fit its type, with the type's range.
fn with_range(message: &str) -> String {
    let ranges = [("expected u32", u64::from(u32::MAX)), ("expected u64", i64::MAX as u64)];
    ranges.into_iter().fold(message.to_string(), |message, (expected, most)| {
        message.replace(expected, &format!("expected a number from 0 to {most}"))
    })
}

/// Applies one `path.to.key=value`. A key that the file does not name may have a default; otherwise the message that is
/// returned tells what is wrong.
fn apply(table: &mut toml::Table, assignment: &str) -> Result<Option<String>, ChipError> {
    let error = |message: String| ChipError::Set { assignment: assignment.to_string(), message };
    let (path, value) =
        assignment.split_once('=').ok_or_else(|| error("write it as path.to.key=value".to_string()))?;
    let value = value.trim();
    // Anything that is not a TOML value is taken as a string.
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
    let unknown = (!at.contains_key(key)).then(|| {
        let known = at.keys().cloned().collect::<Vec<_>>().join(", ");
        format!("the chip has no key `{key}` there; it has {known}")
    });
    at.insert(key.to_string(), value);
    Ok(unknown)
}
