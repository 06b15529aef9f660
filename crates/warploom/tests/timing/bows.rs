//! BOWS in the whole machine: spinning warps back off.

use warploom::{Bows, DelayLimit, Report, SibSource, Timing};

use crate::accounting::launch;
use crate::bench::Bench;

/// The hash table under contention, on two SMs.
fn hashtable(policy: &str, bows: Bows, set: &[&str]) -> Report {
    run("hashtable", policy, bows, set)
}

fn run(name: &str, policy: &str, bows: Bows, set: &[&str]) -> Report {
    let timing = Timing { policy: Some(policy.to_string()), bows, threads: 1, ..Timing::default() };
    let mut bench = Bench::timed("gtx480", &[&["sm.count=2"], set].concat(), timing);
    launch(&mut bench, name).0
}

fn fixed(cycles: u64) -> Bows {
    Bows { limit: Some(DelayLimit::Fixed(cycles)), ..Bows::on() }
}

fn failures(report: &Report) -> u64 {
    let locks = report.locks.as_ref().unwrap();
    locks.failed_intra + locks.failed_inter
}

#[test]
fn spinning_warps_back_off_and_fail_less_under_any_policy() {
    for policy in ["lrr", "gto", "cawa"] {
        let (without, with) = (hashtable(policy, Bows::default(), &[]), hashtable(policy, Bows::on(), &[]));
        assert_eq!((without.bows, with.bows), (Some(false), Some(true)));
        assert_eq!((without.back_off, without.ddos), (None, None));
        assert!(failures(&with) < failures(&without), "{policy}");
        assert!(with.warp_insts < without.warp_insts, "{policy}");
        let back_off = with.back_off.unwrap();
        let waited = with.stalls.as_ref().unwrap()["backed_off"];
        assert!(waited > 0 && waited <= back_off.warp_cycles, "{policy}: {waited} of {back_off:?}");
        assert!((1000..=10_000).contains(&back_off.longest_limit_cycles), "{policy}");
    }
}

#[test]
fn the_one_loop_that_waits_is_found_and_no_other() {
    let report = hashtable("gto", Bows::on(), &[]);
    let ddos = report.ddos.unwrap();
    assert_eq!((ddos.tsdr, ddos.fsdr), (Some(1.0), Some(0.0)));
    // Only threads of the first CTA, on SM 0, have a second key.
    assert_eq!((ddos.true_met, ddos.true_confirmed, ddos.false_met, ddos.false_confirmed), (2, 2, 1, 0));
    assert!(ddos.dpr_true.is_some_and(|ratio| ratio > 0.0 && ratio < 1.0) && ddos.dpr_false.is_none());
    assert_eq!(report.sib.unwrap().confirmed, 1);
}

#[test]
fn a_kernel_that_does_not_wait_runs_as_without() {
    for name in ["vecadd", "reduce"] {
        let timeless = |bows| {
            let report = run(name, "gto", bows, &[]);
            (report.cycles, report.warp_insts, report.stalls, report.sib)
        };
        assert_eq!(timeless(Bows::default()), timeless(Bows::on()), "{name}");
    }
}

#[test]
fn annotations_and_analysis_name_the_branch_from_the_start() {
    let by = |sib| hashtable("gto", Bows { sib: Some(sib), ..fixed(1000) }, &[]);
    let (annotated, analysed, found) = (by(SibSource::Annotated), by(SibSource::Static), by(SibSource::Ddos));
    assert_eq!((annotated.cycles, annotated.warp_insts), (analysed.cycles, analysed.warp_insts));
    assert_eq!((&annotated.sib, &annotated.ddos), (&analysed.sib, &None));
    assert_eq!(annotated.sib.as_ref().unwrap().confirmed, 1);
    // The hardware has to detect the branch first.
    assert!(annotated.back_off.unwrap().count > 0 && found.back_off.unwrap().count > 0);
}

#[test]
fn a_longer_limit_means_fewer_turns_until_it_is_longer_than_a_turn() {
    let run = |cycles| {
        let report = hashtable("gto", fixed(cycles), &[]);
        assert_eq!(report.back_off.unwrap().longest_limit_cycles, cycles);
        (failures(&report), report.cycles)
    };
    let (none, some) = (run(0), run(1000));
    assert!(none.0 > some.0, "{none:?}, {some:?}");
    // From then on the order of warps is fixed and only the waits grow: by the same amount for each iteration
    // of the last warp.
    let [long, longer, longest] = [4000, 5000, 6000].map(run);
    assert!(long.0 == longer.0 && longer.0 == longest.0, "{long:?}, {longer:?}, {longest:?}");
    assert!(longer.1 - long.1 == longest.1 - longer.1 && (longer.1 - long.1).is_multiple_of(1000));
}

#[test]
fn a_history_that_is_too_short_finds_nothing() {
    let report = hashtable("gto", Bows::on(), &["issue.ddos.history=2"]);
    assert_eq!((report.ddos.unwrap().tsdr, report.back_off.unwrap().count), (Some(0.0), 0));
    let without = hashtable("gto", Bows::default(), &[]);
    assert_eq!((report.cycles, report.stalls), (without.cycles, without.stalls));
}

#[test]
fn the_chip_can_have_it_on() {
    let report = hashtable("lrr", Bows::default(), &["issue.bows.enabled=true"]);
    assert_eq!(report.bows, Some(true));
    let off = Bows { enabled: Some(false), ..Bows::default() };
    assert_eq!(hashtable("lrr", off, &["issue.bows.enabled=true"]).bows, Some(false));
}

fn lines(body: &str) -> String {
    format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() {{\n.reg .pred %p<2>;\n\
         .reg .b32 %r<4>;\n{body}\nret;\n}}"
    )
}

#[test]
fn annotations_that_name_no_backward_branch_are_refused() {
    let mut gpu = Bench::new("gtx480", &[]).gpu;
    for (body, message) in [
        (".pragma \"warploom.sib\";\n@%p1 bra END;\nEND:", "the branch after this does not go back"),
        ("LOOP:\n@%p1 bra LOOP;\n.pragma \"warploom.sib\";", "no branch follows this"),
        (".pragma \"warploom.spin\";", "there is no such annotation"),
    ] {
        let error = gpu.load_ptx_named("k.ptx", lines(body)).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let listing = |code: &str| format!(".kernel k\n{code}\n    EXIT;\n");
    let error = gpu.load_sass(&listing("    .sib\n    BRA END;\nEND:")).unwrap_err().to_string();
    assert!(error.contains("`.sib` stands in front of a branch that goes back"), "{error}");
    gpu.load_sass(&listing("LOOP:\n    .sib\n    @P0 BRA LOOP;")).unwrap();
}

#[test]
fn a_printed_listing_keeps_the_annotation() {
    let text = lines(
        "LOOP:\nadd.u32 %r1, %r1, 1;\n.pragma \"warploom.sib\";\nsetp.ne.u32 %p1, %r1, 9;\n@%p1 bra LOOP;",
    );
    let module = warploom::ptx::load_bytes("k.ptx", text.as_bytes()).unwrap();
    let branch = |module: &warploom::isa::Module| module.functions[0].body.as_ref().unwrap().sibs.clone();
    let printed = warploom::isa::print::module(&module, None);
    let again = warploom::sass::load_bytes("k.sass", printed.as_bytes()).unwrap();
    assert_eq!(branch(&again).len(), 1, "{printed}");
    assert_eq!(branch(&again).len(), branch(&module).len());
}
