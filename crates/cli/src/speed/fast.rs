//! `warploom speed --model fast`: workloads in the fast model beside the timed one, and how far off its cycles are.

use serde::Serialize;
use serde_json::json;
use warploom::{Chip, Device, Error, SimOptions, Timing};

use super::cases::work;
use crate::cli::{ModelName, SpeedOptions};
use crate::failure::{Exit, Failure};
use crate::output::print_json;
use crate::term::{self, counted, grouped};

/// A workload with enough work to leave some out.
struct Large {
    name: &'static str,
    params: &'static [&'static str],
    /// On a chip with many SMs, if not the same.
    on_large_chip: Option<&'static [&'static str]>,
}

impl Large {
    const fn new(name: &'static str, params: &'static [&'static str]) -> Large {
        Large { name, params, on_large_chip: None }
    }

    /// A chip with many SMs needs more CTAs for as many waves, or more launches.
    const fn on_large_chip(self, params: &'static [&'static str]) -> Large {
        Large { on_large_chip: Some(params), ..self }
    }

    fn params_for(&self, chip: &Chip) -> &'static [&'static str] {
        match self.on_large_chip {
            Some(params) if chip.sm.count >= MANY_SMS => params,
            _ => self.params,
        }
    }
}

const MANY_SMS: u32 = 64;

/// All workloads for GPUs, as large as takes seconds to minutes in the timed model.
const LARGE: &[Large] = &[
    Large::new("vecadd", &["size=4_194_304"]).on_large_chip(&["size=67_108_864"]),
    Large::new("matmul", &["size=1_024"]).on_large_chip(&["size=1_536"]),
    Large::new("hashtable", &["keys=20_000"]),
    Large::new("nw", &["size=3_968"]),
    Large::new("treebuild", &[]),
    Large::new("treesort", &[]),
    Large::new("cloth", &["rounds=4"]),
    Large::new("atm", &[]),
    Large::new("nw1", &[]),
    Large::new("nw2", &[]),
    Large::new("tsp", &[]),
    Large::new("kmeans", &["points=524_288", "rounds=4"]).on_large_chip(&["points=131_072", "rounds=32"]),
    Large::new("mergesort", &["keys=4_194_304", "ctas=256"]),
    Large::new("heartwall", &["points=60", "frames=32"]).on_large_chip(&["points=60", "frames=64"]),
    Large::new("hotspot", &["size=512", "steps=24"]).on_large_chip(&["size=512", "steps=32"]),
    Large::new("bfs", &["vertices=1_048_576"]),
    Large::new("backprop", &["inputs=65_536", "units=512"]).on_large_chip(&["inputs=262_144", "units=512"]),
    Large::new("lud", &["size=1_024"]).on_large_chip(&["size=1_536"]),
    Large::new("gaussian", &["size=512"]).on_large_chip(&["size=768"]),
    Large::new("pathfinder", &["columns=262_144", "rows=256"])
        .on_large_chip(&["columns=262_144", "rows=512"]),
    Large::new("srad", &["size=512", "steps=64"]),
    Large::new("streamcluster", &["points=65_536", "candidates=48"])
        .on_large_chip(&["points=65_536", "candidates=64"]),
    Large::new("nn", &["points=4_194_304"]).on_large_chip(&["points=67_108_864"]),
    Large::new("cfd", &["cells=16_384", "steps=24"]).on_large_chip(&["cells=16_384", "steps=32"]),
    Large::new("lava", &["boxes=24", "each=32"]).on_large_chip(&["boxes=32", "each=32"]),
];

/// A workload in both models.
#[derive(Clone, Debug, Serialize)]
struct Compared {
    workload: &'static str,
    params: &'static [&'static str],
    launches: u64,
    warp_insts: u64,
    timed_cycles: u64,
    fast_cycles: u64,
    /// By how much the fast model's cycles are too high, as a share of the timed model's.
    error: f64,
    /// What the fast model says of its error.
    estimated_error: f64,
    /// Warp instructions that the fast model timed, as a share.
    timed_share: f64,
    timed_because: Vec<String>,
    timed_wall_s: f64,
    fast_wall_s: f64,
    times_as_fast: f64,
}

pub(super) fn speed(options: &SpeedOptions) -> Result<Exit, Failure> {
    if let Some(kernel) = options.kernels.iter().find(|name| LARGE.iter().all(|large| large.name != **name)) {
        let known: Vec<_> = LARGE.iter().map(|large| large.name).collect();
        return Err(Failure::input(format!(
            "the set has no kernel `{kernel}`; there are {}",
            known.join(", ")
        )));
    }
    if !options.threads.is_empty() {
        return Err(Failure::input(
            "--threads needs the timed model: the comparison with the fast one uses one",
        ));
    }
    let chip = match &options.chips[..] {
        [] => "gtx480",
        [chip] => chip,
        _ => return Err(Failure::input("--model fast is compared on one --chip at a time")),
    };
    let chip = Chip::load(chip, &options.set).map_err(Error::from)?;
    if !options.json {
        term::print(&format!("\n{}, fast model beside the timed one, one thread\n{}", chip.name, row(HEAD)))?;
    }
    let chosen =
        |large: &&Large| options.kernels.is_empty() || options.kernels.iter().any(|k| k == large.name);
    let mut all = Vec::new();
    for large in LARGE.iter().filter(chosen) {
        let compared = compare(&chip, large, options.repeat)?;
        if !options.json {
            term::print(&compared.row())?;
        }
        all.push(compared);
    }
    if options.json {
        print_json(json!({
            "chip": chip.name, "model": "fast", "repeat": options.repeat, "workloads": all,
        }))?;
        return Ok(Exit::Good);
    }
    term::print(&summary(&all))?;
    term::print(&term::legend(&LEGEND))?;
    Ok(Exit::Good)
}

fn compare(chip: &Chip, large: &Large, repeat: u32) -> Result<Compared, Failure> {
    let params = large.params_for(chip);
    let run = |model: ModelName| {
        let timing = Timing { threads: 1, ..Timing::default() };
        let sim = SimOptions { model: model.into(), timing, ..SimOptions::default() };
        let runs =
            (0..repeat).map(|_| work(&mut Device::sim_with(chip.clone(), sim.clone()), large.name, params));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let fastest = runs.into_iter().min_by(|a, b| a.wall_s.total_cmp(&b.wall_s));
        fastest.ok_or_else(|| Failure::input("--repeat must be at least 1"))
    };
    let (timed, fast) = (run(ModelName::Timing)?, run(ModelName::Fast)?);
    let estimate = fast.estimate.unwrap_or_default();
    let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    Ok(Compared {
        workload: large.name,
        params,
        launches: estimate.launches,
        warp_insts: fast.warp_insts,
        timed_cycles: timed.cycles,
        fast_cycles: fast.cycles,
        error: ratio(fast.cycles as f64, timed.cycles as f64) - 1.0,
        estimated_error: estimate.error,
        timed_share: ratio(estimate.timed_warp_insts as f64, fast.warp_insts as f64),
        timed_because: estimate.timed_because,
        timed_wall_s: timed.wall_s,
        fast_wall_s: fast.wall_s,
        times_as_fast: ratio(timed.wall_s, fast.wall_s),
    })
}

/// What the columns mean.
const LEGEND: [(&str, &str); 4] = [
    ("error", "by how much the fast model's cycles are too high (+) or too low"),
    ("said", "what the fast model itself says of its error: how much its samples differ"),
    ("timed", "warp instructions that it has timed"),
    ("as fast", "host time of the timed model over that of the fast one, the fastest of --repeat runs"),
];

const HEAD: [&str; 9] = [
    "workload",
    "launches",
    "warp insts",
    "timed cycles",
    "fast cycles",
    "error",
    "said",
    "timed",
    "as fast",
];

fn row([name, launches, insts, timed, fast, error, said, share, times]: [&str; 9]) -> String {
    format!(
        "{name:<30} {launches:>8} {insts:>12} {timed:>13} {fast:>13} {error:>7} {said:>6} {share:>6} {times:>8}\n"
    )
}

impl Compared {
    fn row(&self) -> String {
        let percent = |share: f64| format!("{:.1}%", 100.0 * share);
        let name =
            std::iter::once(self.workload).chain(self.params.iter().copied()).collect::<Vec<_>>().join(" ");
        row([
            &name,
            &grouped(self.launches),
            &grouped(self.warp_insts),
            &grouped(self.timed_cycles),
            &grouped(self.fast_cycles),
            &format!("{:+.1}%", 100.0 * self.error),
            &percent(self.estimated_error),
            &percent(self.timed_share),
            &format!("{:.1}", self.times_as_fast),
        ])
    }
}

/// The errors of those that leave something out.
fn summary(all: &[Compared]) -> String {
    let errors: Vec<f64> =
        all.iter().filter(|one| one.timed_share < 1.0).map(|one| one.error.abs()).collect();
    let (most, sum) =
        (errors.iter().copied().fold(0.0, f64::max), errors.iter().fold(0.0, |sum, error| sum + error));
    let mean = sum / errors.len().max(1) as f64;
    let times = |of: fn(&Compared) -> f64| all.iter().map(of).sum::<f64>();
    format!(
        "\nError of the {} that are not timed as a whole: {:.1}% on average, at most {:.1}%. All of them together: \
         {:.1} times as fast.\n",
        counted(errors.len() as u64, "workload"),
        100.0 * mean,
        100.0 * most,
        times(|one| one.timed_wall_s) / times(|one| one.fast_wall_s).max(1e-9)
    )
}
