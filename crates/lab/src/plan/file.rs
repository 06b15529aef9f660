//! The file of a plan, with the lines of its mistakes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use toml::{Spanned, Table, Value};

use super::{Expected, ITERATION, Plan, PlanProblem, PlannedLaunch, PlannedLoop, Step, Word};
use crate::kernel::parse_dims;

/// A plan as its file has it. Texts may have `{name}` for the value of a parameter.
#[derive(Clone, Debug)]
pub struct PlanFile {
    /// For the lines of mistakes.
    text: String,
    table: PlanTable,
}

/// The keys of a plan. A sweep file has them as `[kernel]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanTable {
    file: Spanned<String>,
    arch: Option<String>,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    params: Table,
    #[serde(default)]
    buffers: BTreeMap<String, Spanned<String>>,
    launch: Vec<Spanned<LaunchTable>>,
    #[serde(default)]
    check: BTreeMap<String, Spanned<Value>>,
}

/// A launch, or a loop if it has `until_zero`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LaunchTable {
    entry: Option<String>,
    grid: Option<Value>,
    block: Option<Value>,
    shared_bytes: Option<Value>,
    #[serde(default)]
    args: Vec<Spanned<String>>,
    times: Option<Value>,
    #[serde(default)]
    fill: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    swap: Vec<[String; 2]>,
    until_zero: Option<String>,
    at_most: Option<Value>,
    #[serde(default)]
    launch: Vec<Spanned<LaunchTable>>,
}

/// Iterations of a loop that names no limit.
const AT_MOST: u32 = 1_000;

impl PlanFile {
    pub fn read(path: &Path) -> Result<PlanFile, PlanProblem> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| PlanProblem::new(format!("cannot read the plan: {error}")))?;
        PlanFile::parse(&text)
    }

    pub fn parse(text: &str) -> Result<PlanFile, PlanProblem> {
        // TOML's own message has the line, and shows it.
        let table = toml::from_str(text).map_err(|error| PlanProblem::new(error.to_string().trim_end()))?;
        Ok(PlanFile::of_table(text, table))
    }

    /// A plan that is a table of a larger text.
    pub(crate) fn of_table(text: &str, table: PlanTable) -> PlanFile {
        PlanFile { text: text.to_string(), table }
    }

    /// What the plan calls its kernel file.
    pub fn kernel_file(&self) -> &str {
        self.table.file.get_ref()
    }

    /// The plan with the values of parameters in the place of their names; `params` win over those of the file.
    /// `folder` is where its files are, relative to the run's folder.
    pub fn plan(&self, params: &[(String, String)], folder: &Path) -> Result<Plan, PlanProblem> {
        let PlanTable { file, arch, flags, buffers, launch, check, .. } = &self.table;
        let mut values = Values { all: self.params(params)?, used: BTreeSet::new() };
        let problem = |place: usize| move |problem: PlanProblem| problem.at(&self.text, place);
        let mut plan = Plan {
            folder: folder.to_path_buf(),
            file: values.fill(file.get_ref()).map_err(problem(file.span().start))?,
            arch: arch.as_ref().map(|arch| values.fill(arch)).transpose()?,
            flags: flags.iter().map(|flag| values.fill(flag)).collect::<Result<_, _>>()?,
            buffers: BTreeMap::new(),
            steps: Vec::new(),
            checks: BTreeMap::new(),
        };
        for (name, text) in buffers {
            let filled = values.fill(text.get_ref()).map_err(problem(text.span().start))?;
            plan.buffers.insert(name.clone(), filled);
        }
        for (name, text) in buffers {
            plan.check_buffer(name).map_err(problem(text.span().start))?;
        }
        for (name, value) in check {
            let problem = problem(value.span().start);
            let expected = expected(value.get_ref(), &mut values).map_err(problem)?;
            plan.check_content(name, &expected.content).map_err(problem)?;
            plan.checks.insert(name.clone(), expected);
        }
        plan.steps = self.steps(launch, &plan, &mut values, false)?;
        if Plan::launches_nothing(&plan.steps) {
            return Err(PlanProblem::new("the plan launches nothing").help("add [[launch]] with its grid"));
        }
        match values.all.keys().find(|name| !values.used.contains(name.as_str())) {
            None => Ok(plan),
            Some(name) => Err(PlanProblem::new(format!("parameter `{name}` is used nowhere"))
                .help(format!("write {{{name}}} in the kernel's file, buffers, shapes or arguments"))),
        }
    }

    /// The parameters of the file, with those given in their place.
    fn params(&self, given: &[(String, String)]) -> Result<BTreeMap<String, String>, PlanProblem> {
        let mut all = BTreeMap::new();
        for (name, value) in &self.table.params {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Integer(_) | Value::Float(_) => value.to_string(),
                other => {
                    return Err(PlanProblem::new(format!(
                        "parameter `{name}` is {other}: it is a number or a text"
                    ))
                    .help("lists and ranges are for the [params] of a sweep"));
                }
            };
            if text.contains('{') {
                return Err(PlanProblem::new(format!("parameter `{name}` is `{text}`: it names another"))
                    .help("values of parameters are put in as they are; write this one out"));
            }
            all.insert(name.clone(), text);
        }
        all.extend(given.iter().cloned());
        Ok(all)
    }

    fn steps(
        &self,
        tables: &[Spanned<LaunchTable>],
        plan: &Plan,
        values: &mut Values,
        in_loop: bool,
    ) -> Result<Vec<Step>, PlanProblem> {
        let each = tables.iter().map(|table| {
            let place = table.span().start;
            self.step(table.get_ref(), plan, values, in_loop).map_err(|problem| problem.at(&self.text, place))
        });
        each.collect()
    }

    fn step(
        &self,
        table: &LaunchTable,
        plan: &Plan,
        values: &mut Values,
        in_loop: bool,
    ) -> Result<Step, PlanProblem> {
        if let Some(word) = &table.until_zero {
            return self.looped(word, table, plan, values).map(Step::Loop);
        }
        if table.at_most.is_some() || !table.launch.is_empty() {
            return Err(PlanProblem::new("a loop needs `until_zero`")
                .help("write until_zero = \"changed\", the buffer with the word that ends it"));
        }
        let grid = table.grid.as_ref().ok_or_else(|| {
            PlanProblem::new("a launch needs its `grid`").help("write grid = 64, or grid = [8, 8]")
        })?;
        let launch = PlannedLaunch {
            entry: table.entry.as_ref().map(|entry| values.fill(entry)).transpose()?,
            grid: values.extent("grid", grid)?,
            block: table.block.as_ref().map(|block| values.extent("block", block)).transpose()?,
            shared_bytes: values.count("shared_bytes", &table.shared_bytes, 0)?,
            args: self.args(&table.args, plan, values)?,
            times: values.count("times", &table.times, 1)?,
            fill: self.fills(&table.fill, plan, values)?,
            swap: table.swap.clone(),
        };
        plan.check_launch(&launch, in_loop)?;
        Ok(Step::Launch(launch))
    }

    fn args(
        &self,
        args: &[Spanned<String>],
        plan: &Plan,
        values: &mut Values,
    ) -> Result<Vec<String>, PlanProblem> {
        let each = (0..).zip(args).map(|(number, arg)| {
            let text = values.fill(arg.get_ref());
            let checked = text.and_then(|text| plan.check_argument(number, &text).map(|()| text));
            checked.map_err(|problem| problem.at(&self.text, arg.span().start))
        });
        each.collect()
    }

    fn fills(
        &self,
        fills: &BTreeMap<String, Spanned<String>>,
        plan: &Plan,
        values: &mut Values,
    ) -> Result<BTreeMap<String, String>, PlanProblem> {
        let each = fills.iter().map(|(buffer, content)| {
            let text = values.fill(content.get_ref());
            let checked = text.and_then(|text| plan.check_content(buffer, &text).map(|()| text));
            let text = checked.map_err(|problem| problem.at(&self.text, content.span().start))?;
            Ok((buffer.clone(), text))
        });
        each.collect()
    }

    fn looped(
        &self,
        word: &str,
        table: &LaunchTable,
        plan: &Plan,
        values: &mut Values,
    ) -> Result<PlannedLoop, PlanProblem> {
        let LaunchTable { entry, grid, block, shared_bytes, args, times, fill, swap, .. } = table;
        let of_a_launch = [
            (entry.is_some(), "entry"),
            (grid.is_some(), "grid"),
            (block.is_some(), "block"),
            (shared_bytes.is_some(), "shared_bytes"),
            (!args.is_empty(), "args"),
            (times.is_some(), "times"),
            (!fill.is_empty(), "fill"),
            (!swap.is_empty(), "swap"),
        ];
        if let Some((_, key)) = of_a_launch.iter().find(|(given, _)| *given) {
            return Err(PlanProblem::new(format!("a loop has no `{key}`"))
                .help("write its launches below it, each as [[launch.launch]]"));
        }
        if table.launch.is_empty() {
            return Err(PlanProblem::new("the loop has no launches")
                .help("write them below it, each as [[launch.launch]]"));
        }
        let until_zero = values.fill(word)?.parse()?;
        plan.check_word(&until_zero)?;
        let at_most = values.count("at_most", &table.at_most, AT_MOST)?;
        let steps = self.steps(&table.launch, plan, values, true)?;
        Ok(PlannedLoop { until_zero, at_most, steps })
    }
}

impl std::str::FromStr for Word {
    type Err = PlanProblem;

    fn from_str(text: &str) -> Result<Word, PlanProblem> {
        let Some((buffer, index)) = text.split_once('[') else {
            return Ok(Word { buffer: text.to_string(), index: 0 });
        };
        match index.strip_suffix(']').and_then(|index| index.trim().parse().ok()) {
            Some(index) => Ok(Word { buffer: buffer.to_string(), index }),
            None => Err(PlanProblem::new(format!("`{text}` is no word of a buffer"))
                .help("write it as changed, or as changed[3]")),
        }
    }
}

/// `"list:1,2"`, or `{ is = "list:1.5", within = 1e-6 }`.
fn expected(value: &Value, values: &mut Values) -> Result<Expected, PlanProblem> {
    let wrong = || {
        PlanProblem::new(format!("a check cannot be {value}"))
            .help("write its content, such as \"value:7\", or { is = \"value:1.5\", within = 1e-6 }")
    };
    let (content, within) = match value {
        Value::String(text) => (text, 0.0),
        Value::Table(table) if table.keys().all(|key| ["is", "within"].contains(&key.as_str())) => {
            let content = match table.get("is") {
                Some(Value::String(text)) => text,
                _ => return Err(wrong()),
            };
            let within = table.get("within").map(|within| match within {
                Value::Float(number) if *number >= 0.0 => Ok(*number),
                Value::Integer(number) if *number >= 0 => Ok(*number as f64),
                _ => Err(wrong()),
            });
            (content, within.transpose()?.unwrap_or(0.0))
        }
        _ => return Err(wrong()),
    };
    Ok(Expected { content: values.fill(content)?, within })
}

/// Parameters, and which of them were named.
struct Values {
    all: BTreeMap<String, String>,
    used: BTreeSet<String>,
}

impl Values {
    /// Puts values in the place of `{name}`.
    fn fill(&mut self, text: &str) -> Result<String, PlanProblem> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                return Err(PlanProblem::new(format!("`{text}` has a `{{` without its `}}`")));
            };
            out.push_str(before);
            rest = after;
            match self.all.get(name.trim()) {
                Some(value) => out.push_str(value),
                None if format!("{{{name}}}") == ITERATION => out.push_str(ITERATION),
                None => {
                    let known: Vec<_> = self.all.keys().map(String::as_str).collect();
                    let message = format!("`{text}` names the parameter `{name}`, which there is not");
                    let help = format!("parameters are those of [params] and [[zip]]: {}", known.join(", "));
                    return Err(PlanProblem::new(message).help(help));
                }
            }
            self.used.insert(name.trim().to_string());
        }
        Ok(out + rest)
    }

    fn extent(&mut self, name: &str, value: &Value) -> Result<[u32; 3], PlanProblem> {
        let plain = |value: &Value| value.as_str().map_or(value.to_string(), str::to_string);
        let text = match value {
            Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(","),
            other => plain(other),
        };
        let text = self.fill(&text)?;
        parse_dims(&text)
            .map_err(|error| PlanProblem::new(format!("{name} of a launch is `{text}`: {error}")))
    }

    fn count(&mut self, name: &str, value: &Option<Value>, default: u32) -> Result<u32, PlanProblem> {
        let Some(value) = value else { return Ok(default) };
        match self.extent(name, value)? {
            [count, 1, 1] => Ok(count),
            _ => Err(PlanProblem::new(format!("{name} is {value}: it is one number"))),
        }
    }
}

#[cfg(test)]
mod tests;
