//! The mnemonics of all operations: one table for both writing and reading.
//!
//! A row has a name, perhaps with fixed words after it, and the parts of one [`Op`] with the words of each (`words.rs`,
//! `tables.rs`). An operation is written by the first row that can express it. A mnemonic is read by the first row of
//! its name that claims all its words, in any order. Names are Fermi's if Fermi has the instruction, else a later
//! chip's, else our own. Start at the `spellings!` table below, then [`mnemonic`] and [`operation`].

mod tables;
mod words;

use tables::*;
use words::*;

use crate::inst::*;
use crate::types::*;

/// Generates the writer and the reader of the table from its rows.
macro_rules! spellings {
    ($($name:literal $op:ident { $($part:tt $value:ident: $words:expr),* })*) => {
        fn write_rows(op: Op) -> Option<String> {
            $(if let Op::$op { $($part: $value),* } = op {
                #[allow(unused_mut)]
                let mut words: Vec<String> = Vec::new();
                if true $(&& $words.write($value, &mut words))* {
                    words.insert(0, $name.to_string());
                    return Some(words.join("."));
                }
            })*
            None
        }

        fn read_rows(name: &str, given: &Suffixes) -> Option<Op> {
            $(#[allow(unused_mut)]
            if let Some(mut words) = begin($name, name, given) {
                let op = whole(|| Some(Op::$op { $($part: $words.read(&mut words)?),* }));
                if let Some(op) = op.filter(|_| words.0.is_empty()) {
                    return Some(op);
                }
            })*
            None
        }

        /// The name and fixed words of every row.
        const NAMES: &[&str] = &[$($name),*];
    };
}

/// Runs a closure, so that `?` in a row's parts ends that row only.
fn whole(read: impl FnOnce() -> Option<Op>) -> Option<Op> {
    read()
}

/// The words left for a row's parts, if the mnemonic has the row's name and fixed words.
fn begin(row: &str, name: &str, given: &Suffixes) -> Option<Suffixes> {
    let mut fixed = row.split('.');
    if fixed.next() != Some(name) {
        return None;
    }
    let mut words = given.clone();
    fixed.all(|word| words.take(word)).then_some(words)
}

const SHARED: &[(Space, &str)] = &[(Space::Shared, "")];
const LOCAL: &[(Space, &str)] = &[(Space::Local, "")];
const GLOBAL: &[(Space, &str)] = &[(Space::Global, "")];
const GENERIC: &[(Space, &str)] = &[(Space::Generic, "")];
/// The operand distinguishes the two: they are different banks.
const BANKS: &[(Space, &str)] = &[(Space::Const, ""), (Space::Param, "")];

spellings! {
    "MOV" Mov { 0 ty: SIZE }
    "PMOV" MovPred { }
    "PACK.64" Pack64 { }
    "PACK.32" Pack32x16 { }
    "UNPACK.64" Unpack64 { 0 part: WORD }
    "UNPACK.32" Unpack32 { 0 part: HALF }
    "UNPACK.32" UnpackByte { 0 part: BYTE }
    "S2R" Special { 0 special: Elsewhere(Special::Zero) }
    "SEL" Selp { 0 ty: SIZE }
    "ICMP.GE" Slct { ty ty: SIZE, float float: Only(false), ftz ftz: Only(false) }
    "FCMP.GE" Slct { ty ty: SIZE, float float: Only(true), ftz ftz: Flag("FTZ") }
    "PRMT" Prmt { 0 mode: SELECTIONS }

    "IADD" IAdd { 0 ty: SIGNLESS, 1 clamp: Only(Clamp::None) }
    "IADD.SAT" IAdd { 0 ty: Only(Ty::S32), 1 clamp: Only(Clamp::Sat) }
    "IADD" IAdd { 0 ty: PAIRS, 1 clamp: SAT }
    "ISUB" ISub { 0 ty: SIGNLESS, 1 clamp: Only(Clamp::None) }
    "ISUB.SAT" ISub { 0 ty: Only(Ty::S32), 1 clamp: Only(Clamp::Sat) }
    "IMUL" IMul { 0 ty: SIGNLESS, 1 part: Only(Part::Lo) }
    "IMUL.HI" IMul { 0 ty: INTS, 1 part: Only(Part::Hi) }
    "IMUL.WIDE" IMul { 0 ty: NARROW_INTS, 1 part: Only(Part::Wide) }
    "IMAD" IMad { 0 ty: SIGNLESS, 1 part: Only(Part::Lo), 2 clamp: Only(Clamp::None) }
    "IMAD.HI" IMad { 0 ty: INTS, 1 part: Only(Part::Hi), 2 clamp: Only(Clamp::None) }
    "IMAD.HI.SAT" IMad { 0 ty: Only(Ty::S32), 1 part: Only(Part::Hi), 2 clamp: Only(Clamp::Sat) }
    "IMAD.WIDE" IMad { 0 ty: NARROW_INTS, 1 part: Only(Part::Wide), 2 clamp: Only(Clamp::None) }
    "IMUL24" Mul24 { 0 ty: WORDS, 1 part: HALF_PARTS }
    "IMAD24" Mad24 { 0 ty: WORDS, 1 part: HALF_PARTS, 2 clamp: Only(Clamp::None) }
    "IMAD24.HI.SAT" Mad24 { 0 ty: Only(Ty::S32), 1 part: Only(Part::Hi), 2 clamp: Only(Clamp::Sat) }
    "IADD.X" AddCarry { 0 ty: UNSIGNED }
    "ISUB.X" SubBorrow { 0 ty: UNSIGNED }
    "IMAD.X" MadCarry { 0 ty: UNSIGNED, 1 part: HALF_PARTS }
    "IDIV" IDiv { 0 ty: INTS }
    "IREM" IRem { 0 ty: INTS }
    "IABS" IAbs { 0 ty: SIGNED }
    "INEG" INeg { 0 ty: SIGNED }
    "IMNMX.MIN" IMin { 0 ty: INTS_AND_PAIRS, 1 clamp: Only(Clamp::None) }
    "IMNMX.MAX" IMax { 0 ty: INTS_AND_PAIRS, 1 clamp: Only(Clamp::None) }
    "IMNMX.MIN.RELU" IMin { 0 ty: RELU_TYPES, 1 clamp: Only(Clamp::Relu) }
    "IMNMX.MAX.RELU" IMax { 0 ty: RELU_TYPES, 1 clamp: Only(Clamp::Relu) }
    "ISAD" Sad { 0 ty: INTS }
    "DP4A" Dp4a { 0 a: SIGNS, 1 b: SIGNS }
    "DP2A" Dp2a { 0 a: SIGNS, 1 b: SIGNS, 2 high: Flag("HI") }

    "LOP" Logic { 0 logic: LOGIC, 1 ty: BITS }
    "LOP.NOT" Not { 0 ty: BITS }
    "CNOT" Cnot { 0 ty: BITS }
    "PSETP" LogicPred { 0 logic: Then(LOGIC, "AND") }
    "PNOT" NotPred { }
    "LOP3" Lop3 { 0 table: Byte }
    "SHL" Shl { 0 ty: BITS }
    "SHR" Shr { 0 ty: SHIFTED }
    "SHF" Shf { left left: LEFT, wrap wrap: Flag("W") }
    "POPC" Popc { 0 ty: WIDE_BITS }
    "CLZ" Clz { 0 ty: WIDE_BITS }
    "BREV" Brev { 0 ty: WIDE_BITS }
    "FLO" Bfind { 0 ty: FIELDS, 1 shift: Flag("SH") }
    "FNS" Fns { }
    "BFE" Bfe { 0 ty: FIELDS }
    "BFI" Bfi { 0 ty: WIDE_BITS }
    "BMSK" Bmsk { 0 wrap: Flag("W") }
    "SGXT" Szext { 0 ty: WORDS, 1 wrap: Flag("W") }

    "ISETP" Setp { cmp cmp: EQUALITIES, combine combine: COMBINATIONS, ty ty: EQUATED, ftz ftz: Only(false) }
    "ISETP" Setp { cmp cmp: INT_COMPARISONS, combine combine: COMBINATIONS, ty ty: INTS, ftz ftz: Only(false) }
    "FSETP" Setp { cmp cmp: COMPARISONS, combine combine: COMBINATIONS, ty ty: Only(Ty::F32), ftz ftz: Flag("FTZ") }
    "DSETP" Setp { cmp cmp: COMPARISONS, combine combine: COMBINATIONS, ty ty: Only(Ty::F64), ftz ftz: Only(false) }
    "HSETP" Setp { cmp cmp: COMPARISONS, combine combine: COMBINATIONS, ty ty: HALVES, ftz ftz: Flag("FTZ") }
    "PSETP" SetpPred { 0 cmp: EQUALITIES, 1 combine: COMBINATIONS }
    "SET" Set {
        cmp cmp: COMPARISONS, combine combine: COMBINATIONS, dst dst: SET_RESULTS, src src: SET_SOURCES,
        ftz ftz: Flag("FTZ")
    }

    "FADD" FAdd { 0 ty: Only(Ty::F32), 1 mode: SINGLE }
    "DADD" FAdd { 0 ty: Only(Ty::F64), 1 mode: DOUBLE }
    "HADD" FAdd { 0 ty: HALVES, 1 mode: HALF_MODE }
    "FSUB" FSub { 0 ty: Only(Ty::F32), 1 mode: SINGLE }
    "DSUB" FSub { 0 ty: Only(Ty::F64), 1 mode: DOUBLE }
    "HSUB" FSub { 0 ty: HALVES, 1 mode: HALF_MODE }
    "FMUL" FMul { 0 ty: Only(Ty::F32), 1 mode: SINGLE }
    "DMUL" FMul { 0 ty: Only(Ty::F64), 1 mode: DOUBLE }
    "HMUL" FMul { 0 ty: HALVES, 1 mode: HALF_MODE }
    "FFMA" FFma { 0 ty: Only(Ty::F32), 1 mode: SINGLE }
    "DFMA" FFma { 0 ty: Only(Ty::F64), 1 mode: DOUBLE }
    "HFMA" FFma { 0 ty: HALVES, 1 mode: HALF_FUSED }
    "FDIV" FDiv { 0 ty: Only(Ty::F32), 1 mode: SINGLE_QUOTIENT }
    "DDIV" FDiv { 0 ty: Only(Ty::F64), 1 mode: DOUBLE }
    "FDIV.APPROX" FDivApprox { full full: Flag("FULL"), ftz ftz: Flag("FTZ") }
    "FABS" FAbs { 0 ty: Only(Ty::F32), 1 ftz: Flag("FTZ") }
    "DABS" FAbs { 0 ty: Only(Ty::F64), 1 ftz: Only(false) }
    "HABS" FAbs { 0 ty: HALVES, 1 ftz: Flag("FTZ") }
    "FNEG" FNeg { 0 ty: Only(Ty::F32), 1 ftz: Flag("FTZ") }
    "DNEG" FNeg { 0 ty: Only(Ty::F64), 1 ftz: Only(false) }
    "HNEG" FNeg { 0 ty: HALVES, 1 ftz: Flag("FTZ") }
    "FMNMX.MIN" FMin { 0 ty: Only(Ty::F32), 1 mode: NanAndSign }
    "DMNMX.MIN" FMin { 0 ty: Only(Ty::F64), 1 mode: NanAndSign }
    "HMNMX.MIN" FMin { 0 ty: HALVES, 1 mode: NanAndSign }
    "FMNMX.MAX" FMax { 0 ty: Only(Ty::F32), 1 mode: NanAndSign }
    "DMNMX.MAX" FMax { 0 ty: Only(Ty::F64), 1 mode: NanAndSign }
    "HMNMX.MAX" FMax { 0 ty: HALVES, 1 mode: NanAndSign }
    "FRCP" FRounded { 0 function: Only(Approx::Rcp), 1 ty: Only(Ty::F32), 2 mode: SINGLE_QUOTIENT }
    "DRCP" FRounded { 0 function: Only(Approx::Rcp), 1 ty: Only(Ty::F64), 2 mode: DOUBLE }
    "FSQRT" FRounded { 0 function: Only(Approx::Sqrt), 1 ty: Only(Ty::F32), 2 mode: SINGLE_QUOTIENT }
    "DSQRT" FRounded { 0 function: Only(Approx::Sqrt), 1 ty: Only(Ty::F64), 2 mode: DOUBLE }
    "MUFU" FApprox { 0 function: FUNCTIONS, 1 ty: Only(Ty::F32), 2 ftz: Flag("FTZ") }
    "MUFU.RCP.F64.FTZ" FApprox { 0 function: Only(Approx::Rcp), 1 ty: Only(Ty::F64), 2 ftz: Only(true) }
    "MUFU.RSQ.F64" FApprox { 0 function: Only(Approx::Rsqrt), 1 ty: Only(Ty::F64), 2 ftz: Flag("FTZ") }
    "MUFU.TANH" FApprox { 0 function: Only(Approx::Tanh), 1 ty: HALF_WORDS, 2 ftz: Flag("FTZ") }
    "MUFU.EX2" FApprox { 0 function: Only(Approx::Ex2), 1 ty: HALF_WORDS, 2 ftz: Flag("FTZ") }
    "FCHK" Testp { 0 kind: KINDS, 1 ty: FLOATS }
    "COPYSIGN" Copysign { 0 ty: FLOATS }

    "I2F" Cvt { 0 cvt: Conversion { to: CVT_FLOATS, from: CVT_INTS } }
    "F2I" Cvt { 0 cvt: Conversion { to: CVT_INTS, from: CVT_FLOATS } }
    "F2F" Cvt { 0 cvt: Conversion { to: CVT_FLOATS, from: CVT_FLOATS } }
    "I2I" Cvt { 0 cvt: Conversion { to: CVT_INTS, from: CVT_INTS } }
    "F2FP" CvtPair { 0 cvt: Conversion { to: CVT_PAIRS, from: Table(&[(Ty::F32, "F32")]) } }
    "I2IP" CvtPack { 0 ty: PACKED }

    "LDS" Ld { access access: load(SHARED), wide wide: Flag("WIDE") }
    "LDL" Ld { access access: load(LOCAL), wide wide: Flag("WIDE") }
    "LDG" Ld { access access: load(GLOBAL), wide wide: Flag("WIDE") }
    "LDC" Ld { access access: load(BANKS), wide wide: Flag("WIDE") }
    "LD" Ld { access access: load(GENERIC), wide wide: Flag("WIDE") }
    "STS" St { 0 access: store(SHARED) }
    "STL" St { 0 access: store(LOCAL) }
    "STG" St { 0 access: store(GLOBAL) }
    "ST" St { 0 access: store(GENERIC) }
    "LDSLK" LdLock { 0 access: locked(SHARED) }
    "STSUL" StUnlock { 0 access: locked(SHARED) }
    "LDLK" LdLock { 0 access: locked(GENERIC) }
    "STUL" StUnlock { 0 access: locked(GENERIC) }
    "ATOMS" Atom { 0 op: ATOMICS, 1 access: atomic(SHARED) }
    "ATOMG" Atom { 0 op: ATOMICS, 1 access: atomic(GLOBAL) }
    "ATOM" Atom { 0 op: ATOMICS, 1 access: atomic(GENERIC) }
    "CVTA.TO" FromGeneric { 0 space: SPACES, 1 ty: UNSIGNED }
    "CVTA" ToGeneric { 0 space: SPACES, 1 ty: UNSIGNED }
    "ISSPACE" IsSpace { 0 space: SPACES, 1 ty: UNSIGNED }
    "MAPA" Mapa { 0 generic: Flag("E"), 1 ty: UNSIGNED }
    "CTARANK" CtaRank { 0 generic: Flag("E"), 1 ty: UNSIGNED }
    "MEMBAR" Fence { 0 order: Only(Order::SeqCst), 1 scope: MEMBAR_SCOPES }
    "FENCE" Fence { 0 order: FENCES, 1 scope: FENCE_SCOPES }
    "PREFETCH" Prefetch { }
    "LDGSTS" CpAsync { 0 bytes: COPIED }
    "LDGDEPBAR" CpAsyncCommit { }
    "DEPBAR.LE" CpAsyncWait { }
    "MBAR" Mbarrier { 0 op: MBARRIERS, 1 wide: Flag("E") }

    "VOTE" Vote { 0 mode: VOTES }
    "SHFL" Shfl { 0 mode: SHUFFLES }
    "MATCH.ANY" MatchAny { 0 ty: WIDE_BITS }
    "MATCH.ALL" MatchAll { 0 ty: WIDE_BITS }
    "REDUX" Redux { 0 op: REDUCTIONS, 1 ty: REDUCED }
    "ACTIVEMASK" ActiveMask { }
    "ELECT" Elect { }
    "WVOTE" WaveBallot { }
    "WACTIVE" WaveActive { }
    "WSHFL" WaveShfl { 0 ty: WIDE_BITS }

    "BAR.SYNC" Bar { 0 mode: Only(BarMode::Sync) }
    "BAR.ARV" Bar { 0 mode: Only(BarMode::Arrive) }
    "BAR.RED.POPC" Bar { 0 mode: Only(BarMode::RedPopc) }
    "BAR.RED.AND" Bar { 0 mode: Only(BarMode::RedAnd) }
    "BAR.RED.OR" Bar { 0 mode: Only(BarMode::RedOr) }
    "WARPSYNC" BarWarp { }
    "UCGABAR" ClusterBar { 0 mode: CLUSTER_BARS }
    "NANOSLEEP" Nanosleep { }
    "WYIELD" Yield { }

    "SSY" Ssy { }
    "BRA" Bra { }
    "BRX" Brx { }
    "CAL" Call { }
    "RET" Ret { }
    "EXIT" Exit { }
    "BPT.TRAP" Trap { }
    "PRINTF" Printf { }
    "ASSERT" AssertFail { }
    "NOP" Nop { }
}

/// The mnemonic of an operation: its name and all its words, joined by dots.
pub fn mnemonic(op: Op) -> String {
    // An operation that no text can express has no row; some of these have a name nevertheless.
    if let Op::Video(video) = op {
        return video.mnemonic();
    }
    write_rows(plain(op)).unwrap_or_else(|| format!("{op:?}"))
}

/// The operation of a mnemonic. `name` is its first word, `suffixes` the others; all are in upper case.
pub fn operation(name: &str, suffixes: &[String]) -> Option<Op> {
    let op = match read_rows(name, &Suffixes(suffixes.to_vec()))? {
        Op::Ld { access, wide } => Op::Ld { access, wide: wide || access.ty.is_wide() },
        op => op,
    };
    exists(op).then_some(op)
}

/// The operation as it is read back from its mnemonic. Operations that the machine does not distinguish become equal.
pub fn canonical(op: Op) -> Op {
    let text = mnemonic(op);
    let mut words = text.split('.').map(str::to_string);
    let name = words.next().unwrap_or_default();
    let read = operation(&name, &words.collect::<Vec<_>>()).unwrap_or(op);
    match (op, read) {
        // The name is the same for both constant banks.
        (Op::Ld { access: Access { space, .. }, .. }, Op::Ld { access, wide }) => {
            Op::Ld { access: Access { space, ..access }, wide }
        }
        // An operand names the register.
        (Op::Special(_), _) => op,
        // The operand says whether there is a combination or just `PT`.
        (Op::Setp { combine, .. }, Op::Setp { cmp, ty, ftz, .. }) => Op::Setp { cmp, combine, ty, ftz },
        (Op::Set { combine, .. }, Op::Set { cmp, src, dst, ftz, .. }) => {
            Op::Set { cmp, combine, src, dst, ftz }
        }
        (Op::SetpPred(_, combine), Op::SetpPred(cmp, _)) => Op::SetpPred(cmp, combine),
        _ => read,
    }
}

/// The first words of all mnemonics, sorted, each once.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = NAMES.iter().filter_map(|row| row.split('.').next()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The mnemonics that begin with `name`, with their fixed words only: suggestions for an error message.
pub fn forms(name: &str) -> Vec<&'static str> {
    let mut forms: Vec<&str> = Vec::new();
    for row in NAMES.iter().copied().filter(|row| row.split('.').next() == Some(name)) {
        if !forms.contains(&row) {
            forms.push(row);
        }
    }
    forms
}

/// The operation without a redundant `WIDE`: a wide element's register is always wide.
fn plain(op: Op) -> Op {
    match op {
        Op::Ld { access, wide } => Op::Ld { access, wide: wide && !access.ty.is_wide() },
        op => op,
    }
}

/// Whether the machine has this combination of parts. Each part alone is valid.
fn exists(op: Op) -> bool {
    match op {
        Op::Cvt(cvt) => {
            let floats = cvt.from.is_float() && cvt.to.is_float();
            (!cvt.integral || floats && cvt.from == cvt.to)
                && (cvt.clamp != Clamp::Relu || cvt.from == Ty::F32 && matches!(cvt.to, Ty::F16 | Ty::BF16))
        }
        Op::CvtPair(cvt) => {
            !cvt.integral && matches!(cvt.round, Round::Rn | Round::Rz) && cvt.clamp != Clamp::Sat
        }
        Op::Redux(op, ty) => match op {
            ReduxOp::Add => matches!(ty, Ty::S32 | Ty::U32),
            ReduxOp::Min | ReduxOp::Max => ty != Ty::B32,
            ReduxOp::MinNan | ReduxOp::MaxNan => ty == Ty::F32,
            ReduxOp::And | ReduxOp::Or | ReduxOp::Xor => ty == Ty::B32,
        },
        Op::Atom(op, access) => match op {
            AtomOp::Add => !matches!(access.ty, Ty::B16 | Ty::S64),
            AtomOp::Min | AtomOp::Max => matches!(access.ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64),
            AtomOp::And | AtomOp::Or | AtomOp::Xor => matches!(access.ty, Ty::U32 | Ty::U64),
            AtomOp::Inc | AtomOp::Dec => access.ty == Ty::U32,
            AtomOp::Exch => matches!(access.ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::F32),
            AtomOp::Cas => matches!(access.ty, Ty::B16 | Ty::U32 | Ty::S32 | Ty::U64),
        },
        Op::Set { cmp, src, dst, .. } => {
            let with_nan = !matches!(cmp, Cmp::Eq | Cmp::Ne | Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge);
            let pairs = matches!(src, Ty::F16x2 | Ty::BF16x2);
            let halves = matches!(src, Ty::F16 | Ty::BF16);
            let bits = matches!(src, Ty::B16 | Ty::B32 | Ty::B64);
            let result = match dst {
                Ty::U16x2 | Ty::F16x2 | Ty::BF16x2 => pairs,
                Ty::U16 | Ty::S16 => halves,
                Ty::F32 => !pairs && !halves,
                Ty::F16 => !pairs && src != Ty::BF16,
                _ => !pairs,
            };
            result && (src.is_float() || !with_nan) && (!bits || matches!(cmp, Cmp::Eq | Cmp::Ne))
        }
        _ => true,
    }
}

/// Special registers as `cuobjdump` shows them. The first name of a register is the one that is printed.
const SPECIALS: &[(Special, &str)] = &[
    (Special::TidX, "SR_Tid_X"),
    (Special::TidY, "SR_Tid_Y"),
    (Special::TidZ, "SR_Tid_Z"),
    (Special::NtidX, "SR_NTid_X"),
    (Special::NtidY, "SR_NTid_Y"),
    (Special::NtidZ, "SR_NTid_Z"),
    (Special::CtaidX, "SR_CTAid_X"),
    (Special::CtaidY, "SR_CTAid_Y"),
    (Special::CtaidZ, "SR_CTAid_Z"),
    (Special::NctaidX, "SR_NCTAid_X"),
    (Special::NctaidY, "SR_NCTAid_Y"),
    (Special::NctaidZ, "SR_NCTAid_Z"),
    (Special::ClusterIdX, "SR_ClusterId_X"),
    (Special::ClusterIdY, "SR_ClusterId_Y"),
    (Special::ClusterIdZ, "SR_ClusterId_Z"),
    (Special::NclusterIdX, "SR_NClusterId_X"),
    (Special::NclusterIdY, "SR_NClusterId_Y"),
    (Special::NclusterIdZ, "SR_NClusterId_Z"),
    (Special::ClusterCtaidX, "SR_ClusterCTAid_X"),
    (Special::ClusterCtaidY, "SR_ClusterCTAid_Y"),
    (Special::ClusterCtaidZ, "SR_ClusterCTAid_Z"),
    (Special::ClusterNctaidX, "SR_ClusterNCTAid_X"),
    (Special::ClusterNctaidY, "SR_ClusterNCTAid_Y"),
    (Special::ClusterNctaidZ, "SR_ClusterNCTAid_Z"),
    (Special::ClusterCtarank, "SR_CgaCtaId"),
    (Special::ClusterNctarank, "SR_CgaSize"),
    (Special::ExplicitCluster, "SR_ExplicitCluster"),
    (Special::LaneId, "SR_LaneId"),
    (Special::WaveLaneId, "SR_WaveLaneId"),
    (Special::WaveLanes, "SR_WaveLanes"),
    (Special::WarpId, "SR_WarpId"),
    (Special::NwarpId, "SR_NWarpId"),
    (Special::SmId, "SR_SMId"),
    (Special::NsmId, "SR_NSMId"),
    (Special::GridId, "SR_GridId"),
    (Special::LanemaskEq, "SR_EqMask"),
    (Special::LanemaskLe, "SR_LeMask"),
    (Special::LanemaskLt, "SR_LtMask"),
    (Special::LanemaskGe, "SR_GeMask"),
    (Special::LanemaskGt, "SR_GtMask"),
    (Special::Clock, "SR_ClockLo"),
    (Special::ClockHi, "SR_ClockHi"),
    (Special::Clock64, "SR_Clock64"),
    (Special::GlobalTimer, "SR_GlobalTimer"),
    (Special::GlobalTimerLo, "SR_GlobalTimerLo"),
    (Special::GlobalTimerHi, "SR_GlobalTimerHi"),
    (Special::DynamicSmemSize, "SR_DynamicSmemSize"),
    (Special::TotalSmemSize, "SR_TotalSmemSize"),
    (Special::WorkspaceHi, "SR_WorkspaceHi"),
    (Special::WorkspaceLo, "SR_WorkspaceLo"),
    (Special::Zero, "SR_Zero"),
    (Special::Zero64, "SR_Zero64"),
    (Special::Clock, "SR_Clock"),
];

pub fn special(special: Special) -> &'static str {
    SPECIALS.iter().find(|(s, _)| *s == special).map_or("SR_Zero", |(_, name)| name)
}

/// The special register with this name, in upper or lower case, with `.X` or `_X`.
pub fn special_named(name: &str) -> Option<Special> {
    let name = name.replace('.', "_");
    SPECIALS.iter().find(|(_, n)| n.eq_ignore_ascii_case(&name)).map(|(s, _)| *s)
}

/// The names of all special registers, for suggestions.
pub fn specials() -> impl Iterator<Item = &'static str> {
    SPECIALS.iter().map(|(_, name)| *name)
}
