//! What a run measured: named numbers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use warploom::Report;

use crate::work::Outcome;

/// Named figures of a run, nested where a report's are: `cycles`, `stalls.memory`, `per_launch.0.cycles`. They are the same
/// each time: how long the host took is not among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metrics(Map<String, Value>);

/// What depends on the host and not on the machine.
const OF_THE_HOST: [&str; 2] = ["wall_s", "warp_insts_per_s"];

impl Metrics {
    /// None yet.
    pub fn new() -> Metrics {
        Metrics::default()
    }

    /// With one more figure: a number, a text, a list.
    pub fn with(mut self, name: &str, value: impl Serialize) -> Metrics {
        // Numbers, texts and plain structures always have a JSON form.
        self.0.insert(name.to_string(), serde_json::to_value(value).unwrap_or(Value::Null));
        self
    }

    /// A number by its path; switches count as 0 and 1.
    pub fn number(&self, path: &str) -> Option<f64> {
        match self.value(path)? {
            Value::Bool(value) => Some(f64::from(u8::from(*value))),
            value => value.as_f64(),
        }
    }

    /// A text by its path.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.value(path)?.as_str()
    }

    /// Any figure by its path.
    pub fn value(&self, path: &str) -> Option<&Value> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let value = self.0.get(first)?;
        match rest {
            "" => Some(value),
            rest => value.pointer(&format!("/{}", rest.replace('.', "/"))),
        }
    }
}

/// The figures of a launch, under the names of [`Report`].
impl From<&Report> for Metrics {
    fn from(report: &Report) -> Metrics {
        let Ok(Value::Object(mut map)) = serde_json::to_value(report) else { return Metrics::new() };
        map.retain(|name, _| !OF_THE_HOST.contains(&name.as_str()));
        Metrics(map)
    }
}

/// The figures of all launches together, then `launches`, `longest_launch_cycles`, `longest_launch_s`, `check` (in words),
/// `per_launch`, and what the workload measured itself under `figures`.
impl From<&Outcome> for Metrics {
    fn from(outcome: &Outcome) -> Metrics {
        let each = |r: &Report| {
            json!({
                "kernel": r.kernel, "grid": r.grid, "block": r.block, "cycles": r.cycles,
                "warp_insts": r.warp_insts, "thread_insts": r.thread_insts, "kernel_s": r.kernel_s,
            })
        };
        let check = match &outcome.check {
            Ok(message) | Err(message) => message,
        };
        Metrics::from(&outcome.total)
            .with("launches", outcome.launches.len())
            .with("longest_launch_cycles", outcome.longest().map(|r| r.cycles))
            .with("longest_launch_s", outcome.longest().and_then(|r| r.kernel_s))
            .with("check", check)
            .with("figures", &outcome.figures)
            .with("per_launch", outcome.launches.iter().map(each).collect::<Vec<_>>())
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
    fn reports_lose_the_hosts_time() {
        let metrics = Metrics::from(&Report { cycles: 7, wall_s: 1.0, ..Report::default() });
        assert_eq!((metrics.number("cycles"), metrics.number("wall_s")), (Some(7.0), None));
    }
}
