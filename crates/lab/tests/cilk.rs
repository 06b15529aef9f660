//! The Cilk programs compute the host's results: on every number of compute units, in channels that are far too
//! narrow, and on the host.

use warploom::{Chip, Device, SimOptions};
use warploom_lab::work::Workload;

fn run(name: &str, values: &[&str], changes: &[String]) -> warploom::Report {
    let workload = Workload::find(name).unwrap();
    let values = workload.values(values).unwrap();
    let mut gpu = Device::sim_with(Chip::load("apu", changes).unwrap(), SimOptions::default());
    let outcome = workload.run(&mut gpu, &values, &|launch| launch).unwrap();
    if let Err(wrong) = &outcome.check {
        panic!("{name} {values}: {wrong}");
    }
    outcome.total
}

const PROGRAMS: [(&str, &str); 4] =
    [("fibonacci", "n=13"), ("queens", "n=7"), ("sort", "count=1500"), ("strassen", "size=64")];

#[test]
fn on_every_number_of_compute_units() {
    for (name, size) in PROGRAMS {
        for units in [1, 2, 4, 8] {
            run(name, &[size], &[format!("sm.count={units}")]);
        }
    }
}

#[test]
fn in_channels_of_64() {
    let mut yields = 0;
    for (name, size) in
        [("fibonacci", "n=14"), ("queens", "n=8"), ("sort", "count=6000"), ("strassen", "size=128")]
    {
        let report = run(name, &[size, "width=64"], &["sm.count=2".to_string()]);
        yields += report.aggregator.unwrap()["yields"];
    }
    assert!(yields > 0);
}

/// The firmware may be arbitrarily slow: wavefronts end, yield and make tasks between any two of its instructions.
#[test]
fn under_an_aggregator_of_any_speed() {
    for (name, size) in PROGRAMS {
        for (effort, core) in [(3, "4-way"), (7, "2-way-light"), (20, "2-way"), (1000, "simple")] {
            for width in [64, 1024] {
                let values = [size, &format!("effort={effort}"), &format!("width={width}")];
                run(name, &values, &[format!("aggregator.core={core}"), "sm.count=3".to_string()]);
            }
        }
    }
}

#[test]
fn on_the_host() {
    for (name, size) in
        [("fibonacci", "n=20"), ("queens", "n=9"), ("sort", "count=50000"), ("strassen", "size=128")]
    {
        for width in ["width=64", "width=4096"] {
            run(name, &[size, width, "on=host"], &[]);
        }
    }
}

#[test]
fn the_hybrid_never_yields() {
    let report = run("fibonacci", &["n=14", "width=64", "policy=hybrid"], &[]);
    assert_eq!(report.aggregator.unwrap()["yields"], 0);
}

#[test]
fn sorted_and_equal_numbers() {
    // A single number cannot be split.
    run("sort", &["count=1"], &[]);
    run("sort", &["count=65", "base=4"], &[]);
}

#[test]
fn flattened_queens() {
    run("queens_flat", &["n=8"], &[]);
    run("queens_flat", &["n=1"], &[]);
}

#[test]
fn wrong_values() {
    let wrong = |name: &str, values: &[&str]| {
        let workload = Workload::find(name).unwrap();
        let mut gpu = Device::sim("apu").unwrap();
        match workload.values(values) {
            Err(error) => error.to_string(),
            Ok(values) => workload.run(&mut gpu, &values, &|launch| launch).unwrap_err().to_string(),
        }
    };
    assert!(wrong("queens", &["n=40"]).contains("a number from 1 to 16"));
    assert!(wrong("fibonacci", &["width=0"]).contains("less than the 64 elements that a wavefront takes"));
    assert!(wrong("strassen", &["size=48"]).contains("16 times a power of two"));
    assert!(wrong("sort", &["count=1000", "width=268435456"]).contains("take narrower channels"));
    let mut gtx = Device::sim("gtx480").unwrap();
    let workload = Workload::find("fibonacci").unwrap();
    let values = workload.values::<&str>(&[]).unwrap();
    let error = workload.run(&mut gtx, &values, &|launch| launch).unwrap_err().to_string();
    assert!(error.contains("has no control processor"), "{error}");
}

/// The same programs in one persistent kernel on a GPU without an aggregator, and with the host as their scheduler.
#[test]
fn on_a_gpu_without_an_aggregator() {
    let programs = [
        ("fibonacci", "n=13"),
        ("queens", "n=7"),
        ("sort", "count=1500"),
        ("strassen", "size=64"),
        ("tree", "roots=100"),
    ];
    let workloads = programs.map(|(name, size)| (Workload::find(name).unwrap(), size));
    for (workload, size) in workloads {
        for width in ["width=1024", "width=4096"] {
            for how in [
                ["schedule=persistent", "ctas=1"],
                ["schedule=persistent", "ctas=6"],
                ["schedule=sm", "ctas=1"],
                ["schedule=sm", "ctas=6"],
                ["schedule=levels", "ctas=0"],
            ] {
                let values = workload.values(&[size, width, "on=cuda", how[0], how[1]]).unwrap();
                assert!(workload.wants_gpu(&values));
                let chip = Chip::load(workload.chip(&values), &["sm.count=4".to_string()]).unwrap();
                let mut gpu = Device::sim_with(chip, SimOptions::default());
                let outcome =
                    workload.run(&mut gpu, &values, &|launch| launch.max_cycles(100_000_000)).unwrap();
                assert!(outcome.check.is_ok(), "{} {values}: {:?}", workload.name, outcome.check);
            }
        }
    }
}

#[test]
fn reserving_in_log_steps() {
    for (name, size) in PROGRAMS {
        for width in ["width=64", "width=1024"] {
            run(name, &[size, width, "reserve=steps"], &["sm.count=2".to_string()]);
        }
    }
    run("strassen", &["size=64", "reads=vector", "reserve=steps"], &[]);
    run("tree", &["roots=50", "reserve=steps"], &[]);
    // Six steps take longer than a ballot for each of two bits.
    let cycles = |reserve: &str| run("fibonacci", &["n=14", reserve], &[]).cycles;
    assert!(cycles("reserve=steps") > cycles("reserve=wavefront"));
}

#[test]
fn tasks_in_the_main_channel() {
    for n in ["n=1", "n=2", "n=3", "n=15"] {
        run("fibonacci", &[n, "tasks=main"], &[]);
        run("fibonacci", &[n, "tasks=main", "on=host"], &[]);
    }
    run("fibonacci", &["n=12", "tasks=main", "reserve=lane"], &[]);
    run("fibonacci", &["n=12", "tasks=main", "reserve=steps"], &[]);
    let workload = Workload::find("fibonacci").unwrap();
    let values = workload.values(&["tasks=main", "policy=hybrid"]).unwrap();
    let mut gpu = Device::sim("apu").unwrap();
    let error = workload.run(&mut gpu, &values, &|launch| launch).unwrap_err().to_string();
    assert!(error.contains("policy=hybrid is for tasks=levels"), "{error}");
}

#[test]
fn the_main_channel_on_a_gpu_without_an_aggregator() {
    let workload = Workload::find("fibonacci").unwrap();
    let values = workload.values(&["n=10", "tasks=main", "on=cuda", "ctas=4"]).unwrap();
    let chip = Chip::load("h200", &["sm.count=4".to_string()]).unwrap();
    let mut gpu = Device::sim_with(chip, SimOptions::default());
    let outcome = workload.run(&mut gpu, &values, &|launch| launch.max_cycles(100_000_000)).unwrap();
    assert!(outcome.check.is_ok(), "{:?}", outcome.check);
}
