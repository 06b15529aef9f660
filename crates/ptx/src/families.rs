//! Every instruction of the PTX manual: whether it is modelled, and if not, why.
//!
//! Lowering takes its refusals from this table, and `docs/ptx.md` is generated from it ([`support_page`]), so that the
//! two always agree.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::resolved::Word;
use crate::target::Target;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Support {
    /// Completely.
    Modelled,
    /// With these exceptions, which are refused.
    Partly(&'static str),
    /// Refused when the module loads, for this reason.
    Refused(&'static str),
}

/// Instructions with the same support.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    /// The manual's chapter.
    pub group: &'static str,
    /// As the manual writes them: a mnemonic and, if they distinguish instructions, its first modifiers.
    pub mnemonics: &'static [&'static str],
    pub support: Support,
}

use Support::{Modelled, Partly, Refused};

const fn family(group: &'static str, mnemonics: &'static [&'static str], support: Support) -> Family {
    Family { group, mnemonics, support }
}

const TAKEOVER: Support = Refused("taking over CTAs that have not started is not modelled");

/// All families, by group, in the manual's order.
pub(crate) const FAMILIES: &[Family] = &[
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
    family("Data movement", &["mov"], Partly("without addresses of labels")),
    family("Data movement", &["shfl", "prmt"], Modelled),
    family("Data movement", &["ld", "ldu", "st"], Modelled),
    family(
        "Data movement",
        &["prefetch", "prefetchu", "applypriority", "discard", "createpolicy"],
        Partly("checked, then ignored: cache priorities are not modelled"),
    ),
    family("Data movement", &["isspacep", "cvta"], Modelled),
    family("Data movement", &["cvt"], Partly("without `.rs`, `.scaled`")),
    family("Data movement", &["cvt.pack"], Partly("without 4-bit and 2-bit types")),
    family("Data movement", &["mapa", "getctarank"], Modelled),
    family("Data movement", &["istypep"], Refused("the type of a handle is known when it is used")),
    family("Data movement", &["st.async"], Partly("without `.mmio`, `.global`")),
    family("Data movement", &["st.bulk"], Refused("bulk stores of zeros are not modelled")),
    family("Data movement", &["tensormap.replace"], Partly("without `.swizzle_atomicity`")),
    family("Data movement", &["tensormap.cp_fenceproxy"], Modelled),
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
    family(
        "Asynchronous copies",
        &["cp.async.bulk", "cp.reduce.async.bulk"],
        Partly("without `.im2col`, `.cp_mask`; `.prefetch` is checked, then ignored"),
    ),
    family("Asynchronous copies", &["cp.async.bulk.commit_group", "cp.async.bulk.wait_group"], Modelled),
    family(
        "Textures and surfaces",
        &["tex"],
        Partly("without multisample textures, comparisons of depth, `.v4.f16`; textures have one level"),
    ),
    family("Textures and surfaces", &["tld4"], Partly("without comparisons of depth")),
    family("Textures and surfaces", &["txq", "suq"], Modelled),
    family("Textures and surfaces", &["suld", "sust", "sured"], Modelled),
    family("Control flow", &["bra", "brx", "ret", "exit"], Modelled),
    family(
        "Control flow",
        &["call"],
        Partly("without functions that have no body, except `vprintf`, `__assertfail`, `malloc` and `free`"),
    ),
    family("Synchronization", &["bar", "bar.warp", "barrier", "membar"], Modelled),
    family("Synchronization", &["barrier.cluster"], Modelled),
    family("Synchronization", &["fence"], Partly("proxy fences order like `fence.acq_rel.cta`")),
    family("Synchronization", &["atom", "red"], Modelled),
    family("Synchronization", &["red.async"], Partly("without `.mmio`, `.global`")),
    family("Synchronization", &["vote", "match", "activemask", "elect"], Modelled),
    family("Synchronization", &["redux"], Modelled),
    family("Synchronization", &["griddepcontrol"], Partly("no effect: launches run one after the other")),
    family("Synchronization", &["mbarrier"], Partly("`try_wait` returns at once")),
    family("Synchronization", &["clusterlaunchcontrol"], TAKEOVER),
    family(
        "Tensor cores",
        &["mma"],
        Partly("without `.sp`, `.block_scale`, 6-bit and 4-bit floats; `.f64` rounds to nearest"),
    ),
    family("Tensor cores", &["ldmatrix", "stmatrix"], Partly("without elements of 8 bits and fewer")),
    family("Tensor cores", &["movmatrix"], Modelled),
    family("Tensor cores", &["wmma"], Modelled),
    family("Tensor cores", &["wgmma.mma_async"], Modelled),
    family("Tensor cores", &["wgmma.mma_async.sp"], Refused("sparse matrices are not modelled")),
    family("Tensor cores", &["wgmma.fence", "wgmma.commit_group", "wgmma.wait_group"], Modelled),
    family("Tensor cores", &["tcgen05"], Refused("tensor memory is not modelled")),
    family("Stack", &["stacksave", "stackrestore", "alloca"], Modelled),
    family("Video", &["vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset"], Modelled),
    family("Video", &["vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2"], Modelled),
    family("Video", &["vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4"], Modelled),
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

/// Mnemonics with their support by their first word: every instruction that is loaded is looked up.
static BY_FIRST_WORD: LazyLock<HashMap<&str, Vec<(&str, Support)>>> = LazyLock::new(|| {
    let mut all: HashMap<_, Vec<_>> = HashMap::new();
    for Family { mnemonics, support, .. } in FAMILIES {
        for mnemonic in *mnemonics {
            let first = mnemonic.split('.').next().unwrap_or_default();
            all.entry(first).or_default().push((*mnemonic, *support));
        }
    }
    all
});

/// The most specific entry for an opcode: the one that matches most of its first words. Its mnemonic, the words that
/// spell it, and its support.
pub(crate) fn find(opcode: &[Word]) -> Option<(&'static str, &[Word], Support)> {
    let matched = |mnemonic: &str| {
        mnemonic.split('.').try_fold(0, |words, part| (opcode.get(words)?.text == part).then_some(words + 1))
    };
    BY_FIRST_WORD
        .get(&*opcode.first()?.text)?
        .iter()
        .filter_map(|&(m, support)| matched(m).map(|words| (words, m, support)))
        .max_by_key(|(words, ..)| *words)
        .map(|(words, mnemonic, support)| (mnemonic, &opcode[..words], support))
}

/// What each instruction needs that a text of this version and target does not have.
pub(crate) fn lacking(version: (u32, u32), target: Target) -> HashMap<&'static str, String> {
    let mut lacking = HashMap::new();
    for (ptx, chip, mnemonics) in SINCE {
        if let Some(needs) = needs(version, target, version_of(ptx), chip) {
            lacking.extend(mnemonics.iter().map(|mnemonic| (*mnemonic, needs.clone())));
        }
    }
    lacking
}

fn version_of(text: &str) -> (u32, u32) {
    let number = |part: &str| part.parse().unwrap_or(0);
    text.split_once('.').map_or((0, 0), |(major, minor)| (number(major), number(minor)))
}

/// The predicate of a sentence about what PTX has since `since` on `chip`, if a text does not have it.
pub(crate) fn needs(version: (u32, u32), target: Target, since: (u32, u32), chip: &str) -> Option<String> {
    if !target.has(chip) {
        let (needs, later) = if chip.ends_with("only") { ("is for", "") } else { ("needs", " or later") };
        return Some(format!("{needs} {chip}{later}, the target is {target}"));
    }
    let ((major, minor), (have, of)) = (since, version);
    (version < since).then(|| format!("needs PTX {major}.{minor}, this is {have}.{of}"))
}

const INTRODUCTION: &str = "\
# PTX

Warploom loads PTX text of ISA versions 1.4 to 9.x from any compiler. This page lists every instruction of the PTX
manual, with the first version of PTX and the first chip that have it. What is not modelled is refused when a kernel
that needs it is chosen, with the line and the reason. Nothing is skipped silently. In time, an instruction has the
latency and rate of its unit from the chip file, or those of the instructions that it is made of. The page is generated
from the table that the loader itself uses.

";

/// Since which version PTX has instructions, and from which chip on (none: all).
const SINCE: &[(&str, &str, &[&str])] = &[
    (
        "1.0",
        "",
        &["add", "sub", "mul", "mad", "div", "abs", "neg", "min", "max", "mul24", "mad24", "sad", "rem"],
    ),
    (
        "1.0",
        "",
        &["rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "set", "setp", "selp", "slct", "mov", "cvt"],
    ),
    (
        "1.0",
        "",
        &["and", "or", "xor", "not", "cnot", "shl", "shr", "ld", "st", "tex", "bra", "ret", "exit", "call"],
    ),
    ("1.0", "", &["bar", "trap", "brkpt"]),
    ("1.1", "sm_11", &["atom"]),
    ("1.2", "", &["add.cc", "addc", "sub.cc", "subc"]),
    ("1.2", "sm_11", &["red"]),
    ("1.2", "sm_12", &["vote"]),
    ("1.4", "", &["membar", "pmevent"]),
    ("1.4", "sm_13", &["fma"]),
    ("1.5", "", &["txq", "suld", "sust", "suq"]),
    (
        "2.0",
        "sm_20",
        &["popc", "clz", "bfind", "brev", "bfe", "bfi", "testp", "copysign", "prmt", "ldu", "sured"],
    ),
    ("2.0", "sm_20", &["prefetch", "prefetchu", "isspacep", "cvta"]),
    ("2.0", "sm_20", &["vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset"]),
    ("2.2", "sm_20", &["tld4"]),
    ("3.0", "sm_20", &["mad.cc", "madc"]),
    ("3.0", "sm_30", &["shfl", "vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2"]),
    ("3.0", "sm_30", &["vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4"]),
    ("3.1", "sm_32", &["shf"]),
    ("4.0", "sm_30", &["istypep"]),
    ("4.3", "sm_50", &["lop3"]),
    ("5.0", "sm_61", &["dp4a", "dp2a"]),
    ("6.0", "sm_30", &["fns", "brx", "bar.warp", "barrier"]),
    ("6.0", "sm_70", &["fence", "match", "wmma"]),
    ("6.2", "sm_30", &["activemask"]),
    ("6.3", "sm_70", &["nanosleep"]),
    ("6.4", "sm_70", &["mma"]),
    ("6.5", "sm_72", &["cvt.pack"]),
    ("6.5", "sm_75", &["ldmatrix"]),
    ("7.0", "sm_75", &["tanh"]),
    ("7.0", "sm_80", &["cp.async", "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all"]),
    ("7.0", "sm_80", &["cp.async.mbarrier.arrive", "redux", "mbarrier"]),
    ("7.3", "sm_52", &["stacksave", "stackrestore", "alloca"]),
    ("7.4", "sm_80", &["applypriority", "discard", "createpolicy"]),
    ("7.6", "sm_70", &["bmsk", "szext"]),
    ("7.8", "sm_75", &["movmatrix"]),
    ("7.8", "sm_90", &["mapa", "getctarank", "barrier.cluster", "griddepcontrol", "stmatrix"]),
    ("8.0", "sm_90", &["elect", "cp.async.bulk", "cp.reduce.async.bulk"]),
    ("8.0", "sm_90", &["cp.async.bulk.commit_group", "cp.async.bulk.wait_group"]),
    ("8.0", "sm_90a only", &["wgmma.mma_async", "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group"]),
    ("8.0", "sm_90a", &["setmaxnreg"]),
    ("8.1", "sm_90", &["st.async", "red.async", "multimem"]),
    ("8.2", "sm_90a only", &["wgmma.mma_async.sp"]),
    ("8.3", "sm_90", &["tensormap.cp_fenceproxy"]),
    ("8.3", "sm_90a", &["tensormap.replace"]),
    ("8.6", "sm_100", &["st.bulk", "clusterlaunchcontrol"]),
    ("8.6", "sm_100a", &["tcgen05"]),
];

/// The version and the chip of an instruction; none for those of Warploom itself.
fn since(mnemonic: &str) -> Option<(&'static str, &'static str)> {
    let (ptx, chip, _) = SINCE.iter().find(|(_, _, all)| all.contains(&mnemonic))?;
    Some((*ptx, *chip))
}

/// How an instruction takes time in the timed model.
fn time(mnemonic: &str, support: Support) -> &'static str {
    match mnemonic {
        _ if matches!(support, Refused(_)) => "",
        "prefetch" | "prefetchu" | "applypriority" | "discard" | "createpolicy" | "pmevent"
        | "setmaxnreg" | "griddepcontrol" | "wgmma.fence" => "issue only",
        _ if mnemonic.starts_with('v') && mnemonic != "vote" => "that of its parts",
        "wmma" | "tensormap.replace" | "tensormap.cp_fenceproxy" => "that of its parts",
        _ => "yes",
    }
}

/// The last section of the page.
const NOTES: &str = include_str!("families/notes.md");

/// The text of `docs/ptx.md`: every PTX instruction and whether it is modelled.
pub fn support_page() -> String {
    let mut out = String::from(INTRODUCTION);
    let mut group = "";
    for family in FAMILIES {
        if family.group != group {
            group = family.group;
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "{}## {group}\n\n| instruction | PTX | chip | values | time | |\n|---|---|---|---|---|---|\n",
                if out.ends_with("|\n") { "\n" } else { "" }
            );
        }
        for mnemonic in family.mnemonics {
            let (values, note) = match family.support {
                Modelled => ("yes", ""),
                Partly(what) => ("partly", what),
                Refused(why) => ("no", why),
            };
            let (ptx, chip) = since(mnemonic).unwrap_or_default();
            let time = time(mnemonic, family.support);
            let _ = writeln!(out, "| `{mnemonic}` | {ptx} | {chip} | {values} | {time} | {note} |");
        }
    }
    out.push('\n');
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
    fn every_family_is_found() {
        for family in FAMILIES {
            for mnemonic in family.mnemonics {
                let words = words(mnemonic);
                let (found, _, support) = find(&words).unwrap();
                assert_eq!((found, support), (*mnemonic, family.support));
            }
        }
    }

    #[test]
    fn every_instruction_of_ptx_has_a_version() {
        let listed: Vec<_> = SINCE.iter().flat_map(|(.., all)| all.iter()).collect();
        for mnemonic in FAMILIES.iter().flat_map(|f| f.mnemonics) {
            let times = listed.iter().filter(|name| *name == &mnemonic).count();
            assert_eq!(times, usize::from(!mnemonic.starts_with("wl.")), "{mnemonic}");
        }
        let known: BTreeSet<_> = FAMILIES.iter().flat_map(|f| f.mnemonics).collect();
        assert!(listed.iter().all(|name| known.contains(name)));
    }

    #[test]
    fn no_mnemonic_is_listed_twice() {
        let mut seen = BTreeSet::new();
        for mnemonic in FAMILIES.iter().flat_map(|f| f.mnemonics) {
            assert!(seen.insert(mnemonic), "{mnemonic}");
        }
    }
}
