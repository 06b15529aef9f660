//! Incoherent L1s: what a load finds depends on which cache it reads.

use warploom::{Launch, args};

use crate::bench::Bench;

/// CTA 0 reads a word, so its L1 has the line. CTA 1, on another SM, then writes 42 there and sets a flag. CTA
/// 0 waits for the flag and reads the word again: `again` loads it into `%r5`.
fn handover(wait: &str, again: &str) -> String {
    format!(
        "
.version 7.0
.target sm_70
.address_size 64
.visible .entry handover(.param .u64 data, .param .u64 out)
{{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd0, [data];
    ld.param.u64 %rd1, [out];
    mov.u32 %r0, %ctaid.x;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra WRITER;
    ld.global.u32 %r1, [%rd0];
    st.global.u32 [%rd1], %r1;
    membar.gl;
    ld.global.u32 %r1, [%rd0];
    add.u32 %r1, %r1, 1;
    st.volatile.global.u32 [%rd0+256], %r1;
READER:
    {wait} %r2, [%rd0+512];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra READER;
    {again}
    st.global.u32 [%rd1+4], %r5;
    ret;
WRITER:
    ld.volatile.global.u32 %r3, [%rd0+256];
    setp.eq.u32 %p2, %r3, 0;
    @%p2 bra WRITER;
    mov.u32 %r4, 42;
    st.global.u32 [%rd0], %r4;
    membar.gl;
    st.volatile.global.u32 [%rd0+512], %r4;
    ret;
}}"
    )
}

/// What CTA 0 reads before and after.
fn finds(chip: &str, wait: &str, again: &str) -> [u32; 2] {
    // The accesses in the order of the PTX.
    let as_written =
        if chip == "h200" { &["sm.count=2", "compiler.optimise=false"][..] } else { &["sm.count=2"] };
    let mut bench = Bench::new(chip, as_written);
    let kernel = bench.gpu.load_ptx(&handover(wait, again)).unwrap().kernel("handover").unwrap();
    let (data, out) = (bench.gpu.zeros::<u32>(160).unwrap(), bench.gpu.zeros::<u32>(2).unwrap());
    bench.gpu.launch(&kernel, Launch::grid(2), args![&data, &out]).unwrap();
    out.read(&bench.gpu).unwrap().try_into().unwrap()
}

const POLL: &str = "ld.volatile.global.u32";
const PLAIN: &str = "ld.global.u32 %r5, [%rd0];";

#[test]
fn a_line_in_the_l1_grows_old() {
    for chip in ["gtx480", "gtx570", "h200"] {
        assert_eq!(finds(chip, POLL, PLAIN), [0, 0], "{chip}");
        for order in ["membar.cta;", "fence.acq_rel.cta;"] {
            assert_eq!(
                finds(chip, POLL, &format!("{order}\n{PLAIN}")),
                [0, 0],
                "{chip}: {order} does nothing to it"
            );
        }
    }
}

#[test]
fn without_an_l1_nothing_grows_old() {
    assert_eq!(finds("gtx1080ti", POLL, PLAIN), [0, 42]);
}

#[test]
fn loads_past_the_l1_see_what_was_written() {
    for chip in ["gtx480", "h200"] {
        for load in [
            "volatile.global",
            "global.cg",
            "global.cv",
            "relaxed.gpu.global",
            "relaxed.sys.global",
            "acquire.gpu.global",
        ] {
            assert_eq!(
                finds(chip, POLL, &format!("ld.{load}.u32 %r5, [%rd0];")),
                [0, 42],
                "{chip}: ld.{load}"
            );
        }
        let atomic = "atom.global.or.b32 %r5, [%rd0], 0;";
        assert_eq!(finds(chip, POLL, atomic), [0, 42], "{chip}: {atomic}");
    }
}

#[test]
fn fences_and_acquires_empty_the_l1() {
    for chip in ["gtx480", "h200"] {
        for fence in ["membar.gl;", "membar.sys;", "fence.acq_rel.gpu;", "fence.sc.gpu;"] {
            assert_eq!(finds(chip, POLL, &format!("{fence}\n{PLAIN}")), [0, 42], "{chip}: {fence}");
        }
        assert_eq!(finds(chip, "ld.acquire.gpu.global.u32", PLAIN), [0, 42], "{chip}: the flag is acquired");
        assert_eq!(finds(chip, "ld.relaxed.gpu.global.u32", PLAIN), [0, 0], "{chip}: it is only read");
    }
}

#[test]
fn what_skips_the_l1_leaves_no_old_copy_in_it() {
    for chip in ["gtx480", "h200"] {
        for other in [
            "st.global.u32 [%rd0+4], %r2;",
            "ld.volatile.global.u32 %r6, [%rd0+4];\nst.global.u32 [%rd1], %r6;",
            "red.global.add.u32 [%rd0+4], 1;",
        ] {
            assert_eq!(finds(chip, POLL, &format!("{other}\n{PLAIN}")), [0, 42], "{chip}: {other}");
        }
    }
}
