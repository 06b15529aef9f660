//! Every key of a chip file, with values at the edges: the chip is refused with an error that names the key and what it
//! may be, or a kernel that uses every unit runs on it.

use warploom::{Chip, Device, Error, HangReason, Launch, SimOptions, Timing, args};

/// Global, shared, local and constant memory, atomics, a barrier, a fence, divergence, and every kind of unit.
const KERNEL: &str = r#"
.version 7.0
.target sm_70
.address_size 64
.const .u32 three = 3;
.visible .entry everything(.param .u64 out, .param .u64 count)
{
    .reg .pred %p<3>;
    .reg .b32 %r<16>;
    .reg .f32 %f<4>;
    .reg .f64 %d<4>;
    .reg .b64 %rd<8>;
    .shared .align 4 .b8 tile[256];
    .local .align 4 .b8 frame[8];
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [count];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r9, %ntid.x;
    shl.b32 %r3, %r1, 2;
    mov.u32 %r4, tile;
    add.u32 %r4, %r4, %r3;
    st.shared.u32 [%r4], %r1;
    st.local.u32 [frame], %r1;
    bar.sync 0;
    ld.shared.u32 %r5, [%r4];
    ld.local.u32 %r6, [frame];
    ld.const.u32 %r7, [three];
    cvt.rn.f32.u32 %f1, %r5;
    sqrt.approx.f32 %f2, %f1;
    cvt.f64.f32 %d1, %f2;
    fma.rn.f64 %d2, %d1, %d1, %d1;
    add.u32 %r8, %r9, 5;
    div.u32 %r8, %r8, %r7;
    setp.lt.u32 %p1, %r1, 7;
    @%p1 bra LOW;
    add.u32 %r6, %r6, 100;
LOW:
    atom.global.add.u32 %r10, [%rd2], 1;
    membar.gl;
    mad.lo.u32 %r11, %r2, %r9, %r1;
    mul.wide.u32 %rd3, %r11, 4;
    add.u64 %rd3, %rd1, %rd3;
    ld.global.u32 %r12, [%rd3];
    add.u32 %r12, %r12, %r6;
    st.global.u32 [%rd3], %r12;
    ret;
}
"#;

/// Full names of the keys, with their values.
fn keys(prefix: &str, table: &toml::Table, found: &mut Vec<(String, toml::Value)>) {
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => keys(&format!("{prefix}{key}."), inner, found),
            value => found.push((format!("{prefix}{key}"), value.clone())),
        }
    }
}

/// Zero, one, not a power of two, and what is just inside and outside of one, two and four bytes.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "3",
    "64",
    "100",
    "256",
    "257",
    "65535",
    "65536",
    "65537",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-1",
];

fn values(like: &toml::Value) -> Vec<String> {
    match like {
        toml::Value::Integer(_) => NUMBERS.map(String::from).to_vec(),
        toml::Value::Float(_) => {
            ["0.0", "-1.0", "0.3", "1.0", "1e30", "nan", "inf"].map(String::from).to_vec()
        }
        toml::Value::Boolean(_) => ["true", "false"].map(String::from).to_vec(),
        toml::Value::String(_) => vec!["nothing-like-it".to_string()],
        toml::Value::Array(elements) => {
            let all = |number: &str| format!("[{}]", vec![number; elements.len()].join(", "));
            NUMBERS.iter().map(|number| all(number)).chain(["[]".to_string()]).collect()
        }
        _ => Vec::new(),
    }
}

/// What came of a value.
#[derive(Debug, PartialEq)]
enum Outcome {
    Refused,
    Ran,
}

fn try_value(chip: &str, key: &str, value: &str) -> Outcome {
    try_values(chip, &[(key, value)], 2_000_000)
}

fn try_values(chip: &str, set: &[(&str, &str)], max_cycles: u64) -> Outcome {
    let shown = set.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
    let overrides: Vec<String> = std::iter::once("sm.count=2".to_string()).chain(shown.clone()).collect();
    let shown = shown.join(" ");
    let chip = match Chip::load(chip, &overrides) {
        Ok(chip) => chip,
        Err(error) => {
            let error = error.to_string();
            let names = set.iter().any(|(key, _)| error.contains(key)) || error.contains("MiB");
            assert!(names, "{shown} is refused without its name: {error}");
            return Outcome::Refused;
        }
    };
    let timing = Timing { threads: 1, ..Timing::default() };
    let mut gpu = Device::sim_with(chip, SimOptions { timing, ..SimOptions::default() });
    let launched = (|| {
        let module = gpu.load_ptx_named("everything.ptx", KERNEL)?;
        let out = gpu.zeros_named::<u32>("out", 80)?;
        let count = gpu.zeros_named::<u32>("count", 1)?;
        let launch = Launch { max_cycles: Some(max_cycles), ..Launch::grid(2).block(40) };
        gpu.launch(&module.kernel("everything")?, launch, args![&out, &count])?;
        assert_eq!(count.read(&gpu)?, [80], "{shown}");
        let expected = |thread: u32| thread % 40 + if thread % 40 < 7 { 0 } else { 100 };
        assert_eq!(out.read(&gpu)?, (0..80).map(expected).collect::<Vec<_>>(), "{shown}");
        Ok::<_, Error>(())
    })();
    match launched {
        Ok(()) => Outcome::Ran,
        // Too small for the kernel.
        Err(Error::Unlaunchable { .. } | Error::OutOfMemory(_) | Error::Link(_)) => Outcome::Refused,
        // So slow that the limit ends it.
        Err(Error::Hang { hang: Some(hang), .. }) if matches!(hang.reason, HangReason::CycleLimit(_)) => {
            Outcome::Refused
        }
        Err(error) => panic!("{shown} breaks a good kernel: {error}"),
    }
}

/// The keys of a chip that may be anything else.
fn all_keys(chip: &str) -> Vec<(String, toml::Value)> {
    let text = warploom_chips::CHIPS.iter().find(|(name, _)| *name == chip).unwrap().1;
    let mut all = Vec::new();
    keys("", &toml::from_str(text).unwrap(), &mut all);
    all.retain(|(key, _)| !["name", "description", "base"].contains(&key.as_str()));
    all
}

/// Tries every value of every key of a chip. Returns how many ran, and what went wrong with the others.
fn try_all(chip: &str) -> (usize, Vec<String>) {
    let all = all_keys(chip);
    let (mut ran, mut wrong) = (0, Vec::new());
    for (key, value) in
        all.iter().flat_map(|(key, like)| values(like).into_iter().map(move |value| (key, value)))
    {
        // A panic anywhere in the machine is one more that is wrong.
        match std::panic::catch_unwind(|| try_value(chip, key, &value)) {
            Ok(outcome) => ran += usize::from(outcome == Outcome::Ran),
            Err(panic) => {
                let text = panic.downcast::<String>().map_or("a panic".to_string(), |text| *text);
                wrong.push(format!("{key}={value} on {chip}: {text}"));
            }
        }
    }
    (ran, wrong)
}

#[test]
fn values_at_the_edges_are_refused_by_name_or_work() {
    for chip in ["gtx480", "apu"] {
        let (ran, wrong) = try_all(chip);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(ran > 300, "{chip}: only {ran} values ran");
    }
}

/// Numbers that repeat with their seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }

    /// A value like another one: at an edge, or close to it.
    fn value(&mut self, like: &toml::Value) -> String {
        let toml::Value::Integer(number) = like else {
            let values = values(like);
            return values.get(self.below(values.len().max(1))).cloned().unwrap_or_default();
        };
        let near = [number - 1, number + 1, number / 2, number * 2, number * 3, number + 7, number * 16];
        match self.below(NUMBERS.len() + near.len()) {
            at if at < NUMBERS.len() => NUMBERS[at].to_string(),
            at => near[at - NUMBERS.len()].to_string(),
        }
    }
}

/// Chips with other values for one to six of their keys, drawn at random.
fn try_random(cases: u32, seed: u64) {
    let chips: Vec<_> = warploom_chips::CHIPS.iter().map(|(name, _)| (*name, all_keys(name))).collect();
    let mut numbers = Numbers(seed);
    let (mut ran, mut wrong) = (0, Vec::new());
    for _ in 0..cases {
        let (chip, keys) = &chips[numbers.below(chips.len())];
        let count = [1, 2, 2, 3, 4, 6][numbers.below(6)];
        let mut draw = |_| {
            let (key, like) = &keys[numbers.below(keys.len())];
            (&key[..], numbers.value(like))
        };
        let set: Vec<(&str, String)> = (0..count).map(&mut draw).collect();
        let set: Vec<(&str, &str)> = set.iter().map(|(key, value)| (*key, &value[..])).collect();
        match std::panic::catch_unwind(|| try_values(chip, &set, 200_000)) {
            Ok(outcome) => ran += u32::from(outcome == Outcome::Ran),
            Err(panic) => {
                let text = panic.downcast::<String>().map_or("a panic".to_string(), |text| *text);
                wrong.push(format!("{set:?} on {chip}: {text}"));
            }
        }
    }
    println!("{ran} of {cases} chips ran, {} went wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran > cases / 10, "only {ran} of {cases} chips ran");
}

#[test]
fn several_keys_at_once() {
    try_random(300, 1);
}

/// `CASES=20000 SEED=7 cargo test --release -p warploom --test chip_keys -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes"]
fn very_many_chips() {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(or);
    try_random(number("CASES", 5_000) as u32, number("SEED", 1));
}

/// Values that were panics once.
#[test]
fn sizes_of_real_chips_work_and_larger_ones_are_refused() {
    for (key, value, outcome) in [
        ("dram.banks", "64", Outcome::Ran),
        ("dram.queue_requests", "256", Outcome::Ran),
        ("dram.queue_requests", "257", Outcome::Refused),
        ("l2.mshrs", "65535", Outcome::Ran),
        ("l2.mshrs", "65536", Outcome::Refused),
        ("dram.latency_cycles", "4294967295", Outcome::Refused),
        ("l1.cache.ways", "65536", Outcome::Refused),
    ] {
        assert_eq!(try_value("gtx480", key, value), outcome, "{key}={value}");
    }
    let error = Chip::load("gtx480", &["dram.queue_requests=257".to_string()]).unwrap_err().to_string();
    assert!(error.contains("`dram.queue_requests` is 257, but it must be from 1 to 256"), "{error}");
    let error = Chip::load("gtx480", &["l2.mshrs=-1".to_string()]).unwrap_err().to_string();
    assert!(error.contains("l2.mshrs=-1") && error.contains("from 0 to 4294967295"), "{error}");
    let error = Chip::load("h200", &["sm.count=65535".to_string()]).unwrap_err().to_string();
    assert!(error.contains("MiB of this computer's memory"), "{error}");
}
