//! Every instruction of the PTX manual: whether it is modelled, and what is missing or why not.
//!
//! Lowering takes its refusals from here, and `docs/ptx.md` is written from here, so that neither can say
//! something else than the other.

use std::fmt::Write as _;

use crate::resolved::Word;

/// Whether a family is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// All of it.
    Modelled,
    /// With exceptions; what is missing is refused when the module loads.
    Partly(&'static str),
    /// Refused when the module loads, for this reason.
    Refused(&'static str),
}

/// Instructions that are modelled, or not, for the same reason.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The manual's chapter.
    pub group: &'static str,
    /// As the manual writes them: a mnemonic and, where they tell instructions apart, its first modifiers.
    pub mnemonics: &'static [&'static str],
    /// How far.
    pub support: Support,
}

use Support::{Modelled, Partly, Refused};

const fn family(group: &'static str, mnemonics: &'static [&'static str], support: Support) -> Family {
    Family { group, mnemonics, support }
}

const TENSOR_CORES: Support = Refused("tensor-core instructions are not modelled");
const CLUSTERS: Support = Refused("clusters are not modelled");
const TEXTURES: Support = Refused("textures are not modelled");
const SURFACES: Support = Refused("surfaces are not modelled");
const TMA: Support = Refused("the tensor memory accelerator is not modelled");
const VIDEO: Support = Refused("video instructions are not modelled");
const STACK: Support = Refused("the stack pointer of a thread is not accessible");

/// All families, by group in the manual's order.
pub const FAMILIES: &[Family] = &[
    family(
        "Integer and floating-point arithmetic",
        &["add", "sub", "mul", "mad", "div", "abs", "neg"],
        Modelled,
    ),
    family("Integer and floating-point arithmetic", &["min", "max"], Partly("without `.u8x4`, `.s8x4`")),
    family("Integer arithmetic", &["mul24", "mad24", "sad", "rem"], Modelled),
    family("Integer arithmetic", &["popc", "clz", "bfind", "fns", "brev", "bfe", "bfi"], Modelled),
    family("Integer arithmetic", &["bmsk", "szext", "dp4a", "dp2a"], Modelled),
    family("Extended precision", &["add.cc", "addc", "sub.cc", "subc", "mad.cc", "madc"], Modelled),
    family("Floating point", &["testp", "copysign", "rcp", "sqrt", "rsqrt"], Modelled),
    family("Floating point", &["fma"], Partly("without `.oob`")),
    family("Floating point", &["sin", "cos", "lg2", "ex2", "tanh"], Modelled),
    family("Comparison and selection", &["set", "setp", "selp", "slct"], Modelled),
    family("Logic and shift", &["and", "or", "xor", "not", "cnot", "lop3", "shf", "shl", "shr"], Modelled),
    family("Data movement", &["mov"], Partly("without `.b128`, addresses of labels")),
    family("Data movement", &["shfl", "prmt"], Modelled),
    family("Data movement", &["ld", "ldu", "st"], Partly("without `.b128`, `.shared::cluster`")),
    family(
        "Data movement",
        &["prefetch", "prefetchu", "applypriority", "discard", "createpolicy"],
        Partly("checked, then ignored: cache priorities are not modelled"),
    ),
    family("Data movement", &["isspacep", "cvta"], Partly("without `.shared::cluster`")),
    family(
        "Data movement",
        &["cvt"],
        Partly("without non-integer types of 8 bits or fewer, `.tf32`, `.rs`, `.satfinite`, `.scaled`"),
    ),
    family("Data movement", &["cvt.pack"], Partly("without 4-bit and 2-bit types")),
    family("Data movement", &["mapa", "getctarank"], CLUSTERS),
    family("Data movement", &["istypep"], TEXTURES),
    family("Data movement", &["st.async"], CLUSTERS),
    family("Data movement", &["st.bulk"], TMA),
    family("Data movement", &["tensormap.replace", "tensormap.cp_fenceproxy", "prefetch.tensormap"], TMA),
    family("Data movement", &["multimem"], Refused("memory of several devices is not modelled")),
    family("Asynchronous copies", &["cp.async"], Modelled),
    family(
        "Asynchronous copies",
        &["cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all"],
        Modelled,
    ),
    family(
        "Asynchronous copies",
        &["cp.async.mbarrier.arrive"],
        Partly("the thread waits for its copies here, not at the barrier"),
    ),
    family("Asynchronous copies", &["cp.async.bulk", "cp.reduce.async.bulk"], TMA),
    family("Textures and surfaces", &["tex", "tld4", "txq"], TEXTURES),
    family("Textures and surfaces", &["suld", "sust", "sured", "suq"], SURFACES),
    family("Control flow", &["bra", "brx", "ret", "exit"], Modelled),
    family(
        "Control flow",
        &["call"],
        Partly(
            "without functions that have no body, except `vprintf` and `__assertfail`; without predicate arguments",
        ),
    ),
    family("Synchronization", &["bar", "bar.warp", "barrier", "membar"], Modelled),
    family("Synchronization", &["barrier.cluster"], CLUSTERS),
    family(
        "Synchronization",
        &["fence"],
        Partly("without `.sync_restrict`; accepted proxy fences order like `fence.acq_rel.cta`"),
    ),
    family("Synchronization", &["fence.proxy.tensormap::generic"], TMA),
    family("Synchronization", &["atom"], Partly("without `.b128`, vectors, `.shared::cluster`")),
    family("Synchronization", &["red"], Partly("without vectors, `.shared::cluster`")),
    family("Synchronization", &["red.async"], CLUSTERS),
    family("Synchronization", &["vote", "match", "activemask", "elect"], Modelled),
    family("Synchronization", &["redux"], Partly("without `.abs`, `.NaN`")),
    family("Synchronization", &["griddepcontrol"], Partly("no effect: launches run one after the other")),
    family(
        "Synchronization",
        &["mbarrier"],
        Partly("without `.shared::cluster`; `try_wait` returns at once"),
    ),
    family("Synchronization", &["clusterlaunchcontrol"], CLUSTERS),
    family(
        "Tensor cores",
        &["wmma", "mma", "ldmatrix", "stmatrix", "movmatrix", "wgmma.mma_async", "wgmma", "tcgen05"],
        TENSOR_CORES,
    ),
    family("Stack", &["stacksave", "stackrestore", "alloca"], STACK),
    family("Video", &["vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset"], VIDEO),
    family("Video", &["vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2"], VIDEO),
    family("Video", &["vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4"], VIDEO),
    family(
        "Warploom's own",
        &["wl.ldslk", "wl.stsul"],
        Partly("only on chips with lock bits; other kernels of the module run anywhere"),
    ),
    family("Warploom's own", &["wl.ballot", "wl.activemask", "wl.shfl"], Modelled),
    family(
        "Warploom's own",
        &["wl.yield"],
        Partly(
            "frees the wavefront's slot in a run of firmware, on chips that can; elsewhere it does nothing",
        ),
    ),
    family("Miscellaneous", &["trap", "brkpt", "nanosleep"], Modelled),
    family("Miscellaneous", &["pmevent", "setmaxnreg"], Partly("checked, then ignored")),
];

/// The most special entry for an opcode: the one that matches most of its first words.
fn find(opcode: &[Word]) -> Option<(usize, &'static str, Support)> {
    let matched = |mnemonic: &str| {
        mnemonic.split('.').try_fold(0, |words, part| (opcode.get(words)?.text == part).then_some(words + 1))
    };
    FAMILIES
        .iter()
        .flat_map(|f| f.mnemonics.iter().map(move |m| (*m, f.support)))
        .filter_map(|(m, support)| matched(m).map(|words| (words, m, support)))
        .max_by_key(|(words, ..)| *words)
}

/// If an opcode is refused as a whole: its mnemonic, the words that spell it, and why.
pub(crate) fn refusal(opcode: &[Word]) -> Option<(&'static str, &[Word], &'static str)> {
    match find(opcode)? {
        (words, mnemonic, Refused(why)) => Some((mnemonic, &opcode[..words], why)),
        _ => None,
    }
}

const INTRODUCTION: &str = "\
# PTX

Warploom loads PTX text of ISA versions 1.4 to 9.x from any compiler. This page lists every instruction of the PTX
manual. What is not modelled is refused when the module loads, with the line and the reason. Nothing is skipped
silently. The page is generated from the table that the loader itself uses.

";

const NOTES: &str = "
## Notes

- **Types.** All integer types of 8 to 64 bits, `.f16`, `.bf16`, `.f32`, `.f64` and the pairs `.f16x2`, `.bf16x2`,
  `.u16x2`, `.s16x2`. `add`, `sub`, `mul` and `fma` also take `.f32x2`. Registers of `.b128` may be declared but not
  used. An operand has the width of the instruction's type; loads, stores and `cvt` take wider registers. A register
  declared `.bN` holds anything of N bits.
- **Modifiers** may come in any order, as with `ptxas`. A modifier that an instruction does not have is an error. It is
  never ignored.
- **Order and scope.** `.weak`, `.volatile`, `.relaxed`, `.acquire`, `.release`, `.mmio` and all scopes reach the
  machine. `membar` is the `fence.sc` of its scope. Cache operators (`.ca .cg .cs .lu .cv .nc .wb .wt`) reach it, too.
  Eviction priorities, prefetch sizes and cache policies are hints and are dropped.
- **Special registers** have their value, except those of graphs and performance counters, which read as zero. A plain
  launch is a grid of clusters of one CTA. 16-bit reads (`mov.u16 %rh1, %tid.x`, PTX 1.x) give the low half.
- **Carry.** The condition code of `.cc` belongs to one thread and one function.
- **Old dialects.** Before PTX 1.5, `div`, `rcp`, `sqrt` and the like may leave `.approx` out. `mad.f32` is `fma`. For
  targets before sm_20, every `.f32` instruction flushes subnormals.
- **Calls.** Parameters live in the callee's frame in local memory. Calls through registers need `.callprototype` or
  `.calltargets`. `vprintf` and `__assertfail` are built in; the device heap and launches from the device are not.
- **Lock bits.** `wl.ldslk[.shared].type d|p, [a];` loads a word of shared memory and takes its lock bit in the same
  access. p says whether it got the bit. d and p may be `_`. `wl.stsul[.shared].type [a], v;` stores a word and frees
  its bit. Types are `.b32 .u32 .s32 .f32 .b64 .u64 .s64 .f64`. Without `.shared`, the address may be a generic address
  of shared memory or one of the space itself (below 16 MB); any other ends the launch. A 64-bit word has the bit of its
  lower half.
- **Whole wavefronts.** PTX's warp has 32 lanes. On a chip with wavefronts of 64, `vote`, `shfl` and `%laneid` see
  halves. `wl.activemask.b64 d;` gives the mask of all active lanes of the wavefront, `wl.ballot.b64 d, {!}p;` the mask
  of those whose p is true. `wl.shfl.idx.type d, a, lane;` (`.b32 .b64`) gives the a of any lane, or the lane's own if
  that lane is not active. `%wl_laneid` is the lane's number among the `%wl_lanes` of the wavefront. These instructions
  act among the lanes that execute together and wait for no others. They work on chips with 32 lanes as well.
- **Yield.** `wl.yield.b64 r;` waits for the wavefront's own accesses, saves the wavefront, and frees its slot and
  registers. It leaves a record for the firmware, with the value of r in the first active lane. The firmware restarts
  the wavefront later ([aggregator.md](aggregator.md)).
- **Annotations.** `.pragma \"warploom.lock acquire\";` in front of a load, store or atomic says that it tries to take
  a lock (for an atomic: by changing the word). `release` says that it releases one, `wait` that it reads what another
  thread will write. Lock statistics then follow the annotation, not the analysis of loops.
  `.pragma \"warploom.sib\";` says that the next branch, which must go backwards, is spin-inducing: a lane that takes it
  waits for another thread (`--sib annotated`). Other compilers ignore both.
- **Debugging data** (`.loc`, `.file`, `.section`) is read for source lines.
";

/// The text of `docs/ptx.md`.
pub fn markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    let mut group = "";
    for family in FAMILIES {
        if family.group != group {
            group = family.group;
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "{}## {group}\n\n| instructions | modelled | |\n|---|---|---|\n",
                if out.ends_with("|\n") { "\n" } else { "" }
            );
        }
        let names: Vec<_> = family.mnemonics.iter().map(|m| format!("`{m}`")).collect();
        let (modelled, note) = match family.support {
            Modelled => ("yes", ""),
            Partly(what) => ("partly", what),
            Refused(why) => ("no", why),
        };
        let _ = writeln!(out, "| {} | {modelled} | {note} |", names.join(" "));
    }
    out.push_str(NOTES);
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::lower;

    fn words(mnemonic: &str) -> Vec<Word> {
        let word = |text: &str| Word { text: text.into(), span: warploom_isa::Span::default() };
        mnemonic.split('.').map(word).collect()
    }

    #[test]
    fn the_table_and_the_lowering_agree() {
        let first = |m: &'static str| m.split('.').next().unwrap_or(m);
        let accepted: BTreeSet<_> = FAMILIES
            .iter()
            .filter(|f| !matches!(f.support, Refused(_)))
            .flat_map(|f| f.mnemonics.iter().map(|m| first(m)))
            .collect();
        let lowered: BTreeSet<_> = lower::mnemonics().collect();
        assert_eq!(accepted, lowered);
    }

    #[test]
    fn refused_families_are_refused() {
        for family in FAMILIES {
            for mnemonic in family.mnemonics {
                let refused = refusal(&words(mnemonic)).map(|(m, _, why)| (m, why));
                match family.support {
                    Refused(why) => assert_eq!(refused, Some((*mnemonic, why))),
                    _ => assert_eq!(refused, None, "{mnemonic}"),
                }
            }
        }
    }

    #[test]
    fn no_mnemonic_is_listed_twice() {
        let mut seen = BTreeSet::new();
        for mnemonic in FAMILIES.iter().flat_map(|f| f.mnemonics) {
            assert!(seen.insert(mnemonic), "{mnemonic}");
        }
    }

    /// `UPDATE_DOCS=1 cargo test` rewrites the page.
    #[test]
    fn the_page_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ptx.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, markdown()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == markdown(),
            "docs/ptx.md is out of date: UPDATE_DOCS=1 cargo test -p warploom-ptx rewrites it"
        );
    }
}
