//! The sweep file: which runs there are.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use warploom::{Chip, policies};

use super::SweepError;
use super::table::is_figure;
use crate::kernel::KernelFile;
use crate::plan::{Plan, PlanFile, PlanProblem, PlanTable};
use crate::runs::{Key, Limits, Run, Setting};
use crate::work::Workload;

/// A sweep as its file describes it.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Distinguishes the folders of sweeps.
    pub name: String,
    pub limits: Limits,
    /// Runs are measured by line and by lock, too.
    profile: bool,
    /// The folder that its files are relative to.
    base: PathBuf,
    /// What runs, each with the axes that only it has.
    targets: Vec<(Target, Vec<Axis>)>,
    /// The axes of all, the slowest first.
    axes: Vec<Axis>,
    skip: Vec<Vec<(String, Condition)>>,
}

#[derive(Clone, Debug)]
enum Target {
    Work(&'static Workload),
    /// The plan, and the folder of its files, relative to the sweep's.
    Plan(Box<PlanFile>, PathBuf),
}

/// A setting of a run as a file or a table has it.
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    Number(i64),
    Float(f64),
    Flag(bool),
    Text(String),
}

/// Columns that vary together, and their values.
#[derive(Clone, Debug)]
struct Axis {
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// What a filter asks of a column.
#[derive(Clone, Debug)]
enum Condition {
    OneOf(Vec<Cell>),
    Between { min: Option<Bound>, max: Option<Bound> },
}

/// An end of a range: a number, or the value of another column.
#[derive(Clone, Debug)]
enum Bound {
    Number(f64),
    Column(String),
}

/// One run of a sweep.
#[derive(Clone, Debug)]
pub struct Planned {
    pub run: Run,
    pub key: Key,
    /// Its settings by column, in the order of the axes.
    pub settings: Vec<(String, Cell)>,
}

impl Planned {
    pub fn setting(&self, column: &str) -> Option<&Cell> {
        self.settings.iter().find(|(name, _)| name == column).map(|(_, cell)| cell)
    }
}

/// The file's keys. Values that can be lists or ranges are looked at later, for messages that name them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    work: Option<Value>,
    kernel: Option<PlanTable>,
    plan: Option<String>,
    chip: Option<Value>,
    model: Option<Value>,
    sched: Option<Value>,
    bows: Option<Value>,
    max_cycles: Option<Value>,
    #[serde(default)]
    profile: bool,
    seeds: Option<Value>,
    #[serde(default)]
    params: Table,
    #[serde(default)]
    set: Table,
    #[serde(default)]
    zip: Vec<Table>,
    #[serde(default)]
    skip: Vec<Table>,
    #[serde(default)]
    limits: LimitsTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    time_s: Option<f64>,
    memory_mb: Option<u64>,
}

/// What a range or a number of seeds may have at most.
const MOST_VALUES: i64 = 10_000_000;

/// Columns that every sweep can have, besides its parameters and `set.` keys.
const COMMON: [&str; 5] = ["chip", "model", "sched", "bows", "max_cycles"];

/// What [`bows`](apply) can be besides a number of cycles.
const BOWS: [&str; 3] = ["off", "on", "adaptive"];

impl Sweep {
    /// Reads a sweep file. What it names relative to its folder is found there.
    pub fn read(path: &Path) -> Result<Sweep, SweepError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            SweepError::new(format!("cannot read `{}`: {error}", path.display()))
                .help("`warploom sweep --help` shows a sweep file")
        })?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let base = path.parent().unwrap_or(Path::new(""));
        Sweep::parse(&text, &stem, base).map_err(|error| error.within(path))
    }

    /// The sweep of a text; `name` is its name unless the text has one.
    pub fn parse(text: &str, name: &str, base: &Path) -> Result<Sweep, SweepError> {
        let file: File =
            toml::from_str(text).map_err(|error| SweepError::new(error.to_string().trim_end()))?;
        let targets = targets(&file, text, base)?;
        let mut axes = Vec::new();
        for (name, value) in
            COMMON.iter().zip([&file.chip, &file.model, &file.sched, &file.bows, &file.max_cycles])
        {
            if let Some(value) = value {
                axes.push(axis(name, value)?);
            }
        }
        for (key, value) in leaves(&file.set, "from") {
            axes.push(axis(&format!("set.{key}"), value)?);
        }
        for table in &file.zip {
            axes.push(zipped(table)?);
        }
        for (name, value) in &file.params {
            axes.push(axis(name, value)?);
        }
        if let Some(value) = &file.seeds {
            axes.push(match value.as_integer() {
                Some(count @ 1..=MOST_VALUES) => Axis::one("seed", (1..=count).map(Cell::Number).collect()),
                Some(count @ 1..) => {
                    return Err(SweepError::new(format!(
                        "seeds = {count}: that is more than ten million runs"
                    ))
                    .help("write fewer, or a list of them"));
                }
                Some(count) => {
                    return Err(SweepError::new(format!("seeds = {count}: that is no run at all"))
                        .help("write how many seeds there are, from 1 on, or a list of them"));
                }
                None => axis("seed", value)?,
            });
        }
        // Seeds vary fastest: a table then has the repetitions of one setting together.
        axes.sort_by_key(|axis| axis.columns == ["seed"]);
        let skip = file.skip.iter().map(conditions).collect::<Result<Vec<_>, _>>()?;
        let no_room = |name: &str| {
            SweepError::new(format!("limits.{name} allows no run")).help("leave it out for no limit")
        };
        if file.limits.time_s.is_some_and(|time_s| time_s.is_nan() || time_s <= 0.0) {
            return Err(no_room("time_s"));
        }
        if file.limits.memory_mb == Some(0) {
            return Err(no_room("memory_mb"));
        }
        let limits = Limits {
            time_s: file.limits.time_s,
            memory_bytes: file.limits.memory_mb.map(|mb| mb.saturating_mul(1_000_000)),
        };
        let name = file.name.unwrap_or_else(|| name.to_string());
        let sweep =
            Sweep { name, limits, profile: file.profile, base: base.to_path_buf(), targets, axes, skip };
        sweep.check_columns()?;
        Ok(sweep)
    }

    /// How many combinations there are, before filters.
    pub fn combinations(&self) -> u128 {
        let product = |axes: &[Axis]| {
            axes.iter().fold(1u128, |product, axis| product.saturating_mul(axis.rows.len() as u128))
        };
        let own: u128 = self.targets.iter().map(|(_, own)| product(own)).sum();
        own.saturating_mul(product(&self.axes))
    }

    /// The sizes of the axes: `3 sched × 7 buckets × 20 seed`.
    pub fn shape(&self) -> String {
        let size = |axis: &Axis| format!("{} {}", axis.rows.len(), axis.columns.join("+"));
        let of = |axes: &[Axis]| axes.iter().filter(|axis| axis.rows.len() > 1).map(size).collect::<Vec<_>>();
        let targets: Vec<String> = self
            .targets
            .iter()
            .map(|(target, own)| {
                std::iter::once(target.to_string()).chain(of(own)).collect::<Vec<_>>().join(" × ")
            })
            .collect();
        let targets = match targets.len() {
            1 => targets.concat(),
            _ => format!("({})", targets.join(" + ")),
        };
        std::iter::once(targets).chain(of(&self.axes)).collect::<Vec<_>>().join(" × ")
    }

    /// All columns that settings can have, in the order of tables.
    pub fn columns(&self) -> Vec<String> {
        let own = self.targets.iter().flat_map(|(_, own)| own);
        let mut columns: Vec<String> = Vec::new();
        let target =
            if matches!(self.targets.first(), Some((Target::Work(_), _))) { "work" } else { "kernel_file" };
        columns.push(target.to_string());
        for column in
            self.axes.iter().filter(|axis| axis.columns != ["seed"]).chain(own).flat_map(|a| &a.columns)
        {
            if !columns.contains(column) {
                columns.push(column.clone());
            }
        }
        columns.extend(self.axes.iter().any(|axis| axis.columns == ["seed"]).then(|| "seed".to_string()));
        columns
    }

    /// All runs, in the order of the axes. Every one has been checked as far as that goes without running it.
    pub fn runs(&self) -> Result<Vec<Planned>, SweepError> {
        let mut planned = Vec::new();
        let mut chips = BTreeSet::new();
        let mut of_files = BTreeMap::new();
        for (target, own) in &self.targets {
            let axes: Vec<&Axis> = own.iter().chain(&self.axes).collect();
            let mut at = vec![0; axes.len()];
            loop {
                let mut settings = vec![target.setting()];
                for (axis, at) in axes.iter().zip(&at) {
                    settings.extend(axis.columns.iter().cloned().zip(axis.rows[*at].iter().cloned()));
                }
                if !self.skip.iter().any(|conditions| conditions.iter().all(|(c, is)| is.holds(c, &settings)))
                {
                    let run = self.run(target, &settings, &mut of_files)?;
                    self.check_chip(&run, &mut chips)?;
                    let key = run.key();
                    planned.push(Planned { run, key, settings });
                }
                // The last axis varies fastest.
                let Some(turn) = (0..at.len()).rev().find(|&axis| at[axis] + 1 < axes[axis].rows.len())
                else {
                    break;
                };
                at[turn] += 1;
                at[turn + 1..].fill(0);
            }
        }
        match planned.is_empty() {
            true => Err(SweepError::new("the filters leave no run").help("[[skip]] names what is left out")),
            false => Ok(planned),
        }
    }

    /// Finds kernels and data that are not there before the first run needs them.
    pub fn check_files(&self, planned: &[Planned]) -> Result<(), SweepError> {
        let files: BTreeSet<PathBuf> = planned.iter().flat_map(|planned| planned.run.files()).collect();
        match files.iter().find(|file| !self.base.join(file).is_file()) {
            Some(missing) => {
                Err(SweepError::new(format!("there is no file `{}`", missing.display())).help(format!(
                    "paths are relative to the folder of the sweep file, `{}`",
                    if self.base.as_os_str().is_empty() { Path::new(".") } else { &self.base }.display()
                )))
            }
            None => Ok(()),
        }
    }

    /// `known` has the chips of kernel files.
    fn run(
        &self,
        target: &Target,
        settings: &[(String, Cell)],
        known: &mut BTreeMap<PathBuf, &'static str>,
    ) -> Result<Run, SweepError> {
        let given: Vec<_> = settings.iter().skip(1).collect();
        let params = given.iter().filter(|(name, _)| is_param(name));
        let mut run = match target {
            Target::Work(workload) => {
                let texts: Vec<String> =
                    params.clone().map(|(name, cell)| format!("{name}={cell}")).collect();
                let values = workload.values(&texts).map_err(|error| SweepError::new(error.to_string()))?;
                let run = Run::work(workload.name).chip(workload.chip(&values));
                params.fold(run, |run, (name, cell)| match cell {
                    Cell::Number(number) => run.with(name, *number),
                    other => run.with(name, Setting::Word(other.to_string())),
                })
            }
            Target::Plan(plan, folder) => {
                let params: Vec<(String, String)> =
                    params.map(|(name, cell)| (name.clone(), cell.to_string())).collect();
                let plan = plan.plan(&params, folder)?;
                let chip = self.chip_of(&plan, known);
                Run::plan(plan).chip(chip)
            }
        };
        for (column, cell) in given {
            run = apply(run, column, cell)?;
        }
        if self.profile {
            for (model, reason) in [("functional", "has no time"), ("fast", "times only parts of a run")] {
                if settings.contains(&("model".to_string(), Cell::Text(model.to_string()))) {
                    let message = format!("profile = true: the {model} model {reason} to profile");
                    return Err(
                        SweepError::new(message).help(format!("leave out `profile`, or the {model} model"))
                    );
                }
            }
            run = run.profile();
        }
        Ok(run.relative_to(&self.base))
    }

    /// The chip of a plan's kernels, if the sweep names none. Files that cannot be read are told later.
    fn chip_of(&self, plan: &Plan, known: &mut BTreeMap<PathBuf, &'static str>) -> &'static str {
        if self.axes.iter().any(|axis| axis.columns.iter().any(|column| column == "chip")) {
            return "gtx480";
        }
        let (file, options) = plan.kernel_file();
        let chip = || KernelFile::read(&self.base.join(&file), &options).map_or("gtx480", |file| file.chip());
        known.entry(file.clone()).or_insert_with(chip)
    }

    /// Each chip with its changes is loaded once, to find mistakes before the first run.
    fn check_chip(&self, run: &Run, known: &mut BTreeSet<(String, Vec<String>)>) -> Result<(), SweepError> {
        let (chip, set) = run.chip_and_changes();
        if known.insert((chip.clone(), set.to_vec())) {
            Chip::load(&chip, set).map_err(|error| {
                SweepError::new(error.to_string())
                    .help("`warploom chips` lists the chips, `warploom chips NAME` every key of one")
            })?;
        }
        Ok(())
    }

    /// No column twice, and filters only on columns that there are.
    fn check_columns(&self) -> Result<(), SweepError> {
        for (_, own) in &self.targets {
            let mut seen = BTreeSet::new();
            for column in own.iter().chain(&self.axes).flat_map(|axis| &axis.columns) {
                if is_param(column) && is_figure(column) {
                    return Err(SweepError::new(format!(
                        "parameter `{column}` has the name of a figure of the results"
                    ))
                    .help("give it another name"));
                }
                if !seen.insert(column) {
                    return Err(SweepError::new(format!("`{column}` is given twice"))
                        .help("a column has one place: a key of its own, a parameter, or a [[zip]]"));
                }
            }
        }
        let columns = self.columns();
        let is_known = |column: &String| match columns.contains(column) {
            true => Ok(()),
            false => Err(SweepError::new(format!("[[skip]] names `{column}`, which is no column"))
                .help(format!("the columns are {}", columns.join(", ")))),
        };
        for (column, condition) in self.skip.iter().flatten() {
            is_known(column)?;
            if let Condition::Between { min, max } = condition {
                for bound in [min, max].into_iter().flatten() {
                    if let Bound::Column(column) = bound {
                        is_known(column)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn targets(file: &File, text: &str, base: &Path) -> Result<Vec<(Target, Vec<Axis>)>, SweepError> {
    let find = |name: &str| {
        let found = Workload::find(name).map_err(|error| SweepError::new(error.to_string()));
        found.map(Target::Work)
    };
    let one = |target| Ok(vec![(target, Vec::new())]);
    let work = match (&file.work, &file.kernel, &file.plan) {
        (Some(work), None, None) => work,
        (None, Some(kernel), None) => {
            return one(Target::Plan(Box::new(PlanFile::of_table(text, kernel.clone())), PathBuf::new()));
        }
        (None, None, Some(plan)) => {
            let path = base.join(plan);
            let of_plan = |problem: PlanProblem| SweepError::from(problem).within(&path);
            let folder = Path::new(plan).parent().unwrap_or(Path::new("")).to_path_buf();
            return one(Target::Plan(Box::new(PlanFile::read(&path).map_err(of_plan)?), folder));
        }
        (None, None, None) => {
            return Err(SweepError::new("there is none of `work`, `kernel` and `plan`").help(
                "add work = \"hashtable\" (`warploom work --list` shows all), a [kernel] with its file and launches, \
                 or plan = \"bfs.toml\"",
            ));
        }
        _ => {
            return Err(SweepError::new("there is more than one of `work`, `kernel` and `plan`")
                .help("a sweep runs either workloads or the kernels of a file; make two sweeps"));
        }
    };
    match work {
        Value::String(name) => Ok(vec![(find(name)?, Vec::new())]),
        Value::Array(names) if !names.is_empty() => names
            .iter()
            .map(|name| match name.as_str() {
                Some(name) => Ok((find(name)?, Vec::new())),
                None => Err(SweepError::new(format!("work: `{name}` is no name of a workload"))),
            })
            .collect(),
        Value::Table(table) if !table.is_empty() => table
            .iter()
            .map(|(name, params)| {
                let Some(params) = params.as_table() else {
                    return Err(SweepError::new(format!("work.{name}: its parameters are missing"))
                        .help(format!("write [work.{name}], and its parameters below")));
                };
                let axes = params.iter().map(|(name, value)| axis(name, value));
                Ok((find(name)?, axes.collect::<Result<_, _>>()?))
            })
            .collect(),
        _ => Err(SweepError::new("`work` is no name of a workload, and no list of names")),
    }
}

impl Target {
    fn setting(&self) -> (String, Cell) {
        match self {
            Target::Work(workload) => ("work".to_string(), Cell::Text(workload.name.to_string())),
            Target::Plan(plan, _) => ("kernel_file".to_string(), Cell::Text(plan.kernel_file().to_string())),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Work(workload) => f.write_str(workload.name),
            Target::Plan(plan, _) => f.write_str(plan.kernel_file()),
        }
    }
}

/// Whether a column is a parameter of a workload or kernel.
fn is_param(column: &str) -> bool {
    !COMMON.contains(&column) && !column.starts_with("set.")
}

/// Gives a run a setting that is no parameter.
fn apply(run: Run, column: &str, cell: &Cell) -> Result<Run, SweepError> {
    let wrong = |wanted: String| SweepError::new(format!("{column} = {cell}: it is {wanted}"));
    Ok(match (column, cell) {
        ("chip", Cell::Text(chip)) => run.chip(chip),
        ("chip", _) => return Err(wrong("the name of a chip or the path of a chip file".to_string())),
        ("model", Cell::Text(model)) if model == "timing" => run,
        ("model", Cell::Text(model)) if model == "functional" => run.functional(),
        ("model", Cell::Text(model)) if model == "fast" => run.fast(),
        ("model", _) => return Err(wrong("\"timing\", \"fast\" or \"functional\"".to_string())),
        ("sched", Cell::Text(sched)) if policies().iter().any(|(name, _)| name == sched) => run.sched(sched),
        ("sched", _) => {
            let known: Vec<_> = policies().iter().map(|&(name, _)| format!("{name:?}")).collect();
            return Err(wrong(format!("one of {}", known.join(", "))));
        }
        ("bows", Cell::Text(word)) if word == "off" => run.set("issue.bows.enabled", false),
        ("bows", Cell::Text(word)) if word == "on" => run.set("issue.bows.enabled", true),
        ("bows", Cell::Text(word)) if word == "adaptive" => {
            run.set("issue.bows.enabled", true).set("issue.bows.adaptive", true)
        }
        ("bows", Cell::Number(cycles)) if *cycles >= 0 => run
            .set("issue.bows.enabled", true)
            .set("issue.bows.adaptive", false)
            .set("issue.bows.limit_cycles", cycles),
        ("bows", _) => {
            return Err(wrong(format!(
                "one of {}, or a number of cycles",
                BOWS.map(|w| format!("{w:?}")).join(", ")
            )));
        }
        ("max_cycles", Cell::Number(cycles)) if *cycles > 0 => run.max_cycles(*cycles as u64),
        ("max_cycles", _) => return Err(wrong("a number of cycles".to_string())),
        (column, cell) => match column.strip_prefix("set.") {
            Some(key) => run.set(key, cell),
            None => run,
        },
    })
}

impl Axis {
    fn one(column: &str, values: Vec<Cell>) -> Axis {
        Axis {
            columns: vec![column.to_string()],
            rows: values.into_iter().map(|value| vec![value]).collect(),
        }
    }
}

/// A value, a list, or a range as an axis.
fn axis(column: &str, value: &Value) -> Result<Axis, SweepError> {
    let values = match value {
        Value::Array(list) => list.iter().map(|value| cell(column, value)).collect::<Result<_, _>>()?,
        Value::Table(table) => range(column, table)?,
        one => vec![cell(column, one)?],
    };
    if values.is_empty() {
        return Err(SweepError::new(format!("`{column}` has no values")).help("a list needs one at least"));
    }
    let mut seen = HashSet::new();
    // A range has each value once.
    if let Value::Array(_) = value
        && let Some(twice) = values.iter().find(|value| !seen.insert(format!("{value:?}")))
    {
        return Err(SweepError::new(format!("`{column}` has {twice} twice"))
            .help("each run is executed once; for repetitions write seeds = 5"));
    }
    Ok(Axis::one(column, values))
}

fn cell(column: &str, value: &Value) -> Result<Cell, SweepError> {
    Ok(match value {
        Value::Integer(number) => Cell::Number(*number),
        Value::Float(number) => Cell::Float(*number),
        Value::Boolean(flag) => Cell::Flag(*flag),
        Value::String(text) => Cell::Text(text.clone()),
        other => return Err(SweepError::new(format!("`{column}`: {other} is no number and no text"))),
    })
}

/// `{ from = 16, to = 1024, times = 2 }` or `{ from = 0, to = 10, step = 5 }`.
fn range(column: &str, table: &Table) -> Result<Vec<Cell>, SweepError> {
    let wrong = |message: String| {
        let help = "a range is { from = 1, to = 9, step = 2 } or { from = 16, to = 1024, times = 2 }";
        SweepError::new(format!("`{column}`: {message}")).help(help)
    };
    if let Some(key) = table.keys().find(|key| !["from", "to", "step", "times"].contains(&key.as_str())) {
        return Err(wrong(format!("a range has no `{key}`")));
    }
    let number = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(value) => match value.as_float().or_else(|| value.as_integer().map(|number| number as f64)) {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(format!("`{key}` is no number"))),
        },
    };
    let missing = |key: &str| wrong(format!("`{key}` is missing"));
    let from = number("from")?.ok_or_else(|| missing("from"))?;
    let to = number("to")?.ok_or_else(|| missing("to"))?;
    let (step, times) = (number("step")?, number("times")?);
    let whole = table.values().all(|value| value.is_integer());
    if step.is_some() && times.is_some() {
        return Err(wrong("it has both `step` and `times`".to_string()));
    }
    if step.is_some_and(|step| step <= 0.0) || times.is_some_and(|times| times <= 1.0 || from <= 0.0) {
        return Err(wrong("it would never end".to_string()));
    }
    let step = step.unwrap_or(1.0);
    let count = match times {
        Some(times) => ((to / from).ln() / times.ln() + 1e-9).floor(),
        None => ((to - from) / step + 1e-9).floor(),
    };
    if count.is_nan() || count < 0.0 {
        return Err(wrong(format!("there is nothing from {from} to {to}")));
    }
    if count > MOST_VALUES as f64 {
        return Err(wrong(format!("from {from} to {to} are more than ten million values")));
    }
    let value = |i: usize| match times {
        Some(times) => from * times.powi(i as i32),
        None => from + step * i as f64,
    };
    let values = (0..=count as usize).map(value);
    Ok(values
        .map(|value| if whole { Cell::Number(value.round() as i64) } else { Cell::Float(value) })
        .collect())
}

/// The leaves of nested tables by their dotted keys: `sm.count = 1` and `"sm.count" = 1` are the same. A table with
/// the key `leaf` is one.
fn leaves<'a>(table: &'a Table, leaf: &str) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if !inner.contains_key(leaf) && !inner.contains_key("max") => {
                found.extend(
                    leaves(inner, leaf).into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)),
                );
            }
            _ => found.push((key.clone(), value)),
        }
    }
    found
}

fn zipped(table: &Table) -> Result<Axis, SweepError> {
    let columns = leaves(table, "from");
    let axes = columns.iter().map(|(name, value)| {
        let list = match value {
            Value::Array(list) => {
                list.iter().map(|value| cell(name, value)).collect::<Result<Vec<_>, _>>()?
            }
            Value::Table(table) => range(name, table)?,
            other => return Err(SweepError::new(format!("[[zip]]: `{name}` is {other}, not a list"))),
        };
        Ok((name.clone(), list))
    });
    let axes: Vec<(String, Vec<Cell>)> = axes.collect::<Result<_, _>>()?;
    let count = axes.first().map_or(0, |(_, list)| list.len());
    if axes.iter().any(|(_, list)| list.len() != count) {
        let sizes: Vec<_> = axes.iter().map(|(name, list)| format!("{name} has {}", list.len())).collect();
        return Err(SweepError::new(format!("[[zip]]: {}", sizes.join(", ")))
            .help("columns that vary together have as many values each"));
    }
    if count == 0 {
        return Err(SweepError::new("[[zip]] has no values"));
    }
    let rows = (0..count).map(|row| axes.iter().map(|(_, list)| list[row].clone()).collect()).collect();
    Ok(Axis { columns: axes.into_iter().map(|(name, _)| name).collect(), rows })
}

fn conditions(table: &Table) -> Result<Vec<(String, Condition)>, SweepError> {
    leaves(table, "min")
        .into_iter()
        .map(|(column, value)| Ok((column.clone(), condition(&column, value)?)))
        .collect()
}

fn condition(column: &str, value: &Value) -> Result<Condition, SweepError> {
    Ok(match value {
        Value::Array(list) => {
            Condition::OneOf(list.iter().map(|value| cell(column, value)).collect::<Result<_, _>>()?)
        }
        Value::Table(table) => {
            let bound = |key: &str| match table.get(key) {
                None => Ok(None),
                Some(Value::String(column)) => Ok(Some(Bound::Column(column.clone()))),
                Some(value) => {
                    match value.as_float().or_else(|| value.as_integer().map(|number| number as f64)) {
                        Some(number) => Ok(Some(Bound::Number(number))),
                        None => Err(SweepError::new(format!(
                            "[[skip]]: `{key}` of `{column}` is no number and no column"
                        ))),
                    }
                }
            };
            if let Some(key) = table.keys().find(|key| !["min", "max"].contains(&key.as_str())) {
                return Err(SweepError::new(format!("[[skip]]: `{column}` has no `{key}`"))
                    .help("write a value, a list of values, or { min = 1, max = 9 }"));
            }
            Condition::Between { min: bound("min")?, max: bound("max")? }
        }
        one => Condition::OneOf(vec![cell(column, one)?]),
    })
}

impl Condition {
    fn holds(&self, column: &str, settings: &[(String, Cell)]) -> bool {
        let value = |column: &str| settings.iter().find(|(name, _)| name == column).map(|(_, cell)| cell);
        let Some(cell) = value(column) else { return false };
        let bound = |bound: &Option<Bound>, open: f64| match bound {
            None => Some(open),
            Some(Bound::Number(number)) => Some(*number),
            Some(Bound::Column(column)) => value(column).and_then(Cell::number),
        };
        match self {
            Condition::OneOf(cells) => cells.contains(cell),
            Condition::Between { min, max } => {
                match (cell.number(), bound(min, f64::NEG_INFINITY), bound(max, f64::INFINITY)) {
                    (Some(number), Some(min), Some(max)) => (min..=max).contains(&number),
                    _ => false,
                }
            }
        }
    }
}

impl Cell {
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Cell::Number(number) => Some(*number as f64),
            Cell::Float(number) => Some(*number),
            Cell::Flag(_) | Cell::Text(_) => None,
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Number(number) => write!(f, "{number}"),
            Cell::Float(number) => write!(f, "{number:?}"),
            Cell::Flag(flag) => write!(f, "{flag}"),
            Cell::Text(text) => f.write_str(text),
        }
    }
}

impl From<PlanProblem> for SweepError {
    fn from(problem: PlanProblem) -> SweepError {
        SweepError { message: problem.to_string(), help: problem.help }
    }
}

#[cfg(test)]
mod tests;
