//! The anchors' kernels, each generated from a step that the measured loop repeats.

use std::fmt::Write;

/// A micro-benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    /// Unit and operation, such as `shared/load`.
    pub name: &'static str,
    pub what: &'static str,
    pub ctas: Ctas,
    /// Warps in a CTA.
    pub warps: u32,
    /// Iterations of the measured loop.
    pub rounds: u32,
    /// Operations per iteration.
    pub unrolled: u32,
    pub data: Data,
    pub place: Place,
    /// The instructions of one step. An iteration has `unrolled / operations` steps.
    step: &'static str,
    /// Operations per step.
    operations: u32,
    /// Instructions before the clock is first read.
    setup: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ctas {
    One,
    /// One each on so many SMs. They begin together, and the warp that takes longest counts.
    Some(u32),
    /// The same on all.
    PerSm,
}

/// Which part of the memory the kernel gets. Where the L2 has two halves, a page is near an SM or far from it, and how
/// evenly lines spread over slices varies from place to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    First,
    /// The middle one of the faster half of 16 pages.
    Near,
    /// That of the slower half.
    Far,
    /// The middle one of some places.
    Middle,
}

impl Place {
    pub(super) const PAGES: usize = 16;
    const PAGE_BYTES: usize = 4096;
    /// Room for a kernel that uses 1024 lines.
    const MIDDLE_BYTES: usize = 1 << 17;
    const MIDDLE_COUNT: usize = 7;

    /// Where the places begin that are tried, and which counts, from the fastest on.
    pub(super) fn tried(self) -> (impl Iterator<Item = usize>, usize) {
        let (count, bytes, which) = match self {
            Place::First => (1, 0, 0),
            Place::Near => (Place::PAGES, Place::PAGE_BYTES, Place::PAGES / 4),
            Place::Far => (Place::PAGES, Place::PAGE_BYTES, Place::PAGES * 3 / 4),
            Place::Middle => (Place::MIDDLE_COUNT, Place::MIDDLE_BYTES, Place::MIDDLE_COUNT / 2),
        };
        ((0..count).map(move |place| place * bytes), which)
    }
}

/// Initial contents of the kernel's global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    Zeros {
        words: usize,
    },
    /// A cycle of pointers through the whole memory.
    Chain {
        links: usize,
        /// Distance between links in 64-bit words.
        stride_words: usize,
    },
}

impl Anchor {
    /// The PTX. A step can use these registers: `%a %b %c` are integers and hold 1, as do the floats `%f %g %h`, the
    /// doubles `%d %e %k` and the 64-bit words `%x %y`. `%p` is a predicate. `%base` is the address of the memory,
    /// `%mine` an address in it per thread, `%s` a shared-memory address per thread. `%cta`, `%ctas`, `%t` and `%all`
    /// are the CTA, how many there are, the thread in its CTA and in the grid.
    pub(super) fn ptx(&self) -> String {
        let mut text = String::from(HEAD);
        for line in self.setup.lines() {
            let _ = writeln!(text, "\t{}", line.trim());
        }
        if self.ctas != Ctas::One {
            text.push_str(TOGETHER);
        }
        text.push_str(BEGIN);
        for _ in 0..self.unrolled / self.operations {
            for line in self.step.lines().filter(|l| !l.trim().is_empty()) {
                let _ = writeln!(text, "\t{}", line.trim());
            }
        }
        text.push_str(END);
        text
    }
}

const HEAD: &str = "\
.version 7.8
.target sm_80
.address_size 64
.shared .align 16 .b8 scratch[8192];
.shared .align 8 .b64 phase;
.shared .b32 begun;
.visible .entry anchor(.param .u64 out, .param .u64 data, .param .u32 rounds, .param .u32 one) {
\t.reg .b32 %a, %b, %c, %i, %n, %s, %t, %v, %zero, %cta, %ctas, %all;
\t.reg .f32 %f, %g, %h;
\t.reg .f64 %d, %e, %k;
\t.reg .b64 %x, %y, %base, %mine, %out, %start, %end, %w;
\t.reg .pred %p, %q, %first, %lead;
\tld.param.u64 %out, [out];
\tld.param.u64 %base, [data];
\tld.param.u32 %n, [rounds];
\tld.param.u32 %a, [one];
\tcvta.to.global.u64 %out, %out;
\tcvta.to.global.u64 %base, %base;
\tmov.u32 %t, %tid.x;
\tmov.u32 %cta, %ctaid.x;
\tmov.u32 %ctas, %nctaid.x;
\tmov.u32 %all, %ntid.x;
\tmad.lo.u32 %all, %all, %cta, %t;
\tsub.u32 %zero, %a, 1;
\tmov.b32 %b, %a;
\tmov.b32 %c, %a;
\tcvt.rn.f32.u32 %f, %a;
\tmov.f32 %g, %f;
\tmov.f32 %h, %f;
\tcvt.f64.f32 %d, %f;
\tmov.f64 %e, %d;
\tmov.f64 %k, %d;
\tmul.wide.u32 %mine, %t, 8;
\tadd.u64 %mine, %mine, %base;
\tmov.u32 %s, scratch;
\tmad.lo.u32 %s, %t, 8, %s;
\tcvt.u64.u32 %x, %a;
\tmov.b64 %y, %x;
\tsetp.eq.u32 %p, %a, 1;
\tsetp.eq.u32 %first, %t, 0;
\tand.b32 %i, %t, 31;
\tsetp.eq.u32 %lead, %i, 0;
\tmov.u32 %i, 0;
";

/// A barrier of the grid, at the fourth word of the results. The fifth is zero, which no compiler knows: it cannot
/// compute the address of the memory anew for each access.
const TOGETHER: &str = "\
\tbar.sync 0;
\t@!%first bra together;
\tred.global.add.u32 [%out+24], 1;
await:
\tld.volatile.global.u32 %s, [%out+24];
\tsetp.lt.u32 %q, %s, %ctas;
\t@%q bra await;
together:
\tbar.warp.sync -1;
\tld.global.u64 %w, [%out+32];
\tadd.u64 %base, %base, %w;
";

/// On the chip, instructions that follow `bar.sync` and do not access memory may issue before the warp waits. The clock
/// is read after one that cannot: it needs what it loads from shared memory.
const BEGIN: &str = "\
\tst.shared.u32 [begun], 1;
\tbar.sync 0;
\tld.volatile.shared.u32 %v, [begun];
\tsetp.eq.u32 %q, %v, 0;
\t@%q st.shared.u32 [begun], 2;
\tmov.u64 %start, %clock64;
round:
";

const END: &str = "\
\tadd.u32 %i, %i, 1;
\tsetp.lt.u32 %q, %i, %n;
\t@%q bra round;
\tmov.u64 %end, %clock64;
\tsub.u64 %end, %end, %start;
\t@%lead red.global.max.u64 [%out], %end;
\tadd.u32 %a, %a, %b;
\tadd.u32 %a, %a, %c;
\tcvt.rzi.u32.f32 %c, %f;
\tadd.u32 %a, %a, %c;
\tcvt.rzi.u32.f32 %c, %g;
\tadd.u32 %a, %a, %c;
\tcvt.rzi.u32.f64 %c, %d;
\tadd.u32 %a, %a, %c;
\tcvt.rzi.u32.f64 %c, %e;
\tadd.u32 %a, %a, %c;
\tcvt.u64.u32 %w, %a;
\tadd.u64 %w, %w, %x;
\tadd.u64 %w, %w, %y;
\t@%p add.u64 %w, %w, 1;
\t@%first st.global.u64 [%out+8], %w;
\t@%first st.global.u64 [%out+16], %x;
\tret;
}
";

/// A dependent chain: each operation uses the two results before it, so that no compiler can shorten it.
const fn chain(name: &'static str, what: &'static str, step: &'static str) -> Anchor {
    let data = Data::Zeros { words: 1024 };
    Anchor {
        name,
        what,
        ctas: Ctas::One,
        warps: 1,
        rounds: 64,
        unrolled: 64,
        data,
        place: Place::First,
        step,
        operations: 2,
        setup: "",
    }
}

const fn memory(name: &'static str, what: &'static str, step: &'static str, data: Data) -> Anchor {
    Anchor {
        name,
        what,
        ctas: Ctas::One,
        warps: 1,
        rounds: 64,
        unrolled: 16,
        data,
        place: Place::First,
        step,
        operations: 1,
        setup: "ld.global.u64 %x, [%out+16];",
    }
}

const fn each(name: &'static str, what: &'static str, warps: u32, step: &'static str) -> Anchor {
    let data = Data::Zeros { words: 1024 };
    Anchor {
        name,
        what,
        ctas: Ctas::One,
        warps,
        rounds: 32,
        unrolled: 16,
        data,
        place: Place::First,
        step,
        operations: 1,
        setup: "",
    }
}

/// On all SMs at once, each thread at the address that `setup` leaves in `%mine`.
const fn contended(
    name: &'static str,
    what: &'static str,
    warps: u32,
    setup: &'static str,
    step: &'static str,
) -> Anchor {
    let data = Data::Zeros { words: 1 << 17 };
    let rounds = if warps == 1 { 16 } else { 4 };
    Anchor {
        name,
        what,
        ctas: Ctas::PerSm,
        warps,
        rounds,
        unrolled: 2,
        data,
        place: Place::First,
        step,
        operations: 1,
        setup,
    }
}

const fn anywhere(anchor: Anchor) -> Anchor {
    Anchor { place: Place::Middle, ..anchor }
}

const fn spin_lock(ctas: Ctas, name: &'static str, what: &'static str) -> Anchor {
    Anchor { ctas, ..anywhere(contended(name, what, 1, "", SPIN_LOCK)) }
}

/// By one warp, with a near or a far page.
const fn at(place: Place, name: &'static str, what: &'static str, step: &'static str) -> Anchor {
    let data = Data::Zeros { words: Place::PAGES * Place::PAGE_BYTES / 8 };
    Anchor { data, place, ..each(name, what, 1, step) }
}

/// Loads of 512 bytes per warp, one after the other through the memory, by all SMs.
const fn stream(name: &'static str, what: &'static str, words: usize) -> Anchor {
    let data = Data::Zeros { words };
    let anchor = contended(
        name,
        what,
        32,
        "mad.wide.u32 %mine, %all, 16, %base;\nmul.lo.u32 %s, %ctas, 16384;\ncvt.u64.u32 %y, %s;",
        "{\n.reg .b32 %v<4>;\nld.global.cg.v4.u32 {%v0, %v1, %v2, %v3}, [%mine];\nadd.u32 %b, %b, %v0;\n\
         add.u64 %mine, %mine, %y;\n}",
    );
    Anchor { data, ..anchor }
}

const ONE_WORD: &str = "mov.b64 %mine, %base;";
const ONE_LINE: &str = "and.b32 %s, %t, 31;\nmad.wide.u32 %mine, %s, 4, %base;";
/// The lanes of a warp on one word, the warps of the grid on 64 words in two lines. Lanes add different values from the
/// first operation on: equal ones a compiler would add once.
const WORD_PER_WARP: &str =
    "mov.b32 %b, %t;\nshr.u32 %s, %all, 5;\nand.b32 %s, %s, 63;\nmad.wide.u32 %mine, %s, 4, %base;";
const LINES_64: &str = "and.b32 %s, %all, 63;\nmad.wide.u32 %mine, %s, 128, %base;";
const LINES_1024: &str = "and.b32 %s, %all, 1023;\nmad.wide.u32 %mine, %s, 128, %base;";
const OWN_WORD: &str = "mad.wide.u32 %mine, %all, 8, %base;";

const SPIN_LOCK: &str = "{\n@!%first bra done;\nagain:\natom.global.cas.b32 %b, [%base], 0, 1;\n\
    setp.ne.u32 %q, %b, 0;\n@%q bra again;\nmembar.gl;\nld.volatile.global.u32 %b, [%base+128];\n\
    add.u32 %b, %b, 1;\nst.volatile.global.u32 [%base+128], %b;\nmembar.gl;\n\
    atom.global.exch.b32 %b, [%base], 0;\ndone:\n}";

const CAS: &str = "atom.global.cas.b32 %b, [%mine], %c, %b;";

/// What a fence, a hand-off, and atomics cost when all SMs make them.
fn contention() -> Vec<Anchor> {
    vec![
        contended("all/cas-one", "failing atom.cas, all SMs, one word", 1, ONE_WORD, CAS),
        contended("all/cas-line", "failing atom.cas, all SMs, 32 words of a line", 1, ONE_LINE, CAS),
        anywhere(contended(
            "all/cas-64",
            "failing atom.cas, all SMs, 64 words a line apart",
            8,
            LINES_64,
            CAS,
        )),
        anywhere(contended(
            "all/cas-1024",
            "failing atom.cas, all SMs, 1024 words a line apart",
            8,
            LINES_1024,
            CAS,
        )),
        contended(
            "all/cas64-one",
            "failing 64-bit atom.cas, all SMs, one word",
            1,
            ONE_WORD,
            "atom.global.cas.b64 %x, [%mine], %y, %x;",
        ),
        contended(
            "all/exch-one",
            "atom.exch, all SMs, one word",
            1,
            ONE_WORD,
            "atom.global.exch.b32 %b, [%mine], %b;",
        ),
        anywhere(contended(
            "all/exch-64",
            "atom.exch, all SMs, 64 words a line apart",
            8,
            LINES_64,
            "atom.global.exch.b32 %b, [%mine], %b;",
        )),
        contended(
            "all/add-one",
            "atom.add, all SMs, one word",
            1,
            ONE_WORD,
            "atom.global.add.u32 %b, [%mine], %b;",
        ),
        contended(
            "all/add-warp",
            "atom.add, all SMs, a warp on each of 64 words in two lines",
            8,
            WORD_PER_WARP,
            "atom.global.add.u32 %b, [%mine], %b;",
        ),
        contended(
            "all/max-one",
            "atom.max, all SMs, one word",
            1,
            ONE_WORD,
            "atom.global.max.u32 %b, [%mine], %b;",
        ),
        Anchor {
            rounds: 8,
            unrolled: 16,
            ..contended(
                "all/red-one",
                "red.add, all SMs, one word",
                1,
                ONE_WORD,
                "red.global.add.u32 [%mine], %c;",
            )
        },
        contended(
            "all/load-one",
            "volatile load, all SMs, 32 warps each, one word",
            32,
            ONE_WORD,
            "ld.volatile.global.u32 %b, [%mine];\nmad.wide.u32 %mine, %b, 4, %mine;",
        ),
        contended(
            "all/load-line",
            "volatile load, all SMs, 32 warps each, 32 words of a line",
            32,
            ONE_LINE,
            "ld.volatile.global.u32 %b, [%mine];\nmad.wide.u32 %mine, %b, 4, %mine;",
        ),
        anywhere(contended(
            "all/load-1024",
            "volatile load, all SMs, 1024 words a line apart",
            8,
            LINES_1024,
            "ld.volatile.global.u32 %b, [%mine];\nmad.wide.u32 %mine, %b, 4, %mine;",
        )),
        stream("all/l2-stream", "ld.cg of 512 bytes per warp, all SMs, 32 warps each, from the L2", 1 << 22),
        stream("all/dram-stream", "the same, from memory", 1 << 24),
        contended(
            "all/poll-one",
            "dependent volatile load, all SMs, one word",
            1,
            ONE_WORD,
            "ld.volatile.global.u32 %b, [%mine];\nmad.wide.u32 %mine, %b, 4, %mine;",
        ),
        contended(
            "all/fence",
            "membar.gl after a store, all SMs",
            1,
            OWN_WORD,
            "st.global.u32 [%mine], %c;\nmembar.gl;",
        ),
        contended(
            "all/token",
            "a token once through all SMs: each polls for its turn",
            1,
            "mov.b32 %c, %cta;",
            "{\n@!%first bra passed;\nagain:\nld.volatile.global.u32 %b, [%base];\n\
             setp.ne.u32 %q, %b, %c;\n@%q bra again;\nadd.u32 %b, %b, 1;\n\
             st.volatile.global.u32 [%base], %b;\nadd.u32 %c, %c, %ctas;\npassed:\n}",
        ),
        spin_lock(Ctas::PerSm, "all/spin-lock", "a spin lock taken and released once by each SM"),
        spin_lock(Ctas::Some(33), "some/spin-lock", "the same, 33 SMs"),
        // All eight are near the same half of the L2.
        Anchor { place: Place::Near, ..spin_lock(Ctas::Some(8), "few/spin-lock", "the same, 8 SMs, near") },
        Anchor {
            place: Place::Near,
            ..contended(
                "all/flag",
                "a word stored by one SM, with membar.gl, and polled by the others until it has changed",
                1,
                "mov.u32 %c, 0;",
                "{\n@!%first bra seen;\nadd.u32 %c, %c, 1;\nsetp.ne.u32 %q, %cta, 0;\n@%q bra again;\n\
             st.volatile.global.u32 [%base], %c;\nmembar.gl;\nbra seen;\nagain:\n\
             ld.volatile.global.u32 %b, [%base];\nsetp.lt.u32 %q, %b, %c;\n@%q bra again;\nseen:\n}",
            )
        },
    ]
}

/// All anchors, in the order of the report.
pub(super) fn anchors() -> Vec<Anchor> {
    // 4 kB fit every L1. 4 MB fit only L2. 256 MB fit no cache, and each run continues where the last one stopped.
    let l1 = Data::Chain { links: 32, stride_words: 16 };
    let l2 = Data::Chain { links: 1 << 15, stride_words: 16 };
    let dram = Data::Chain { links: 1 << 21, stride_words: 16 };
    let mut all = vec![
        chain("int/add", "dependent add.s32", "add.s32 %a, %a, %b;\nadd.s32 %b, %b, %a;"),
        chain("int/mul", "dependent mul.lo.s32", "mul.lo.s32 %a, %a, %b;\nmul.lo.s32 %b, %b, %a;"),
        chain("int/mad", "dependent mad.lo.s32", "mad.lo.s32 %a, %a, %b, %c;\nmad.lo.s32 %b, %b, %a, %c;"),
        chain("int/xor-shift", "dependent shl.b32 or xor.b32", "shl.b32 %b, %a, 3;\nxor.b32 %a, %a, %b;"),
        chain("int/popc", "dependent popc.b32 or add.s32", "popc.b32 %b, %a;\nadd.s32 %a, %a, %b;"),
        chain("int64/add", "dependent add.u64", "add.u64 %x, %x, %y;\nadd.u64 %y, %y, %x;"),
        chain("f32/add", "dependent add.f32", "add.rn.f32 %f, %f, %g;\nadd.rn.f32 %g, %g, %f;"),
        chain("f32/fma", "dependent fma.f32", "fma.rn.f32 %f, %f, %g, %h;\nfma.rn.f32 %g, %g, %f, %h;"),
        chain(
            "f32/rcp",
            "dependent rcp.approx.ftz.f32 or add.f32",
            "rcp.approx.ftz.f32 %f, %f;\nadd.rn.f32 %f, %f, %h;",
        ),
        chain(
            "f32/sin",
            "dependent sin.approx.ftz.f32",
            "sin.approx.ftz.f32 %f, %f;\nsin.approx.ftz.f32 %f, %f;",
        ),
        chain("f32/div", "dependent div.rn.f32", "div.rn.f32 %f, %f, %h;\ndiv.rn.f32 %f, %f, %h;"),
        chain("f64/add", "dependent add.f64", "add.rn.f64 %d, %d, %e;\nadd.rn.f64 %e, %e, %d;"),
        chain("f64/fma", "dependent fma.f64", "fma.rn.f64 %d, %d, %e, %k;\nfma.rn.f64 %e, %e, %d, %k;"),
        chain(
            "cvt/f32-s32",
            "dependent cvt there or back",
            "cvt.rn.f32.s32 %f, %a;\ncvt.rzi.s32.f32 %a, %f;",
        ),
        Anchor {
            setup: "st.shared.u32 [%s], %s;\nmov.b32 %b, %s;",
            ..each("shared/load", "dependent ld.shared", 1, "ld.volatile.shared.u32 %b, [%b];")
        },
        Anchor {
            setup: "ld.global.u64 %x, [%out+16];\nwarm:\nld.global.ca.u64 %x, [%x];\nadd.u32 %i, %i, 1;\n\
                    setp.lt.u32 %q, %i, 32;\n@%q bra warm;\nmov.u32 %i, 0;",
            ..memory("l1/load", "dependent ld.global.ca, 4 kB", "ld.global.ca.u64 %x, [%x];", l1)
        },
        memory("l2/load", "dependent ld.global.cg, 4 MB", "ld.global.cg.u64 %x, [%x];", l2),
        each(
            "l2/load-4",
            "four independent volatile loads, each used before the next in the PTX",
            1,
            "{\n.reg .b32 %v<4>;\nld.volatile.global.u32 %v0, [%mine];\nadd.u32 %b, %b, %v0;\n\
             ld.volatile.global.u32 %v1, [%mine+1024];\nadd.u32 %b, %b, %v1;\n\
             ld.volatile.global.u32 %v2, [%mine+2048];\nadd.u32 %b, %b, %v2;\n\
             ld.volatile.global.u32 %v3, [%mine+3072];\nadd.u32 %b, %b, %v3;\n\
             mad.wide.u32 %mine, %v3, 4, %mine;\n}",
        ),
        memory("dram/load", "dependent ld.global.cg, 256 MB", "ld.global.cg.u64 %x, [%x];", dram),
        each(
            "shared/atom-one",
            "atom.shared.add by 32 lanes, one address",
            1,
            "atom.shared.add.u32 %b, [scratch], %b;",
        ),
        each("shared/atom-own", "atom.shared.add, an address a lane", 1, "atom.shared.add.u32 %b, [%s], %b;"),
        Anchor {
            setup: "st.shared.u32 [%s], 0;",
            ..each(
                "shared/poll",
                "a loop that polls shared memory and ends at once",
                1,
                "{\nagain:\nld.volatile.shared.u32 %b, [%s];\nsetp.ne.u32 %q, %b, 0;\n@%q bra again;\n}",
            )
        },
        each(
            "shared/cas-own",
            "atom.shared.cas, an address a lane",
            1,
            "atom.shared.cas.b32 %b, [%s], %b, %c;",
        ),
        each(
            "shared/exch-own",
            "atom.shared.exch, an address a lane",
            1,
            "atom.shared.exch.b32 %b, [%s], %b;",
        ),
        each(
            "shared/cas-one",
            "atom.shared.cas by 32 lanes, one address",
            1,
            "atom.shared.cas.b32 %b, [scratch], %b, %c;",
        ),
        at(
            Place::Near,
            "global/atom-one",
            "atom.global.add by 32 lanes, one address, near",
            "atom.global.add.u32 %b, [%base], %b;",
        ),
        at(
            Place::Near,
            "global/atom-own",
            "atom.global.add, an address a lane, near",
            "atom.global.add.u32 %b, [%mine], %b;",
        ),
        at(
            Place::Near,
            "global/cas-one",
            "atom.global.cas by 32 lanes, one address, near",
            "atom.global.cas.b32 %b, [%base], %b, %c;",
        ),
        at(Place::Far, "global/cas-far", "the same, far", "atom.global.cas.b32 %b, [%base], %b, %c;"),
        each(
            "global/red-one",
            "red.global.add by 32 lanes, one address",
            1,
            "red.global.add.u32 [%base], %c;",
        ),
        each("barrier/1", "bar.sync of 1 warp", 1, "bar.sync 1;"),
        each("barrier/8", "bar.sync of 8 warps", 8, "bar.sync 1;"),
        each("barrier/32", "bar.sync of 32 warps", 32, "bar.sync 1;"),
        Anchor {
            setup: "@%first mbarrier.init.shared.b64 [phase], 32;\nbar.sync 0;",
            ..each(
                "mbarrier/32",
                "mbarrier.arrive by 32 lanes, then test_wait until it is true",
                1,
                "{\nmbarrier.arrive.shared.b64 %x, [phase];\nagain:\n\
                 mbarrier.test_wait.shared.b64 %p, [phase], %x;\n@!%p bra again;\n}",
            )
        },
        Anchor {
            // Lanes hold different values: a shuffle of equal ones is no shuffle to a compiler.
            setup: "add.u32 %b, %t, %a;\nand.b32 %b, %b, 31;",
            ..each("warp/shfl", "dependent shfl.sync.idx", 1, "shfl.sync.idx.b32 %b, %b, %b, 31, -1;")
        },
        each("warp/vote", "dependent vote.sync.any", 1, "vote.sync.any.pred %p, %p, -1;"),
        // So many that the loop does not count: the machine code of one is a single instruction.
        Anchor { unrolled: 256, ..each("warp/sync", "bar.warp.sync", 1, "bar.warp.sync -1;") },
        Anchor {
            setup: "and.b32 %a, %t, 3;",
            ..each(
                "warp/leave",
                "a loop of ld.shared that lanes leave after 1, 2, 3 and 4 iterations, and bar.warp.sync",
                1,
                "{\nmov.u32 %c, %a;\nagain:\nld.volatile.shared.u32 %b, [%s];\nsub.u32 %c, %c, 1;\n\
                 setp.ge.s32 %q, %c, 0;\n@%q bra again;\nbar.warp.sync -1;\n}",
            )
        },
        each("fence/cta", "membar.cta after a store", 1, "st.global.u32 [%mine], %c;\nmembar.cta;"),
        at(
            Place::Near,
            "fence/gpu",
            "membar.gl after a store, near",
            "st.global.u32 [%mine], %c;\nmembar.gl;",
        ),
        at(Place::Far, "fence/gpu-far", "the same, far", "st.global.u32 [%mine], %c;\nmembar.gl;"),
        each("nanosleep/0", "nanosleep 0", 1, "nanosleep.u32 0;"),
        each("nanosleep/100", "nanosleep 100", 1, "nanosleep.u32 100;"),
        each("nanosleep/1000", "nanosleep 1000", 1, "nanosleep.u32 1000;"),
    ];
    all.extend(contention());
    all
}
