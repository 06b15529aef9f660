//! Results as tables: one row per run, and further tables that join by the run's id.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use warploom::Report;

use super::{Cell, Planned, Sweep, SweepError};
use crate::csv;
use crate::runs::{Finished, Kept, Metrics};

/// A table. Every row has a cell for each column; a cell without a value is `None`. The others of a column have one
/// type.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// `runs`, or what its rows are: `launches`, `sms`, `lines`, `locks`.
    pub name: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Option<Cell>>>,
}

/// Keeps the rows of which a column has a value: `sched=gto`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub column: String,
    pub value: String,
}

impl std::str::FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        match text.split_once('=') {
            Some((column, value)) if !column.is_empty() => {
                Ok(Filter { column: column.to_string(), value: value.to_string() })
            }
            _ => Err("write COLUMN=VALUE, such as sched=gto".to_string()),
        }
    }
}

/// Lists of objects in a run's figures are tables of their own. These have names for the table, and for the column that
/// numbers its rows within a run; any other has its own name, and numbers them as `row`.
const NESTED: [(&str, &str, &str); 12] = [
    ("per_launch", "launches", "launch"),
    ("sms", "sms", "sm"),
    ("profile.lines", "lines", "rank"),
    ("profile.instructions", "instructions", "row"),
    ("profile.words", "locks", "rank"),
    ("profile.waits", "waits", "rank"),
    ("profile.barriers", "barriers", "barrier"),
    ("profile.verdict", "verdicts", "rank"),
    ("races", "races", "race"),
    ("lock_warnings", "lock_warnings", "warning"),
    ("uninitialised", "uninitialised", "read"),
    ("outside_loads", "outside_loads", "load"),
];

/// The rows of a list that is a table of its own.
fn nested(value: &Value) -> Option<&Vec<Value>> {
    value.as_array().filter(|list| list.iter().any(Value::is_object))
}

/// All of a run's lists that are tables, with their paths: its own, and those of its objects.
fn all_nested(figures: &Map<String, Value>) -> impl Iterator<Item = (String, &Vec<Value>)> {
    figures.iter().flat_map(|(name, value)| {
        let own = nested(value).map(|list| (name.clone(), list));
        let inner = value.as_object().into_iter().flatten();
        own.into_iter()
            .chain(inner.filter_map(move |(inner, value)| Some((format!("{name}.{inner}"), nested(value)?))))
    })
}

/// Figures that repeat a setting of the run, or of its launches.
const SETTINGS: [&str; 6] = ["chip", "model", "sched", "bows", "grid", "block"];

/// Figures that repeat another.
const REPEATED: [&str; 2] = ["profile.cycles", "profile.warp_lanes"];

/// The tables of all runs that have ended. The first is `runs`, in the order of the sweep. They are the same bytes
/// wherever and whenever the runs were executed, except that `host` adds what they took of the host.
pub fn tables(
    sweep: &Sweep,
    planned: &[Planned],
    kept: &Kept,
    host: bool,
    filters: &[Filter],
) -> Result<Vec<Table>, SweepError> {
    let settings = sweep.columns();
    let mut of_runs = Builder::new("runs", None);
    let mut others: Vec<Builder> =
        NESTED.iter().map(|(_, table, index)| Builder::new(table, Some(index))).collect();
    for planned in planned {
        let Some(end) = kept.get(&planned.run, &planned.key) else { continue };
        let run = Cell::Text(planned.key.to_string());
        let mut row = Row::from([("run".to_string(), run.clone())]);
        row.insert("status".to_string(), Cell::Text(end.status.name().to_string()));
        row.extend(end.message.clone().map(|message| ("message".to_string(), Cell::Text(message))));
        row.extend(planned.settings.iter().cloned());
        if host {
            row.insert("host_s".to_string(), Cell::Float(end.wall_s));
            row.extend(
                end.peak_bytes.map(|bytes| ("host_peak_bytes".to_string(), Cell::Number(bytes as i64))),
            );
        }
        flatten(end.metrics.values(), &mut row);
        if !filters
            .iter()
            .all(|filter| row.get(&filter.column).is_some_and(|cell| cell.to_string() == filter.value))
        {
            continue;
        }
        of_runs.rows.push(row);
        add_nested(&end, &run, &mut others);
    }
    let first = ["run", "status", "message"].map(String::from).into_iter().chain(settings);
    let first: Vec<String> = first.chain(["host_s", "host_peak_bytes"].map(String::from)).collect();
    let builders = std::iter::once(of_runs).chain(others);
    let mut tables: Vec<Table> = builders.map(|builder| builder.table(&first)).collect();
    for filter in filters {
        let known = &tables[0].columns;
        if !known.is_empty() && !known.contains(&filter.column) && !first.contains(&filter.column) {
            return Err(no_column(&filter.column, known));
        }
    }
    tables.retain(|table| table.name == "runs" || !table.rows.is_empty());
    Ok(tables)
}

/// A column that a table does not have.
pub(super) fn no_column(column: &str, known: &[String]) -> SweepError {
    SweepError::new(format!("no column `{column}`")).help(format!("the columns are {}", known.join(", ")))
}

type Row = BTreeMap<String, Cell>;

struct Builder {
    name: String,
    /// The column that numbers the rows of a run.
    index: Option<&'static str>,
    rows: Vec<Row>,
}

impl Builder {
    fn new(name: &str, index: Option<&'static str>) -> Builder {
        Builder { name: name.to_string(), index, rows: Vec::new() }
    }

    /// The columns that are named first come first if any row has them, and `status` and the like of `runs` always.
    fn table(self, first: &[String]) -> Table {
        let mut found: BTreeSet<&String> = self.rows.iter().flat_map(|row| row.keys()).collect();
        let mut columns = Vec::new();
        for column in first {
            let always = self.name == "runs" && !column.starts_with("host_");
            if found.remove(column) || always {
                columns.push(column.clone());
            }
        }
        columns.extend(self.index.map(str::to_string).filter(|index| found.remove(index)));
        columns.extend(found.into_iter().cloned());
        let rows =
            self.rows.iter().map(|row| columns.iter().map(|column| row.get(column).cloned()).collect());
        let mut rows: Vec<Vec<Option<Cell>>> = rows.collect();
        (0..columns.len()).for_each(|at| give_one_type(&mut rows, at));
        Table { name: self.name, rows, columns }
    }
}

/// A column of whole and other numbers becomes one of the latter, any other mixture text: `bows` can be `off` and 1000.
fn give_one_type(rows: &mut [Vec<Option<Cell>>], at: usize) {
    let cells = || rows.iter().filter_map(|row| row[at].as_ref());
    let Some(first) = cells().next().map(std::mem::discriminant) else { return };
    if cells().all(|cell| std::mem::discriminant(cell) == first) {
        return;
    }
    let numbers = cells().all(|cell| cell.number().is_some());
    for cell in rows.iter_mut().filter_map(|row| row[at].as_mut()) {
        *cell = match cell.number().filter(|_| numbers) {
            Some(number) => Cell::Float(number),
            None => Cell::Text(cell.to_string()),
        };
    }
}

/// A run's figures as columns.
fn flatten(figures: &Map<String, Value>, row: &mut Row) {
    for (name, value) in figures {
        if !SETTINGS.contains(&name.as_str()) {
            add(row, name, value);
        }
    }
}

/// Adds a figure under its name, an object's under theirs, and a list's under numbers (`x`, `y`, `z` for extents).
/// A list with texts is one text: how many it has differs from row to row. Lists that are tables are not added.
fn add(row: &mut Row, path: &str, value: &Value) {
    if nested(value).is_some() || REPEATED.contains(&path) {
        return;
    }
    let cell = match value {
        Value::Null => return,
        Value::Bool(flag) => Cell::Flag(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Cell::Number(number),
            None => Cell::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cell::Text(text.clone()),
        Value::Array(list) if has_text(value) => {
            Cell::Text(list.iter().map(entry).collect::<Vec<_>>().join("; "))
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                let at = if list.len() == 3 { ["x", "y", "z"][at].to_string() } else { at.to_string() };
                add(row, &format!("{path}.{at}"), value);
            }
            return;
        }
        Value::Object(object) => {
            object.iter().for_each(|(name, value)| add(row, &format!("{path}.{name}"), value));
            return;
        }
    };
    row.insert(column(path), cell);
}

fn has_text(value: &Value) -> bool {
    value.is_string() || value.as_array().is_some_and(|list| list.iter().any(has_text))
}

/// An entry of a list with texts. Pairs are a line and how often, or cycles and the thread that waited for so long.
fn entry(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(pair) if pair.len() == 2 => format!("{} ({})", entry(&pair[0]), entry(&pair[1])),
        other => other.to_string(),
    }
}

/// The name of a figure's column: its path with `_`, and its unit at the end. Counts have none. `ctas` and `warps` are
/// also names of parameters.
fn column(path: &str) -> String {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let rest = rest.replace('.', "_");
    match (first, rest.as_str()) {
        ("ctas" | "warps", "") => format!("launched_{first}"),
        (_, "") => first.to_string(),
        ("stalls", _) => format!("stall_{rest}_warp_cycles"),
        ("time", _) => format!("time_{rest}_warp_cycles"),
        ("profile", _) if rest.starts_with("time_") => format!("{rest}_warp_cycles"),
        ("classes", _) => format!("class_{rest}_warp_insts"),
        ("energy_nj", _) => format!("energy_{rest}_nj"),
        ("figures", _) => format!("figure_{rest}"),
        _ => format!("{first}_{rest}"),
    }
}

/// Whether a column of `runs` could have this name whatever the sweep is; a parameter must not.
pub(super) fn is_figure(name: &str) -> bool {
    let figures = Metrics::of_launches(&Report::default(), &[]);
    ["run", "status", "message", "check"].contains(&name)
        || figures
            .values()
            .keys()
            .any(|figure| column(figure) == name && !SETTINGS.contains(&figure.as_str()))
}

fn add_nested(end: &Finished, run: &Cell, tables: &mut Vec<Builder>) {
    for (list, entries) in all_nested(end.metrics.values()) {
        let name =
            NESTED.iter().find(|(known, ..)| *known == list).map_or(list.as_str(), |(_, table, _)| table);
        let at = tables.iter().position(|table| table.name == name).unwrap_or_else(|| {
            tables.push(Builder::new(name, Some("row")));
            tables.len() - 1
        });
        let table = &mut tables[at];
        for (at, entry) in entries.iter().enumerate() {
            let mut row = Row::from([("run".to_string(), run.clone())]);
            row.extend(table.index.map(|index| (index.to_string(), Cell::Number(at as i64))));
            if let Value::Object(entry) = entry {
                entry.iter().for_each(|(name, value)| add(&mut row, name, value));
            }
            table.rows.push(row);
        }
    }
}

impl Table {
    pub fn column(&self, name: &str) -> Result<usize, SweepError> {
        self.columns.iter().position(|column| column == name).ok_or_else(|| no_column(name, &self.columns))
    }

    /// With a header. A cell without a value is empty.
    pub fn csv(&self) -> String {
        let mut text = csv::line(self.columns.iter().cloned());
        for row in &self.rows {
            text += &csv::line(row.iter().map(|cell| cell.as_ref().map(Cell::to_string).unwrap_or_default()));
        }
        text
    }

    /// A list of objects with all columns.
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let cells = self.columns.iter().zip(row);
            // Plain values always serialize; numbers that JSON cannot express become null.
            cells
                .map(|(column, cell)| (column.clone(), serde_json::to_value(cell).unwrap_or_default()))
                .collect()
        });
        Value::Array(rows.map(Value::Object).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runs::testing::Scratch;
    use crate::runs::{Plan, Status, execute_all};
    use crate::work::WORKLOADS;

    #[test]
    fn columns_have_units() {
        let names = [
            "cycles",
            "ctas",
            "stalls.long_scoreboard",
            "energy_nj.total",
            "classes.alu",
            "l1.hits",
            "figures.hops",
        ];
        assert_eq!(
            names.map(column),
            [
                "cycles",
                "launched_ctas",
                "stall_long_scoreboard_warp_cycles",
                "energy_total_nj",
                "class_alu_warp_insts",
                "l1_hits",
                "figure_hops"
            ]
        );
    }

    #[test]
    fn a_column_has_one_type() {
        let rows = |cells: &[Option<Cell>]| cells.iter().map(|cell| vec![cell.clone()]).collect::<Vec<_>>();
        let (off, half) = (Cell::Text("off".to_string()), Cell::Float(0.5));
        let mut mixed = rows(&[Some(Cell::Number(1000)), None, Some(off.clone())]);
        give_one_type(&mut mixed, 0);
        assert_eq!(mixed, rows(&[Some(Cell::Text("1000".to_string())), None, Some(off)]));
        let mut numbers = rows(&[Some(Cell::Number(2)), Some(half.clone())]);
        give_one_type(&mut numbers, 0);
        assert_eq!(numbers, rows(&[Some(Cell::Float(2.0)), Some(half)]));
    }

    /// Whatever a run measures by line, by lock or by anything else.
    #[test]
    fn lists_of_objects_are_tables() {
        let metrics = Metrics::new()
            .with("words", json!([{"address": 64, "waits": {"cycles": 9}}, {"address": 68}]))
            .with("lock_warnings", json!([{"message": "never released"}]))
            .with(
                "profile",
                json!({"cycles": 5, "time": {"spinning": 4}, "words": [{"taken_at": [["a.cu:3", 8]]}]}),
            )
            .with("grid", [4, 1, 1]);
        let end = Finished { status: Status::Ok, message: None, wall_s: 0.0, peak_bytes: None, metrics };
        let mut row = Row::new();
        flatten(end.metrics.values(), &mut row);
        assert_eq!(row, Row::from([("time_spinning_warp_cycles".to_string(), Cell::Number(4))]));
        let mut tables =
            vec![Builder::new("lock_warnings", Some("warning")), Builder::new("locks", Some("rank"))];
        add_nested(&end, &Cell::Text("7f".to_string()), &mut tables);
        let csv = tables.into_iter().map(|table| table.table(&["run".to_string()]).csv()).collect::<Vec<_>>();
        let words = "run,row,address,waits_cycles\n7f,0,64,9\n7f,1,68,\n";
        assert_eq!(
            csv,
            ["run,warning,message\n7f,0,never released\n", "run,rank,taken_at\n7f,0,a.cu:3 (8)\n", words]
        );
    }

    #[test]
    fn no_parameter_has_the_name_of_a_figure() {
        for workload in WORKLOADS {
            for param in workload.params {
                assert!(!is_figure(param.name), "{}: {}", workload.name, param.name);
            }
        }
    }

    #[test]
    fn a_sweep_becomes_tables() {
        let scratch = Scratch::new("sweep-tables");
        let text = "work = 'nw'\nsched = ['lrr', 'gto']\nmax_cycles = 20_000\n[params]\nsize = [30, 62]\n";
        let sweep = Sweep::parse(text, "tables", scratch.path()).unwrap();
        let planned = sweep.runs().unwrap();
        let runs: Vec<_> = planned.iter().map(|planned| planned.run.clone()).collect();
        execute_all(&runs, &Plan::new(scratch.path()), &|_, _, _| {}).unwrap();
        let kept = Kept::open(scratch.path()).unwrap();
        let made = tables(&sweep, &planned, &kept, false, &[]).unwrap();
        assert_eq!(
            made.iter().map(|table| table.name.as_str()).collect::<Vec<_>>(),
            ["runs", "launches", "sms"]
        );
        let [of_runs, launches, sms] = made.as_slice() else { panic!() };
        assert_eq!(of_runs.columns[..7], ["run", "status", "message", "work", "sched", "max_cycles", "size"]);
        assert_eq!((of_runs.rows.len(), launches.rows.len(), sms.rows.len()), (4, 8, 60));
        let ended = of_runs.rows.iter().filter(|row| row[1] == Some(Cell::Text("ok".into()))).count();
        assert_eq!(ended, 4);
        assert_eq!(launches.columns[..2], ["run", "launch"]);
        let csv = of_runs.csv();
        assert_eq!(csv.lines().count(), 5);
        assert!(of_runs.rows.iter().all(|row| row.len() == of_runs.columns.len()));
        assert_eq!(of_runs.json().as_array().map(Vec::len), Some(4));

        // What the host took is not the same twice, and only there if asked for.
        assert!(!csv.contains("host_s"));
        let with = tables(&sweep, &planned, &kept, true, &[]).unwrap();
        assert!(with[0].column("host_s").is_ok());
        let filter = |text: &str| vec![text.parse::<Filter>().unwrap()];
        let some = tables(&sweep, &planned, &kept, false, &filter("sched=gto")).unwrap();
        assert_eq!((some[0].rows.len(), some[1].rows.len()), (2, 4));
        let error = tables(&sweep, &planned, &kept, false, &filter("shed=gto")).unwrap_err();
        assert!(error.message == "no column `shed`" && error.help.unwrap().contains("sched"));
    }

    #[test]
    fn a_profile_becomes_tables_by_line_and_by_lock() {
        let scratch = Scratch::new("sweep-profile");
        let text = "work = 'hashtable'\nprofile = true\n[params]\nkeys = 512\nbuckets = [4, 16]\nctas = 2\n";
        let sweep = Sweep::parse(text, "profile", scratch.path()).unwrap();
        let planned = sweep.runs().unwrap();
        let runs: Vec<_> = planned.iter().map(|planned| planned.run.clone()).collect();
        execute_all(&runs, &Plan::new(scratch.path()), &|_, _, _| {}).unwrap();
        let kept = Kept::open(scratch.path()).unwrap();
        let made = tables(&sweep, &planned, &kept, false, &[]).unwrap();
        let table = |name: &str| made.iter().find(|table| table.name == name).unwrap();
        let sum = |table: &Table, column: &str, run: &Option<Cell>| -> f64 {
            let at = table.column(column).unwrap();
            let of_run = table.rows.iter().filter(|row| row[table.column("run").unwrap()] == *run);
            of_run.filter_map(|row| row[at].as_ref()?.number()).sum()
        };
        let of_runs = table("runs");
        for row in &of_runs.rows {
            let of = |column: &str| row[of_runs.column(column).unwrap()].as_ref().unwrap().number().unwrap();
            let all = sum(table("lines"), "warp_cycles", &row[0]);
            assert_eq!(all, of("warp_cycles"));
            assert_eq!(all, sum(table("instructions"), "warp_cycles", &row[0]));
            assert_eq!(sum(table("locks"), "acquired", &row[0]), of("locks_acquired"));
            assert!(of("time_spinning_warp_cycles") > 0.0);
        }
        assert!(table("locks").column("taken_at").is_ok() && table("locks").column("wait_cycles").is_ok());
        assert!(!table("waits").rows.is_empty());
    }
}
