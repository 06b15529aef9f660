//! What the tests share: machines, input data, comparisons.

use std::fmt::{self, Debug};
use std::time::Duration;

use warploom::{Arg, Chip, Device, Kernel, Launch, Report, SimModel, SimOptions, Timing};

/// What a test runs on: a chip and a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// A chip, or `cuda` for this computer's GPU.
    pub chip: &'static str,
    /// The warp scheduling policy of the timed model; `None` is the functional model.
    pub policy: Option<&'static str>,
}

const fn functional(chip: &'static str) -> Machine {
    Machine { chip, policy: None }
}

const fn timed(chip: &'static str, policy: &'static str) -> Machine {
    Machine { chip, policy: Some(policy) }
}

/// The machines for small texts. Without timing: a SIMT stack, independent threads, wavefronts of 64 lanes.
/// With timing: every chip, each with one policy.
pub(crate) const MACHINES: [Machine; 8] = [
    functional("gtx480"),
    functional("h200"),
    functional("apu"),
    timed("gtx480", "gto"),
    timed("gtx570", "cawa"),
    timed("gtx1080ti", "lrr"),
    timed("h200", "cawa"),
    timed("apu", "gto"),
];

/// The entries of [`MACHINES`] with this chip.
pub(crate) fn machines_of(chip: &str) -> impl Iterator<Item = Machine> {
    MACHINES.into_iter().filter(move |machine| machine.chip == chip)
}

const GPU: Machine = functional("cuda");

/// The machines for whole kernels: without timing as in [`MACHINES`], and with timing on every chip. There, the
/// first text of a kernel runs with every policy and each further text with one policy in rotation. With
/// `WARPLOOM_TEST_DEVICE=cuda` they run on this computer's GPU (then run one test at a time).
pub(crate) fn machines_for(text: usize) -> Vec<Machine> {
    if on_gpu() {
        return vec![GPU];
    }
    let policies: Vec<_> = warploom::policies().into_iter().map(|(policy, _)| policy).collect();
    let (untimed, chips): (Vec<_>, Vec<_>) = MACHINES.into_iter().partition(|m| m.policy.is_none());
    let with = |(at, machine): (usize, &Machine)| {
        let first = (text + at) % policies.len();
        let chosen = if text == 0 { &policies[..] } else { &policies[first..=first] };
        chosen.iter().map(|policy| timed(machine.chip, policy)).collect::<Vec<_>>()
    };
    let timed = chips.iter().enumerate().flat_map(with);
    untimed.iter().copied().chain(timed).collect()
}

/// Whether whole kernels run on this computer's GPU.
pub(crate) fn on_gpu() -> bool {
    std::env::var("WARPLOOM_TEST_DEVICE").as_deref() == Ok("cuda")
}

const SMALL: [&str; 2] = ["sm.count=2", "sm.max_ctas=4"];

impl Machine {
    /// The device, reduced to eight resident CTAs so that small grids run in several waves.
    pub(crate) fn small(self) -> Device {
        #[cfg(feature = "cuda")]
        if self == GPU {
            return Device::cuda(0).expect("a GPU");
        }
        self.with(&SMALL, SimOptions::default())
    }

    /// The same, and PTX executes as it is written.
    pub(crate) fn small_as_written(self) -> Device {
        self.with(&[&SMALL, self.as_written()].concat(), SimOptions::default())
    }

    /// Overrides with which PTX executes as it is written.
    pub(crate) fn as_written(self) -> &'static [&'static str] {
        if self.chip == "h200" { &["compiler.optimise=false"] } else { &[] }
    }

    /// The device with overrides of its chip and other options.
    pub(crate) fn with(self, settings: &[&str], options: SimOptions) -> Device {
        let settings: Vec<String> = settings.iter().map(|setting| setting.to_string()).collect();
        let chip = Chip::load(self.chip, &settings).expect("a built-in chip");
        let model = if self.policy.is_some() { SimModel::Timing } else { SimModel::Functional };
        // Tests already run in parallel, so one host thread each is enough.
        let threads = options.timing.threads.max(1);
        let timing = Timing { policy: self.policy.map(String::from), threads, ..options.timing };
        Device::sim_with(chip, SimOptions { model, timing, ..options })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.policy {
            Some(policy) => write!(f, "{} with {policy}", self.chip),
            None => f.write_str(self.chip),
        }
    }
}

/// No test takes this many cycles unless it hangs.
const ENOUGH: u64 = 50_000_000;

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A device with a kernel under test.
pub(crate) struct Run {
    pub gpu: Device,
    pub kernel: Kernel,
    /// Whether results are compared bit for bit.
    pub exact: bool,
    /// What each launch took, to compare two routes to the same program.
    pub launches: Vec<String>,
}

impl Run {
    pub(crate) fn launch<'a>(
        &mut self,
        launch: Launch,
        args: impl AsRef<[Arg<'a>]>,
    ) -> warploom::Result<Report> {
        let launch = match launch.max_cycles {
            Some(_) => launch,
            None => launch.max_cycles(ENOUGH).time_limit(Duration::from_secs(5)),
        };
        let result = self.gpu.launch(&self.kernel, launch, args);
        let report = result.as_ref().map_or_else(|error| error.report(), Some);
        if let Some(report) = report {
            check_counts(report);
            let Report { cycles, warp_insts, thread_insts, registers, stalls, locks, .. } = report;
            let locks =
                locks.as_ref().map(|l| (l.acquired, l.failed_intra, l.failed_inter, l.wait_ok, l.wait_fail));
            self.launches
                .push(format!("{cycles} {warp_insts} {thread_insts} {registers} {stalls:?} {locks:?}"));
        }
        result
    }

    /// Whether the lanes of a warp make progress independently.
    pub(crate) fn independent(&self) -> bool {
        self.gpu.is_real() || self.gpu.name() == "h200"
    }
}

/// With timing, every cycle of every warp has one stall reason, and every instruction has a class.
#[track_caller]
fn check_counts(report: &Report) {
    let (Some(stalls), Some(classes)) = (&report.stalls, &report.classes) else { return };
    assert_eq!(Some(stalls.values().sum()), report.warp_cycles, "cycles of {stalls:?}");
    assert_eq!(classes.values().sum::<u64>(), report.warp_insts, "instructions of {classes:?}");
    let sms = report.sms.as_ref().expect("a timed launch tells of each SM");
    for sm in sms {
        assert_eq!(sm.stalls.values().sum::<u64>(), sm.warp_cycles, "cycles of {:?}", sm.stalls);
        assert_eq!(sm.classes.values().sum::<u64>(), sm.warp_insts, "instructions of {:?}", sm.classes);
    }
    assert_eq!(Some(sms.iter().map(|sm| sm.warp_cycles).sum()), report.warp_cycles);
    assert_eq!(sms.iter().map(|sm| sm.thread_insts).sum::<u64>(), report.thread_insts);
}

/// A small generator of reproducible input (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn word(&mut self) -> u32 {
        self.next() as u32
    }

    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        (self.next() % u64::from(limit)) as u32
    }

    /// Between -1 and 1.
    pub(crate) fn unit(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 63) as f64 - 1.0
    }

    pub(crate) fn words(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| self.word()).collect()
    }

    pub(crate) fn words_below(&mut self, n: usize, limit: u32) -> Vec<u32> {
        (0..n).map(|_| self.below(limit)).collect()
    }

    pub(crate) fn floats(&mut self, n: usize, scale: f64) -> Vec<f32> {
        (0..n).map(|_| (scale * self.unit()) as f32).collect()
    }
}

/// Fails at the first element that `agree` rejects.
fn compare<T: Debug>(what: &str, got: &[T], expected: &[T], agree: impl Fn(&T, &T) -> bool) -> Outcome {
    if got.len() != expected.len() {
        return Err(format!("{what} has {} elements, expected {}", got.len(), expected.len()).into());
    }
    let wrong = || got.iter().zip(expected).enumerate().filter(|(_, (g, e))| !agree(g, e));
    let Some((at, (g, e))) = wrong().next() else { return Ok(()) };
    let (count, all) = (wrong().count(), got.len());
    Err(format!("{what}[{at}] is {g:?}, expected {e:?} ({count} of {all} differ)").into())
}

pub(crate) fn same<T: PartialEq + Debug>(what: &str, got: &[T], expected: &[T]) -> Outcome {
    compare(what, got, expected, T::eq)
}

/// Compares words and shows them in hex, for masks and bit patterns.
pub(crate) fn same_hex(what: &str, got: &[u32], expected: &[u32]) -> Outcome {
    let hex = |words: &[u32]| words.iter().map(|w| format!("{w:#010x}")).collect::<Vec<_>>();
    same(what, &hex(got), &hex(expected))
}

/// Compares bit patterns.
pub(crate) fn same_f32(what: &str, got: &[f32], expected: &[f32]) -> Outcome {
    compare(what, got, expected, |g, e| g.to_bits() == e.to_bits())
}

/// Compares bit patterns.
pub(crate) fn same_f64(what: &str, got: &[f64], expected: &[f64]) -> Outcome {
    compare(what, got, expected, |g, e| g.to_bits() == e.to_bits())
}

/// Allows a relative error (absolute below 1).
pub(crate) fn close(what: &str, got: &[f64], expected: &[f64], tolerance: f64) -> Outcome {
    compare(what, got, expected, |g, e| (g - e).abs() <= tolerance * e.abs().max(1.0))
}

pub(crate) fn widened(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| f64::from(v)).collect()
}
