use super::*;

fn load(chip: &str, overrides: &[&str]) -> Result<Chip, ChipError> {
    Chip::load(chip, &overrides.iter().map(|s| s.to_string()).collect::<Vec<_>>())
}

fn gtx480_text() -> &'static str {
    BUILT_IN[0].1
}

#[test]
fn built_in_chips_load() {
    for name in names() {
        let chip = load(name, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(chip.name, name);
    }
}

#[test]
fn memory_has_the_documented_bandwidth() {
    for (name, gigabytes_per_second) in
        [("gtx480", 177.4), ("gtx570", 152.0), ("gtx1080ti", 484.0), ("apu", 20.0), ("h200", 4800.0)]
    {
        let chip = load(name, &[]).unwrap();
        let peak = chip.peak_dram_bytes_per_cycle() * f64::from(chip.clock.core_mhz) / 1000.0;
        assert!((peak - gigabytes_per_second).abs() < 0.05, "{name}: {peak} GB/s");
    }
}

#[test]
fn caches_have_the_documented_sizes() {
    for (name, l1_kb, l2_kb) in [
        ("gtx480", 16, 768),
        ("gtx570", 16, 640),
        ("gtx1080ti", 48, 2816),
        ("apu", 16, 1024),
        ("h200", 128, 60 * 1024),
    ] {
        let chip = load(name, &[]).unwrap();
        let slices = chip.l2.partitions * chip.l2.slices_per_partition;
        let bytes = |cache: &CacheSpec| cache.sets * cache.ways * cache.line_bytes;
        assert_eq!(bytes(&chip.l1.cache), l1_kb * 1024, "{name}");
        assert_eq!(bytes(&chip.l2.cache) * slices, l2_kb * 1024, "{name}");
    }
}

/// Overrides of the gtx480 that make it impossible, and the key that the error must name.
const IMPOSSIBLE: &[(&[&str], &str)] = &[
    (&["sm.warp_lanes=16"], "sm.warp_lanes"),
    (&["sm.count=65536"], "sm.count"),
    (&["sm.max_warps=65"], "sm.max_warps"),
    (&["sm.max_threads=31"], "sm.max_threads"),
    (&["sm.barriers_per_cta=17"], "sm.barriers_per_cta"),
    (&["sm.shared_bytes=16777217"], "sm.shared_bytes"),
    (&["launch.max_threads_per_cta=2048"], "launch.max_threads_per_cta"),
    (&["launch.max_shared_bytes_per_cta=65536"], "launch.max_shared_bytes_per_cta"),
    (&["clock.core_mhz=100000"], "clock.core_mhz"),
    (&["fetch.instruction_bytes=12"], "fetch.instruction_bytes"),
    (&["fetch.instruction_bytes=256"], "fetch.instruction_bytes"),
    (&["fetch.cache.sets=3"], "fetch.cache.sets"),
    (&["fetch.cache.line_bytes=256"], "fetch.cache.line_bytes"),
    (&["issue.schedulers=49"], "issue.schedulers"),
    (&["sm.max_warps=4", "issue.schedulers=5"], "issue.schedulers"),
    (&["issue.policy=oldest"], "issue.policy"),
    (
        &["issue.bows.min_limit_cycles=2000", "issue.bows.max_limit_cycles=1000"],
        "issue.bows.max_limit_cycles",
    ),
    (&["issue.bows.max_limit_cycles=10000000000"], "issue.bows.max_limit_cycles"),
    (&["issue.bows.limit_cycles=10000000000"], "issue.bows.limit_cycles"),
    (&["issue.bows.frac1=1.5"], "issue.bows.frac1"),
    (&["issue.bows.frac1=nan"], "issue.bows.frac1"),
    (&["issue.bows.frac2=-0.5"], "issue.bows.frac2"),
    (&["lock_queue.sets=100000"], "lock_queue.sets"),
    (&["lock_queue.ways=9"], "lock_queue.ways"),
    (&["issue.ddos.path_bits=33"], "issue.ddos.path_bits"),
    (&["issue.ddos.value_bits=0"], "issue.ddos.value_bits"),
    (&["issue.ddos.value_bits=64"], "issue.ddos.value_bits"),
    (&["issue.ddos.history=0"], "issue.ddos.history"),
    (&["issue.ddos.history=1000"], "issue.ddos.history"),
    (&["issue.ddos.table_entries=0"], "issue.ddos.table_entries"),
    (&["issue.ddos.threshold=0"], "issue.ddos.threshold"),
    (&["operands.banks=12"], "operands.banks"),
    (&["operands.sp_collectors=100000"], "operands.sp_collectors"),
    (&["units.int.add=[0, 1]"], "units.int.add"),
    (&["units.int.max=[1, 0]"], "units.int.max"),
    (&["units.f32.mul=[1025, 1]"], "units.f32.mul"),
    (&["units.f64.mad=[8, 0]"], "units.f64.mad"),
    (&["units.f64.div=[330, 2000]"], "units.f64.div"),
    (&["units.special=[0, 0]"], "units.special"),
    (&["units.exchange=[4, 0]"], "units.exchange"),
    (&["shared.banks=24"], "shared.banks"),
    (&["l1.cache.sets=48"], "l1.cache.sets"),
    (&["l1.cache.ways=100000"], "l1.cache.ways"),
    (&["l1.cache.line_bytes=96"], "l1.cache.line_bytes"),
    (&["l1.cache.line_bytes=64"], "l1.cache.line_bytes"),
    (&["l1.bypass_bytes=16"], "l1.bypass_bytes"),
    (&["l1.bypass_bytes=48"], "l1.bypass_bytes"),
    (&["l1.bypass_bytes=256"], "l1.bypass_bytes"),
    (&["constant.cache.line_bytes=100"], "constant.cache.line_bytes"),
    (&["constant.cache.line_bytes=64"], "constant.cache.line_bytes"),
    (&["fetch.cache.line_bytes=64"], "fetch.cache.line_bytes"),
    (&["interconnect.header_bytes=100000"], "interconnect.header_bytes"),
    (&["l2.cache.sets=63"], "l2.cache.sets"),
    (&["l2.cache.line_bytes=256"], "l2.cache.line_bytes"),
    (&["l2.interleave_bytes=384"], "l2.interleave_bytes"),
    (&["l2.interleave_bytes=64"], "l2.interleave_bytes"),
    (&["l2.slices_per_partition=3"], "l2.slices_per_partition"),
    (&["l2.slices_per_partition=32768"], "l2.slices_per_partition"),
    (&["l2.cache.sets=1024", "l2.cache.ways=2048"], "l2.cache.ways"),
    (&["dram.bus_bytes=12"], "dram.bus_bytes"),
    (&["dram.burst=6"], "dram.burst"),
    (&["dram.burst=32"], "dram.burst"),
    (&["dram.transfers_per_clock=3"], "dram.transfers_per_clock"),
    (&["dram.transfers_per_clock=16"], "dram.transfers_per_clock"),
    (&["dram.banks=12"], "dram.banks"),
    (&["dram.bank_groups=3"], "dram.bank_groups"),
    (&["dram.bank_groups=32"], "dram.bank_groups"),
    (&["dram.row_bytes=3000"], "dram.row_bytes"),
    (&["dram.row_bytes=64"], "dram.row_bytes"),
    (&["dram.ccd=1"], "dram.ccd"),
    (&["dram.ccdl=1"], "dram.ccdl"),
    (&["dram.ras=11"], "dram.ras"),
    (&["dram.rc=39"], "dram.rc"),
    (&["dram.cl=100000"], "dram.cl"),
    (&["energy.fetch_pj=-1.0"], "energy.fetch_pj"),
    (&["energy.pipeline_pj=nan"], "energy.pipeline_pj"),
    (&["energy.dram_read_pj=inf"], "energy.dram_read_pj"),
    (&["energy.leakage_sm_w=1e12"], "energy.leakage_sm_w"),
    (&["hang.suspect_cycles=4999"], "hang.suspect_cycles"),
];

#[test]
fn impossible_values_are_refused_by_name() {
    for &(assignments, key) in IMPOSSIBLE {
        let error = load("gtx480", assignments).expect_err(&format!("{assignments:?} was taken")).to_string();
        assert!(error.starts_with(&format!("chip `gtx480`: `{key}` is ")), "{assignments:?}: {error}");
    }
}

#[test]
fn impossible_values_of_an_apu_are_refused_by_name() {
    for key in ["yield.restart_records", "fetch.shared.sms", "fetch.shared.fetches_per_cycle"] {
        let error = load("apu", &[&format!("{key}=0")]).expect_err(key).to_string();
        assert!(error.starts_with(&format!("chip `apu`: `{key}` is ")), "{error}");
    }
}

/// Keys that may be zero. Every other number is a size, a count or a time that the machine needs.
const MAY_BE_ZERO: &[&str] = &[
    "dram.cdlr",
    "dram.cl",
    "dram.rcd",
    "dram.rp",
    "dram.rrd",
    "dram.rtpl",
    "dram.wl",
    "dram.wr",
    "hang.suspect_cycles",
    "fetch.prefetch_lines",
    "interconnect.allocation_cycles",
    "interconnect.atomic_window",
    "interconnect.span_cycles",
    "interconnect.far_span_cycles",
    "units.barrier_interval_cycles",
    "atomic.silent_cycles",
    "atomic.silent_queue",
    "units.cta_fence_cycles",
    "units.fence_after_access_cycles",
    "units.fence_cycles",
    "l2.far_cycles",
    "l2.read_after_write_cycles",
    "interconnect.header_bytes",
    "issue.bows.limit_cycles",
    "issue.bows.min_limit_cycles",
    "lock_queue.sets",
    "lock_queue.ways",
    "issue.gto.rotation_cycles",
    "launch.max_param_bytes",
    "launch.max_shared_bytes_per_cta",
    "launch.cta_cycles",
    "launch.overhead_ns",
    "lock.bits",
    "lock_queue.sets",
    "lock_queue.ways",
    "memory.constant_bytes",
    "memory.local_bytes_per_thread",
    "shared.atomic_cycles",
    "shared.cas_cycles",
    "texture.filter_cycles",
    "units.yield_cycles",
    "sm.registers",
    "units.dp",
];

/// Full names of the keys with integer values.
fn numbers(prefix: &str, table: &toml::Table, found: &mut Vec<String>) {
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => numbers(&format!("{prefix}{key}."), inner, found),
            toml::Value::Integer(_) => found.push(format!("{prefix}{key}")),
            _ => {}
        }
    }
}

#[test]
fn zeros_are_refused_where_the_machine_cannot_have_them() {
    let mut keys = Vec::new();
    numbers("", &toml::from_str(gtx480_text()).unwrap(), &mut keys);
    assert!(keys.len() > 90);
    // Scheduling policies check their own parameters.
    for key in keys.iter().filter(|key| !key.starts_with("issue.cawa.") && !key.starts_with("issue.gto.")) {
        match load("gtx480", &[&format!("{key}=0")]) {
            Ok(_) => assert!(MAY_BE_ZERO.contains(&key.as_str()), "{key} can be 0"),
            Err(error) => {
                assert!(error.to_string().contains(key), "{key}: {error}");
                assert!(!MAY_BE_ZERO.contains(&key.as_str()), "{error}");
            }
        }
    }
}

#[test]
fn huge_values_do_not_overflow_the_checks() {
    let mut keys = Vec::new();
    numbers("", &toml::from_str(gtx480_text()).unwrap(), &mut keys);
    for key in keys {
        let _ = load("gtx480", &[&format!("{key}={}", u32::MAX)]);
    }
}

#[test]
fn every_chip_has_every_energy() {
    for name in names() {
        for (key, value) in load(name, &[]).unwrap().energy.named() {
            assert!(value > 0.0, "{name}: {key} is {value}");
            let error = load(name, &[&format!("{key}=-0.5")]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("chip `{name}`: `{key}` is -0.5, but ")), "{error}");
        }
    }
}

#[test]
fn an_unknown_policy_is_answered_with_the_known_ones() {
    let error = load("gtx480", &["issue.policy=oldest"]).unwrap_err().to_string();
    let known = crate::chip::timing::POLICY_NAMES.join(", ");
    let wanted =
        format!("chip `gtx480`: `issue.policy` is `oldest`, but there is no such policy; there are {known}");
    assert_eq!(error, wanted);
}

#[test]
fn unknown_keys_are_refused() {
    let text = gtx480_text().replace("[hang]", "[hang]\npatience_cycles = 3");
    let error = Chip::parse("mine", &text, &[]).unwrap_err().to_string();
    assert!(
        error.starts_with("chip `mine`: ") && error.contains("unknown field `patience_cycles`"),
        "{error}"
    );
    let text = format!("{}\n[tessellation]\nunits = 4\n", gtx480_text());
    let error = Chip::parse("mine", &text, &[]).unwrap_err().to_string();
    assert!(error.contains("unknown field `tessellation`"), "{error}");
}

#[test]
fn a_lock_queue_of_no_known_mode_is_refused() {
    let error = Chip::load("gtx480", &["lock_queue.mode=best".to_string()]).unwrap_err().to_string();
    assert!(error.starts_with("--set lock_queue.mode=best: unknown variant `best`"), "{error}");
    let without = gtx480_text().lines().filter(|line| !line.starts_with("[lock_queue]")).collect::<Vec<_>>();
    let keys = ["mode = ", "sets = 0 ", "ways = 0 "];
    let without = without.into_iter().filter(|line| !keys.iter().any(|key| line.starts_with(key)));
    let chip = Chip::parse("mine", &without.collect::<Vec<_>>().join("\n"), &[]).unwrap();
    assert_eq!(chip.lock_queue, spinning::LockQueueSpec::default());
}

#[test]
fn a_lock_queue_beside_coherent_caches_is_refused() {
    let error = Chip::load("apu", &["lock_queue.mode=ideal".to_string()]).unwrap_err().to_string();
    let rule =
        "`lock_queue.mode` is ideal, but queues are at the slices of the L2, and atomics happen in the L1s";
    assert!(error.contains(rule), "{error}");
}

#[test]
fn missing_keys_are_named() {
    for key in [
        "overhead_ns",
        "core_mhz",
        "schedulers",
        "rotation_cycles",
        "flit_bytes",
        "rtpl",
        "flit_pj",
        "idle_sm_w",
        "watch_cycles",
    ] {
        let line = gtx480_text().lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
        let error = Chip::parse("mine", &gtx480_text().replace(line, ""), &[]).unwrap_err().to_string();
        assert!(error.contains(&format!("missing field `{key}`")), "{error}");
    }
}

#[test]
fn overrides_reach_nested_keys() {
    let chip = load(
        "gtx480",
        &[
            "issue.gto.rotation_cycles=50000",
            "units.int.add=[6, 2]",
            "issue.policy=lrr",
            "l1.global=bypass",
            "l2.fetch_on_write=false",
            // The file does not name it.
            "units.yield_cycles=40",
        ],
    )
    .unwrap();
    assert_eq!(chip.units.yield_cycles, 40);
    assert_eq!(chip.issue.gto.rotation_cycles, 50_000);
    assert_eq!(chip.units.int.add, [6, 2]);
    assert_eq!(chip.issue.policy, "lrr");
    assert_eq!(chip.l1.global, L1Policy::Bypass);
    assert!(!chip.l2.fetch_on_write);
}

#[test]
fn bad_overrides_are_blamed_on_themselves() {
    for (assignment, message) in [
        ("issue.gto.rotation=1", "the chip has no key `rotation` there; it has rotation_cycles"),
        ("issue.lrr.turn=1", "the chip has no section `lrr`"),
        ("units.int.add=4", "invalid type: integer `4`, expected an array of length 2"),
        ("units.int.add=[4, 1, 1]", "invalid length 3"),
        ("dram.banks=-16", "invalid value: integer `-16`, expected a number from 0 to 4294967295"),
        ("l1.global=write-back", "unknown variant `write-back`, expected `write-evict` or `bypass`"),
        ("energy.flits_pj=1", "the chip has no key `flits_pj` there; it has "),
        ("energy.flit_pj=much", "invalid type: string \"much\", expected f64"),
        ("dram.banks", "write it as path.to.key=value"),
    ] {
        let error = load("gtx480", &[assignment]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("--set {assignment}: {message}")), "{error}");
    }
}

#[test]
fn a_chip_may_have_a_base() {
    let text = "base = \"gtx480\"\nname = \"mine\"\n[sm]\ncount = 3\n[l1.cache]\nsets = 64";
    let chip = Chip::parse("mine", text, &["l2.mshrs=8".to_string()]).unwrap();
    let base = Chip::load("gtx480", &[]).unwrap();
    assert_eq!((chip.name.as_str(), chip.sm.count, chip.l1.cache.sets, chip.l2.mshrs), ("mine", 3, 64, 8));
    assert_eq!((chip.sm.max_warps, chip.l1.cache.ways), (base.sm.max_warps, base.l1.cache.ways));
}

#[test]
fn a_base_must_be_a_whole_chip() {
    for base in ["\"gtx9000\"", "7", "\"gtx480-hpca18\""] {
        let error = Chip::parse("mine", &format!("base = {base}"), &[]).unwrap_err().to_string();
        let expected = "but it must be one of gtx480, gtx570, gtx1080ti, apu, h200";
        assert!(error.contains(expected), "{error}");
    }
    let error = Chip::parse("mine", "base = \"gtx480\"\n[sm]\nwarps = 3", &[]).unwrap_err().to_string();
    assert!(error.contains("warps"), "{error}");
}
