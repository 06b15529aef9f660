//! Calibration: a chip file for a GPU, from what the anchors measure on it.
//!
//! Each value that an anchor shows (`PAIRS`) is moved until the anchor takes as long on the model as on the GPU. The
//! rest comes from a built-in chip, the base. The result says of each value where it is from. Start at [`calibrate`].

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::Value;
use warploom::{Chip, Device, Result, SimOptions};

use crate::anchors::{AnchorReport, measure_some};
use crate::conform::OnProgress;

/// A value of the chip and the anchor that shows it.
#[derive(Clone, Copy, Debug)]
struct Pair {
    /// Its key; a number at the end is a place in an array.
    key: &'static str,
    /// Other keys that have the same value, as nothing measures them.
    likewise: &'static [&'static str],
    anchor: &'static str,
    effect: Effect,
}

/// How the anchor follows the value.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// An operation takes so many cycles longer for each that the value has more.
    Adds(f64),
    /// It takes as many times longer as the value is larger.
    Scales,
}

const fn adds(key: &'static str, anchor: &'static str, cycles: f64) -> Pair {
    Pair { key, likewise: &[], anchor, effect: Effect::Adds(cycles) }
}

const fn scales(key: &'static str, anchor: &'static str) -> Pair {
    Pair { key, likewise: &[], anchor, effect: Effect::Scales }
}

/// In the order in which they are set: some anchors contain operations of earlier ones.
const PAIRS: &[Pair] = &[
    Pair { likewise: &["units.int.max.0"], ..adds("units.int.add.0", "int/add", 1.0) },
    adds("units.int.mul.0", "int/mul", 1.0),
    adds("units.int.mad.0", "int/mad", 1.0),
    adds("units.int_add_wide.0", "int64/add", 1.0),
    Pair { likewise: &["units.f32.mul.0"], ..adds("units.f32.add.0", "f32/add", 1.0) },
    adds("units.f32.mad.0", "f32/fma", 1.0),
    adds("units.f32.div.0", "f32/div", 1.0),
    Pair { likewise: &["units.f64.mul.0", "units.f64.max.0"], ..adds("units.f64.add.0", "f64/add", 1.0) },
    adds("units.f64.mad.0", "f64/fma", 1.0),
    // Every other operation of these chains is an addition.
    adds("units.special.0", "f32/rcp", 0.5),
    adds("units.count_bits.0", "int/popc", 0.5),
    adds("units.convert.0", "cvt/f32-s32", 1.0),
    adds("units.exchange.0", "warp/shfl", 1.0),
    adds("units.vote.0", "warp/vote", 1.0),
    adds("shared.latency_cycles", "shared/load", 1.0),
    adds("shared.atomic_cycles", "shared/cas-one", 31.0),
    // An arrival and a test.
    adds("shared.mbarrier_latency_cycles", "mbarrier/32", 2.0),
    adds("units.barrier_latency_cycles", "barrier/1", 1.0),
    adds("units.barrier_interval_cycles", "barrier/32", 31.0),
    adds("units.cta_fence_cycles", "fence/cta", 1.0),
    adds("units.sleep_cycles", "nanosleep/0", 1.0),
    adds("l1.hit_latency_cycles", "l1/load", 1.0),
    adds("l2.latency_cycles", "global/cas-one", 1.0),
    // There and back.
    adds("l2.far_cycles", "global/cas-far", 2.0),
    adds("dram.latency_cycles", "dram/load", 1.0),
    adds("units.fence_after_access_cycles", "fence/gpu", 1.0),
    scales("atomic.word_cycles", "all/cas-one"),
    scales("atomic.pass_cycles", "all/cas-line"),
    // Some slice has five of the 64 words.
    scales("atomic.request_cycles", "all/exch-64"),
    scales("atomic.add_cycles", "all/add-warp"),
    adds("atomic.silent_cycles", "global/red-one", 1.0),
];

/// What a calibration found for a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub key: &'static str,
    pub value: f64,
    pub anchor: &'static str,
    /// Cycles of an operation on the GPU, and on the model with the value.
    pub real: f64,
    pub model: f64,
}

/// A calibrated chip.
#[derive(Clone, Debug)]
pub struct Calibration {
    base: String,
    /// What the values beside the base's are: `key=value`.
    pub settings: Vec<String>,
    pub found: Vec<Found>,
    /// Keys that have a pair, but the GPU's anchors or the base lack it.
    pub missing: Vec<&'static str>,
}

/// What the driver says of a GPU, as settings of a chip.
pub type Queried = Vec<(&'static str, String)>;

/// Rounds of adjustment. Values that share an anchor's time settle in the second.
const ROUNDS: usize = 3;

/// An anchor that is as near as this has its value.
const NEAR: f64 = 0.01;

/// Cycles per operation, by anchor.
pub type Costs = BTreeMap<String, f64>;

/// The costs in the output of `warploom anchors --json`.
pub fn costs(text: &str) -> std::result::Result<Costs, serde_json::Error> {
    #[derive(Deserialize)]
    struct Stored {
        report: Report,
    }
    #[derive(Deserialize)]
    struct Report {
        anchors: Vec<Cost>,
    }
    #[derive(Deserialize)]
    struct Cost {
        name: String,
        cycles_per_operation: f64,
    }
    let stored: Stored = serde_json::from_str(text)?;
    Ok(stored.report.anchors.into_iter().map(|each| (each.name, each.cycles_per_operation)).collect())
}

/// The costs in a report.
pub fn costs_of(report: &AnchorReport) -> Costs {
    report.anchors.iter().map(|each| (each.name.to_string(), each.cycles_per_operation)).collect()
}

/// Moves the values of a built-in chip, changed by `queried`, until the model's anchors agree with those of a GPU.
/// `wanted` says which anchors to heed.
pub fn calibrate(
    base: &str,
    queried: &Queried,
    real: &Costs,
    wanted: &dyn Fn(&str) -> bool,
    report: OnProgress<'_>,
) -> Result<Calibration> {
    let mut settings: Vec<String> = queried.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let chip = as_json(&Chip::load(base, &settings)?);
    let (mut pairs, mut missing) = (Vec::new(), Vec::new());
    for pair in PAIRS.iter().filter(|pair| wanted(pair.anchor)) {
        let is_known = real.contains_key(pair.anchor) && number(&chip, pair.key).is_some();
        if is_known { pairs.push(*pair) } else { missing.push(pair.key) }
    }
    let mut values: BTreeMap<&str, f64> =
        pairs.iter().filter_map(|pair| Some((pair.key, number(&chip, pair.key)?))).collect();
    let mut found = Vec::new();
    for round in 0..ROUNDS {
        let all: Vec<String> = settings.iter().cloned().chain(assignments(&chip, &pairs, &values)).collect();
        let mut gpu = Device::sim_with(Chip::load(base, &all)?, SimOptions::default());
        let needed: Vec<&str> = pairs.iter().map(|pair| pair.anchor).collect();
        let model = costs_of(&measure_some(&mut gpu, 1, &|name| needed.contains(&name), report)?);
        found = pairs
            .iter()
            .map(|pair| Found {
                key: pair.key,
                value: values[pair.key],
                anchor: pair.anchor,
                real: real[pair.anchor],
                model: model[pair.anchor],
            })
            .collect();
        if round + 1 < ROUNDS {
            for (pair, seen) in pairs.iter().zip(&found) {
                if (seen.model / seen.real - 1.0).abs() > NEAR {
                    values.insert(pair.key, moved(pair, seen));
                }
            }
        }
    }
    let measured = assignments(&chip, &pairs, &values);
    let key = |setting: &String| setting.split_once('=').map(|(key, _)| key.to_string());
    settings.retain(|setting| !measured.iter().any(|other| key(other) == key(setting)));
    settings.extend(measured);
    Ok(Calibration { base: base.to_string(), settings, found, missing })
}

/// The value with which the anchor should take as long as on the GPU.
fn moved(pair: &Pair, seen: &Found) -> f64 {
    match pair.effect {
        Effect::Adds(cycles) => (seen.value + (seen.real - seen.model) / cycles).round().max(least(pair.key)),
        Effect::Scales => (seen.value * seen.real / seen.model * 100.0).round() / 100.0,
    }
}

/// Units take a cycle at least; what a fence, a barrier or the other half adds may be nothing.
fn least(key: &str) -> f64 {
    let may_be_zero = ["_interval_cycles", "fence_cycles", "access_cycles", "atomic_cycles", "sleep_cycles"];
    f64::from(u8::from(!may_be_zero.iter().any(|end| key.ends_with(end))))
}

/// The values as settings of a chip, arrays in whole.
fn assignments(chip: &Value, pairs: &[Pair], values: &BTreeMap<&str, f64>) -> Vec<String> {
    let mut settings = Vec::new();
    for pair in pairs {
        let value = values[pair.key];
        for key in std::iter::once(&pair.key).chain(pair.likewise) {
            settings.push(match key.strip_suffix(".0") {
                Some(array) => {
                    let interval = number(chip, &format!("{array}.1")).unwrap_or(1.0);
                    format!("{array}=[{value}, {interval}]")
                }
                None => format!("{key}={value}"),
            });
        }
    }
    settings
}

fn as_json(chip: &Chip) -> Value {
    serde_json::to_value(chip).expect("a chip is plain data")
}

fn number(chip: &Value, key: &str) -> Option<f64> {
    let step = |value: Option<Value>, name: &str| match value? {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?).cloned(),
        Value::Object(mut fields) => fields.remove(name),
        _ => None,
    };
    key.split('.').fold(Some(chip.clone()), step)?.as_f64()
}

impl Calibration {
    /// The chip file.
    pub fn toml(&self, name: &str, description: &str, origin: &str) -> String {
        let mut sections: BTreeMap<&str, Vec<(&str, &str, String)>> = BTreeMap::new();
        for setting in &self.settings {
            let Some((key, value)) = setting.split_once('=') else { continue };
            let Some((section, name)) = key.split_once('.') else { continue };
            let measured = |each: &&Found| each.key == key || each.key.strip_suffix(".0") == Some(key);
            let from = self.found.iter().find(measured).map_or_else(
                || "queried, or the same as the one measured".to_string(),
                |each| format!("{}: {:.1} on the GPU, {:.1} here", each.anchor, each.real, each.model),
            );
            sections.entry(section).or_default().push((name, value, from));
        }
        let mut text = format!(
            "# {origin}\n# Every value below is measured by an anchor or queried. All others are those of \
             `{base}`: not measured.\nname = {name:?}\ndescription = {description:?}\nbase = {base:?}\n",
            base = self.base
        );
        if !self.missing.is_empty() {
            let _ = writeln!(
                text,
                "# Not measured though there is an anchor for it: {}.",
                self.missing.join(", ")
            );
        }
        for (section, entries) in sections {
            let _ = writeln!(text, "\n[{section}]");
            for (name, value, from) in entries {
                let assignment = format!("{name} = {value}");
                let _ = writeln!(text, "{assignment:<40} # {from}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if the base were another chip: all values that have a pair are wrong.
    fn strange() -> Queried {
        let chip = as_json(&Chip::load("h200", &[]).unwrap());
        let wrong = |pair: &Pair| match pair.effect {
            Effect::Adds(_) => (number(&chip, pair.key).unwrap() * 1.5 + 3.0).round(),
            Effect::Scales => number(&chip, pair.key).unwrap() * 1.5,
        };
        let values = PAIRS.iter().map(|pair| (pair.key, wrong(pair))).collect();
        assignments(&chip, PAIRS, &values)
            .into_iter()
            .map(|setting| {
                let (key, value) = setting.split_once('=').unwrap();
                (&*key.to_string().leak(), value.to_string())
            })
            .collect()
    }

    fn off(calibration: &Calibration) -> Vec<&Found> {
        calibration.found.iter().filter(|each| (each.model / each.real - 1.0).abs() > 0.1).collect()
    }

    fn real() -> Costs {
        costs(include_str!("../anchors/h200.json")).unwrap()
    }

    #[test]
    fn a_chip_is_found_again_from_its_anchors() {
        let some = |anchor: &str| {
            ["int/", "int64/", "f32/", "f64/", "cvt/", "shared/", "barrier/1", "fence/cta", "l1/"]
                .iter()
                .any(|start| anchor.starts_with(start))
        };
        let found = calibrate("h200", &strange(), &real(), &some, &mut |_| {}).unwrap();
        assert!(off(&found).is_empty(), "{:#?}", off(&found));
        assert!(found.missing.is_empty(), "{:?}", found.missing);
        let text = found.toml("again", "the h200, from its anchors", "a test");
        let chip = Chip::parse("again", &text, &[]).unwrap();
        assert_eq!((chip.name.as_str(), chip.units.int.add[0]), ("again", 2), "{text}");
    }

    /// Contended anchors take a minute. With: cargo test -p warploom-lab --release calibrate -- --ignored
    #[test]
    #[ignore = "takes minutes"]
    fn all_of_a_chip_is_found_again() {
        let found = calibrate("h200", &strange(), &real(), &|_| true, &mut |_| {}).unwrap();
        assert!(off(&found).is_empty(), "{:#?}", off(&found));
    }
}
