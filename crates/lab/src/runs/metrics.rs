//! What a run measured: named figures.

use std::borrow::Cow;
use std::sync::OnceLock;

use serde::Serialize;
use serde_json::{Map, Value, json};
use warploom::Report;

use crate::work::Outcome;

/// Named figures of a run. Paths follow the nesting of a report: `cycles`, `stalls.long_scoreboard`,
/// `per_launch.0.cycles`.
/// They are deterministic: host times are left out.
///
/// Those that come from a file or from another process stay text until one is looked up: most runs of a sweep are only
/// passed on.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    text: Option<String>,
    figures: OnceLock<Map<String, Value>>,
}

/// Fields of a report that depend on the host.
const HOST_TIMES: [&str; 2] = ["wall_s", "warp_insts_per_s"];

impl Metrics {
    pub(crate) fn new() -> Metrics {
        Metrics::default()
    }

    /// Adds a figure: a number, a text, a list.
    pub(crate) fn with(self, name: &str, value: impl Serialize) -> Metrics {
        let mut figures = self.into_values();
        // Numbers, texts and plain structures always serialize.
        figures.insert(name.to_string(), serde_json::to_value(value).unwrap_or(Value::Null));
        Metrics::from(figures)
    }

    /// From JSON text that [`json`](Metrics::json) made.
    pub(crate) fn from_json(text: String) -> Metrics {
        Metrics { text: Some(text), figures: OnceLock::new() }
    }

    /// A JSON object.
    pub(crate) fn json(&self) -> Cow<'_, str> {
        match &self.text {
            Some(text) => Cow::Borrowed(text),
            // Plain values always serialize.
            None => Cow::Owned(serde_json::to_string(self.values()).unwrap_or_default()),
        }
    }

    fn into_values(self) -> Map<String, Value> {
        self.values();
        self.figures.into_inner().unwrap_or_default()
    }

    /// All figures.
    pub(crate) fn values(&self) -> &Map<String, Value> {
        self.figures.get_or_init(|| {
            // Its checksum was right, or it comes from another process of this program.
            self.text.as_ref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
        })
    }

    /// A number by its path. Booleans count as 0 and 1.
    pub(crate) fn number(&self, path: &str) -> Option<f64> {
        match self.value(path)? {
            Value::Bool(value) => Some(f64::from(u8::from(*value))),
            value => value.as_f64(),
        }
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.value(path)?.as_str()
    }

    pub(crate) fn value(&self, path: &str) -> Option<&Value> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let value = self.values().get(first)?;
        match rest {
            "" => Some(value),
            rest => value.pointer(&format!("/{}", rest.replace('.', "/"))),
        }
    }
}

/// The figures of one launch, under the names of [`Report`].
impl From<&Report> for Metrics {
    fn from(report: &Report) -> Metrics {
        let Ok(Value::Object(mut map)) = serde_json::to_value(report) else { return Metrics::new() };
        map.retain(|name, _| !HOST_TIMES.contains(&name.as_str()));
        Metrics::from(map)
    }
}

impl From<Map<String, Value>> for Metrics {
    fn from(figures: Map<String, Value>) -> Metrics {
        Metrics { text: None, figures: figures.into() }
    }
}

impl PartialEq for Metrics {
    fn eq(&self, other: &Metrics) -> bool {
        self.values() == other.values()
    }
}

/// The sums over all launches, then `launches`, `longest_launch_cycles`, `longest_launch_s`, `check` (a sentence),
/// `figures` (those that the workload measured itself) and `per_launch`.
impl From<&Outcome> for Metrics {
    fn from(outcome: &Outcome) -> Metrics {
        let check = match &outcome.check {
            Ok(message) | Err(message) => message,
        };
        Metrics::of_launches(&outcome.total, &outcome.launches)
            .with("check", check)
            .with("figures", &outcome.figures)
    }
}

impl Metrics {
    /// The sums over all launches, then `launches`, `longest_launch_cycles`, `longest_launch_s` and `per_launch`.
    pub(crate) fn of_launches(total: &Report, launches: &[Report]) -> Metrics {
        let each = |r: &Report| {
            json!({
                "kernel": r.kernel, "grid": r.grid, "block": r.block, "cycles": r.cycles,
                "warp_insts": r.warp_insts, "thread_insts": r.thread_insts, "kernel_s": r.kernel_s,
            })
        };
        let longest = launches.iter().max_by_key(|report| report.cycles);
        Metrics::from(total)
            .with("launches", launches.len())
            .with("longest_launch_cycles", longest.map(|r| r.cycles))
            .with("longest_launch_s", longest.and_then(|r| r.kernel_s))
            .with("per_launch", launches.iter().map(each).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_by_path() {
        let metrics = Metrics::new().with("a", 3).with("on", true).with("b", json!({"c": [1.5, "x"]}));
        assert_eq!((metrics.number("a"), metrics.number("on")), (Some(3.0), Some(1.0)));
        assert_eq!((metrics.number("b.c.0"), metrics.text("b.c.1")), (Some(1.5), Some("x")));
        assert_eq!((metrics.number("b.c.9"), metrics.number("z"), metrics.number("b")), (None, None, None));
    }

    #[test]
    fn text_is_as_good_as_figures() {
        let metrics = Metrics::new().with("cycles", 7).with("share", 0.1);
        let read = Metrics::from_json(metrics.json().into_owned());
        assert_eq!((read.number("share"), &read), (Some(0.1), &metrics));
        assert_eq!(read.with("more", 1).number("cycles"), Some(7.0));
    }

    #[test]
    fn reports_lose_the_hosts_time() {
        let metrics = Metrics::from(&Report { cycles: 7, wall_s: 1.0, ..Report::default() });
        assert_eq!((metrics.number("cycles"), metrics.number("wall_s")), (Some(7.0), None));
    }
}
