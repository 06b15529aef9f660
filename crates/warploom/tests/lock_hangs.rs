//! Hangs and races on lock bits: the kernels of `kernels/hangs/lock_bits.cu`, the messages about them, and
//! repaired versions.

use warploom::{
    Arg, Buffer, Chip, Device, Error, Hang, HangKind, HangReason, Launch, Report, SimOptions, args,
};

fn device(changes: &[&str]) -> Device {
    let changes: Vec<String> = changes.iter().map(|c| c.to_string()).collect();
    Device::sim_with(Chip::load("gtx570", &changes).expect("a built-in chip"), SimOptions::default())
}

/// Runs a kernel of `lock_bits.ptx` with one buffer of 64 words.
fn run<'a>(
    gpu: &mut Device,
    entry: &str,
    threads: u32,
    more: &[Arg<'a>],
) -> (Buffer<u32>, Result<Report, Error>) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/hangs");
    let text = std::fs::read_to_string(folder.join("lock_bits.ptx")).expect("the example is there");
    let module = gpu.load_ptx_named("lock_bits.ptx", &text).unwrap_or_else(|e| panic!("{e}"));
    let out = gpu.zeros_named::<u32>("out", 64).unwrap();
    let report = {
        let mut arguments = args![&out].to_vec();
        arguments.extend_from_slice(more);
        gpu.launch(module.kernel(entry).unwrap(), Launch::grid(1).block(threads), arguments)
    };
    (out, report)
}

#[track_caller]
fn hang(result: Result<Report, Error>) -> Hang {
    match result {
        Err(Error::Hang { hang: Some(hang), .. }) => *hang,
        Err(error) => panic!("it does not hang: {error}"),
        Ok(_) => panic!("it ends"),
    }
}

/// Replaces the cycle counts in a message, which change with every latency.
fn timeless(hang: &Hang) -> String {
    let text = hang.to_string();
    let (title, rest) = text.split_once('\n').expect("a message has several lines");
    let title = title.rsplit_once(" after ").map_or(title, |(title, _)| title);
    format!("{title}\n{rest}")
}

/// Compares the message with a snapshot and checks that `docs/hangs.md` shows it.
macro_rules! assert_documented {
    ($message:expr) => {{
        let message = $message;
        insta::assert_snapshot!(message);
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hangs.md");
        let page = std::fs::read_to_string(path).expect("the page is there");
        assert!(
            page.contains(&format!("```text\n{message}\n```")),
            "docs/hangs.md does not show:\n{message}"
        );
    }};
}

#[test]
fn token_in_a_warp() {
    let mut gpu = device(&[]);
    let hang = hang(run(&mut gpu, "token_in_a_warp", 32, &[]).1);
    assert_eq!((hang.kind, &hang.reason), (HangKind::SimdDeadlock, &HangReason::Repeats));
    assert_documented!(timeless(&hang));
    let mut gpu = device(&[]);
    let (out, report) = run(&mut gpu, "token_put_first", 32, &[]);
    assert_eq!((report.unwrap().lock_warnings, out.read(&gpu).unwrap()[0]), (Vec::new(), 7));
    let mut gpu = device(&[]);
    let (out, report) = run(&mut gpu, "section_in_the_loop", 64, &[]);
    let report = report.unwrap();
    assert_eq!(out.read(&gpu).unwrap(), [64; 64]);
    let locks = report.locks.unwrap();
    assert_eq!(locks.acquired, 64);
    assert!(locks.failed_intra > 0 && locks.failed_inter > 0, "{locks:?}");
}

#[test]
fn naive_lock_in_shared_memory() {
    let mut gpu = device(&[]);
    let hang = hang(run(&mut gpu, "shared_naive_lock", 32, &[]).1);
    assert_eq!((hang.kind, &hang.reason), (HangKind::SimdDeadlock, &HangReason::Repeats));
    insta::assert_snapshot!(timeless(&hang));
}

#[test]
fn one_thread_two_words_of_one_bit() {
    let mut gpu = device(&[]);
    let hang = hang(run(&mut gpu, "both_words", 32, &[Arg::from(1024u32)]).1);
    assert_eq!((hang.kind, &hang.reason), (HangKind::Alias, &HangReason::Repeats));
    assert_documented!(timeless(&hang));
    for (changes, apart) in [(&[][..], 512u32), (&["lock.bits=4096"][..], 1024)] {
        let mut gpu = device(changes);
        let (out, report) = run(&mut gpu, "both_words", 32, &[Arg::from(apart)]);
        assert_eq!(report.unwrap().lock_warnings, []);
        assert_eq!(out.read(&gpu).unwrap()[..32], [1; 32]);
    }
}

#[test]
fn alias_meets_a_barrier() {
    let mut gpu = device(&[]);
    let hang = hang(run(&mut gpu, "alias_and_barrier", 64, &[Arg::from(1024u32)]).1);
    assert_eq!((hang.kind, &hang.reason), (HangKind::Alias, &HangReason::Repeats));
    assert_documented!(timeless(&hang));
    let mut gpu = device(&[]);
    let (out, report) = run(&mut gpu, "alias_and_barrier", 64, &[Arg::from(32u32)]);
    assert_eq!(report.unwrap().lock_warnings, []);
    assert_eq!(out.read(&gpu).unwrap(), (0..64).collect::<Vec<u32>>());
}

#[test]
fn taken_too_late() {
    let mut gpu = device(&[]);
    let (out, report) = run(&mut gpu, "taken_too_late", 64, &[Arg::from(0u8)]);
    let warnings = report.unwrap().lock_warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0].count, 32);
    assert_documented!(&warnings[0].message);
    assert_eq!(out.read(&gpu).unwrap()[..32], [0; 32]);
    let mut gpu = device(&[]);
    let (out, report) = run(&mut gpu, "taken_too_late", 64, &[Arg::from(1u8)]);
    assert_eq!(report.unwrap().lock_warnings, []);
    assert_eq!(out.read(&gpu).unwrap()[..32], (1..=32).collect::<Vec<u32>>());
}

#[test]
fn never_freed() {
    let mut gpu = device(&[]);
    let hang = hang(run(&mut gpu, "never_freed", 64, &[Arg::from(0u32)]).1);
    assert_eq!((hang.kind, &hang.reason), (HangKind::LostToken, &HangReason::Repeats));
    assert_documented!(timeless(&hang));
    let mut gpu = device(&[]);
    let (out, report) = run(&mut gpu, "never_freed", 64, &[Arg::from(9u32)]);
    assert_eq!(report.unwrap().lock_warnings, []);
    assert_eq!(out.read(&gpu).unwrap()[0], 2);
}
