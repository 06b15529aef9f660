//! `warploom speed`: how many warp instructions a second this computer simulates, on a standard set of kernels.

use serde::Serialize;
use serde_json::json;
use warploom::{Arg, Chip, Device, Error, Launch, Report, SimOptions, args};

use crate::cli::SpeedOptions;
use crate::failure::{Exit, Failure};
use crate::fill;
use crate::term::{self, grouped, seconds};

/// One kernel of the set.
struct Case {
    /// What limits it, for people.
    about: &'static str,
    kernel: &'static str,
    ptx: &'static str,
    run: fn(&mut Device, &warploom::Kernel) -> Result<Report, Error>,
}

macro_rules! ptx {
    ($name:literal) => {
        include_str!(concat!("../../../kernels/", $name, ".ptx"))
    };
}

/// The standard set. Changing a size makes the numbers of different versions incomparable.
const CASES: &[Case] = &[
    Case { about: "memory", kernel: "vecadd", ptx: ptx!("vecadd"), run: vecadd },
    Case { about: "arithmetic", kernel: "nbody", ptx: ptx!("nbody"), run: nbody },
    Case { about: "shared memory, barriers", kernel: "matmul", ptx: ptx!("matmul"), run: matmul },
    Case { about: "divergence", kernel: "classify", ptx: ptx!("switch"), run: classify },
    Case { about: "local memory", kernel: "localarray", ptx: ptx!("localarray"), run: localarray },
    Case { about: "a lock", kernel: "spinlock_inc", ptx: ptx!("spinlock"), run: spinlock },
];

/// What a kernel of the set took.
#[derive(Serialize)]
struct Measured {
    kernel: &'static str,
    about: &'static str,
    warp_insts: u64,
    thread_insts: u64,
    /// Of the fastest run.
    wall_s: f64,
    warp_insts_per_s: f64,
}

/// Runs the set and prints what each kernel took.
pub fn speed(options: &SpeedOptions) -> Result<Exit, Failure> {
    let chip = Chip::load(&options.chip.chip, &options.chip.set).map_err(Error::from)?;
    let mut set = Vec::new();
    if !options.json {
        term::print(&row("kernel", "bound by", ["warp insts", "time", "M insts/s"]))?;
    }
    for case in CASES {
        let measured = measure(&chip, case, options.repeat)?;
        if !options.json {
            term::print(&measured.row())?;
        }
        set.push(measured);
    }
    let total = Measured {
        kernel: "total",
        about: "",
        warp_insts: set.iter().map(|m| m.warp_insts).sum(),
        thread_insts: set.iter().map(|m| m.thread_insts).sum(),
        wall_s: set.iter().map(|m| m.wall_s).sum(),
        warp_insts_per_s: 0.0,
    }
    .with_rate();
    let text = if options.json {
        let (model, threads) = (warploom::Model::Functional, 1);
        let object = json!({
            "chip": chip.name, "model": model, "threads": threads, "repeat": options.repeat,
            "kernels": set, "total": total,
        });
        format!("{object}\n")
    } else {
        total.row()
    };
    term::print(&text)?;
    Ok(Exit::Good)
}

fn measure(chip: &Chip, case: &Case, repeat: u32) -> Result<Measured, Failure> {
    let mut gpu = Device::sim_with(chip.clone(), SimOptions::default());
    let module = gpu.load_ptx_named(&format!("{}.ptx", case.kernel), case.ptx)?;
    let kernel = module.kernel(case.kernel)?;
    let mut best: Option<Report> = None;
    for _ in 0..repeat {
        let report = (case.run)(&mut gpu, &kernel)?;
        if best.as_ref().is_none_or(|b| report.wall_s < b.wall_s) {
            best = Some(report);
        }
    }
    let best = best.ok_or_else(|| Failure::input("--repeat must be at least 1"))?;
    Ok(Measured {
        kernel: case.kernel,
        about: case.about,
        warp_insts: best.warp_insts,
        thread_insts: best.thread_insts,
        wall_s: best.wall_s,
        warp_insts_per_s: best.warp_insts_per_s,
    })
}

impl Measured {
    fn with_rate(mut self) -> Measured {
        self.warp_insts_per_s = if self.wall_s > 0.0 { self.warp_insts as f64 / self.wall_s } else { 0.0 };
        self
    }

    fn row(&self) -> String {
        let rate = format!("{:.1}", self.warp_insts_per_s / 1e6);
        row(self.kernel, self.about, [&grouped(self.warp_insts), &seconds(self.wall_s), &rate])
    }
}

fn row(kernel: &str, about: &str, [insts, time, rate]: [&str; 3]) -> String {
    format!("{kernel:<13} {about:<24} {insts:>14} {time:>10} {rate:>10}\n")
}

fn vecadd(gpu: &mut Device, kernel: &warploom::Kernel) -> Result<Report, Error> {
    let n = 1 << 21;
    let data = vec![1.0f32; n];
    let (a, b, c) = (gpu.buffer(&data)?, gpu.buffer(&data)?, gpu.zeros::<f32>(n)?);
    gpu.launch(kernel, Launch::grid(n / 256).block(256), args![&a, &b, &c, n as u32])
}

fn nbody(gpu: &mut Device, kernel: &warploom::Kernel) -> Result<Report, Error> {
    let n = 2048;
    let bodies = gpu.buffer(&fill::random(warploom::isa::Ty::F32, 4 * n, 1))?;
    let acc = gpu.zeros::<f32>(4 * n)?;
    gpu.launch(kernel, Launch::grid(n / 256).block(256), args![&bodies, &acc, n as u32, 0.01f32])
}

fn matmul(gpu: &mut Device, kernel: &warploom::Kernel) -> Result<Report, Error> {
    let n = 256;
    let data = vec![1.0f32; n * n];
    let (a, b, c) = (gpu.buffer(&data)?, gpu.buffer(&data)?, gpu.zeros::<f32>(n * n)?);
    gpu.launch(kernel, Launch::grid([n / 16, n / 16]).block([16, 16]), args![&a, &b, &c, n as u32])
}

fn classify(gpu: &mut Device, kernel: &warploom::Kernel) -> Result<Report, Error> {
    let n = 1 << 18;
    let data = gpu.buffer(&fill::random(warploom::isa::Ty::U32, n, 1))?;
    let out = gpu.zeros::<u32>(n)?;
    gpu.launch(kernel, Launch::grid(n / 256).block(256), args![&data, &out, n as u32])
}

fn localarray(gpu: &mut Device, kernel: &warploom::Kernel) -> Result<Report, Error> {
    let n = 1 << 15;
    let data = gpu.buffer(&fill::random(warploom::isa::Ty::S32, 16 * n, 1))?;
    let out = gpu.zeros::<i32>(16 * n)?;
    gpu.launch(kernel, Launch::grid(n / 256).block(256), args![&data, &out, n as u32])
}

fn spinlock(gpu: &mut Device, kernel: &warploom::Kernel) -> Result<Report, Error> {
    let (lock, counter) = (gpu.zeros::<u32>(1)?, gpu.zeros::<u32>(1)?);
    let args: [Arg<'_>; 3] = args![&lock, &counter, 4u32];
    gpu.launch(kernel, Launch::grid(15).block(128), args)
}
