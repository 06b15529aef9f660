//! The tables for people.

use std::fmt::Write;

use super::Measured;
use crate::term::{self, grouped, seconds};

/// What the columns mean.
pub(super) fn legend() -> String {
    term::legend(&[
        ("warp insts", "instructions issued by warps"),
        ("time", "on the host: the fastest of --repeat runs"),
        ("M insts/s", "millions of warp instructions per second of the host"),
        ("k cycles/s", "thousands of simulated cycles per second of the host"),
        (
            "host insts",
            "instructions of the host per warp instruction, with loading the kernel and checking the result",
        ),
        ("on N", "times as fast with N host threads"),
    ])
}

/// The line above a chip's table, and its head.
pub(super) fn heading(chip: &str, timed: bool, threads: &[usize]) -> String {
    let with = match threads {
        [1, ..] => "one thread".to_string(),
        [threads, ..] => format!("{threads} threads"),
        [] => String::new(),
    };
    let model = if timed { format!("timed model, {with}") } else { "functional model".to_string() };
    let others = threads.iter().skip(1).map(|threads| format!("on {threads}"));
    let columns = ["warp insts", "cycles", "time", "M insts/s", "k cycles/s", "host insts"];
    format!("\n{chip}, {model}\n{}", line("kernel", "bound by", columns, others))
}

pub(super) fn row(measured: &Measured) -> String {
    let (insts, cycles) = (grouped(measured.warp_insts), grouped(measured.cycles));
    let rate = format!("{:.2}", measured.warp_insts_per_s / 1e6);
    let cycle_rate = format!("{:.0}", measured.cycles_per_s / 1e3);
    let host = measured.host_insts_per_warp_inst.map_or("-".to_string(), |host| grouped(host.round() as u64));
    let columns = [&*insts, &cycles, &seconds(measured.wall_s), &rate, &cycle_rate, &host];
    let others = measured.threads.iter().skip(1).map(|with| format!("{:.2}x", with.speedup));
    line(measured.kernel, measured.about, columns, others)
}

fn line(kernel: &str, about: &str, columns: [&str; 6], others: impl Iterator<Item = String>) -> String {
    let [insts, cycles, time, rate, cycle_rate, host] = columns;
    let mut line = format!(
        "{kernel:<11} {about:<23} {insts:>11} {cycles:>11} {time:>9} {rate:>9} {cycle_rate:>10} {host:>10}"
    );
    for other in others {
        let _ = write!(line, " {other:>6}");
    }
    line.push('\n');
    line
}

/// The line below a chip's table.
pub(super) fn launch_and_memory(launch_s: f64, memory_bytes: Option<u64>) -> String {
    let memory = memory_bytes.map_or(String::new(), |bytes| {
        format!(" A process that simulates all of the chip takes {} MB.", (bytes as f64 / 1e6).round())
    });
    format!("A launch of one warp takes {} on one thread.{memory}\n", seconds(launch_s))
}
