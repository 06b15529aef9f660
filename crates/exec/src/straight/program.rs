//! A kernel's instructions as straight runs execute them: each is decoded when a run first comes to it.

use std::ops::Range;

use warploom_isa::{Access, Dst, Guard, Inst, Kernel, Op, Operand, Pc, Space, Special, Value};

use crate::chip::Divergence;
use crate::execute::special::of_launch;
use crate::lanes::frequent::{Constants, LaneOperation};
use crate::launch::Launch;
use crate::straight::words::{MAX_WORDS, Patterns, Words};

/// How an instruction is executed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Not decoded yet.
    New,
    /// A frequent lane operation.
    Lanes(LaneOperation),
    /// Perhaps a lane operation that is not among the frequent ones.
    RareLanes,
    /// To one place.
    Branch,
    /// A load or store, as [`Step::words`].
    Words,
    /// The coordinates of a thread or CTA.
    Special,
    /// No effect.
    Nothing,
    /// Not in a straight run.
    Other,
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) kind: Kind,
    /// It has no guard, and moves nothing.
    pub(super) plain: bool,
    /// Registers that it writes, if some of them are in [`Program::bases`]; otherwise none.
    pub(super) moves: Range<usize>,
    /// Index into [`Program::words`].
    pub(super) words: usize,
    /// It is the branch of a loop that waits for other threads, which may be of its warp.
    pub(super) repeats_wait: bool,
    pub(super) inst: Inst,
}

/// The instructions of a kernel by pc, in CTAs that no firmware started.
pub(crate) struct Program<const N: usize> {
    pub(super) steps: Vec<Step>,
    pub(super) words: Vec<Words>,
    pub(super) patterns: Patterns<N>,
    pub(super) constants: Constants,
    /// By register, in any function: several loads and stores take it as their base address, or its upper half.
    bases: Vec<bool>,
    /// Loads, and stores, can be made in runs.
    loads: bool,
    stores: bool,
    /// Generic addresses can be those of other CTAs.
    clusters: bool,
}

impl<const N: usize> Program<N> {
    /// Nothing is decoded yet. With `notes_stores`, somebody wants to know of each store. `repeats_wait` has the
    /// branches, by pc, after which a path that waits lets others of its warp run.
    pub(crate) fn new(launch: &Launch<'_>, notes_stores: bool, repeats_wait: &[bool]) -> Self {
        let independent = launch.chip.sm.divergence == Divergence::IndependentThreads;
        let new = |(inst, &repeats_wait): (&Inst, &bool)| Step {
            repeats_wait: repeats_wait && independent,
            kind: Kind::New,
            plain: true,
            moves: 0..0,
            words: 0,
            inst: *inst,
        };
        let checked = launch.check_uninitialised;
        let bases = bases(launch.kernel);
        Program {
            steps: launch.kernel.code.iter().zip(repeats_wait).map(new).collect(),
            words: Vec::new(),
            patterns: Patterns::new(bases.len()),
            constants: Constants::default(),
            bases,
            loads: !checked,
            stores: !checked && !notes_stores,
            clusters: launch.clusters,
        }
    }

    /// Whether a run that begins here executes anything, as far as is known.
    #[inline(always)]
    pub(crate) fn begins(&self, pc: Pc) -> bool {
        !matches!(self.steps[pc.index()].kind, Kind::Other)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn decode(&mut self, launch: &Launch<'_>, pc: Pc) {
        let kernel = launch.kernel;
        let inst = &kernel.code[pc.index()];
        let (mut first, mut end, mut moves_base) = (usize::MAX, 0, false);
        inst.for_each_def(kernel, |value| {
            if let Value::Reg(reg, width) = value {
                let words = reg.index()..reg.index() + width.words() as usize;
                (first, end) = (first.min(words.start), end.max(words.end));
                moves_base |= self.bases[words].contains(&true);
            }
        });
        let (kind, words) = self.kind(launch, inst);
        let step = &mut self.steps[pc.index()];
        step.kind = kind;
        step.moves = if moves_base { first..end } else { 0..0 };
        step.plain = inst.guard == Guard::Always && !moves_base;
        if let Some(words) = words {
            step.words = self.words.len();
            self.words.push(words);
        }
    }

    fn kind(&mut self, launch: &Launch<'_>, inst: &Inst) -> (Kind, Option<Words>) {
        let kernel = launch.kernel;
        let known = match inst.op {
            Op::Special(special) => of_launch(launch, special).map(|value| (u64::from(value), false)),
            Op::Ld { access, wide } if self.loads && wide == access.ty.is_wide() => {
                known(launch, inst, access)
            }
            _ => None,
        };
        let operation = match known {
            Some((value, wide)) => LaneOperation::constant(inst, value, wide, &mut self.constants),
            None => LaneOperation::of(inst, &mut self.constants, &kernel.imms),
        };
        if let Some(operation) = operation {
            return (Kind::Lanes(operation), None);
        }
        if let Some(words) = self.words(kernel, inst) {
            return (Kind::Words, Some(words));
        }
        use Special::{CtaidX, CtaidY, CtaidZ, TidX, TidY, TidZ};
        let kind = match inst.op {
            Op::Bra => Kind::Branch,
            Op::Special(TidX | TidY | TidZ | CtaidX | CtaidY | CtaidZ) => Kind::Special,
            Op::Ssy | Op::Nop | Op::Prefetch | Op::Fence(..) => Kind::Nothing,
            Op::Ld { .. } | Op::St(_) | Op::Atom(..) | Op::LdLock(_) | Op::StUnlock(_) | Op::Special(_) => {
                Kind::Other
            }
            _ => Kind::RareLanes,
        };
        (kind, None)
    }

    /// A load or store of one, two or four whole words.
    fn words(&mut self, kernel: &Kernel, inst: &Inst) -> Option<Words> {
        let (stores, access) = match inst.op {
            // Extended to 64 bits, it is a word and what follows from it.
            Op::Ld { access, wide } if self.loads && wide == access.ty.is_wide() => (false, access),
            Op::St(access) if self.stores => (true, access),
            _ => return None,
        };
        let reads_only = matches!(access.space, Space::Const | Space::Param);
        let elsewhere = access.space == Space::Cluster || access.space == Space::Generic && self.clusters;
        if access.ty.bytes() < 4 || !matches!(access.bytes(), 4 | 8 | 16) {
            return None;
        }
        if elsewhere || reads_only && stores {
            return None;
        }
        let Operand::Imm(offset) = inst.src[1] else { return None };
        let fixed = !matches!(inst.src[0], Operand::Reg(_));
        let base = self.constants.place(inst.src[0], &kernel.imms)?;
        let wide = access.wide_address || fixed;
        let mut moves_own = false;
        inst.for_each_def(kernel, |value| {
            if let (Value::Reg(written, width), Operand::Reg(base)) = (value, inst.src[0]) {
                moves_own |= written.0 < base.0 + 2 && base.0 < written.0 + width.words();
            }
        });
        let count = access.bytes() as usize / 4;
        let mut words = Words {
            space: access.space,
            stores,
            count,
            wide,
            offset,
            base,
            base_register: if fixed { usize::MAX / 2 } else { base.register() as usize },
            pattern: self.patterns.place((access.space, base, wide, count)),
            keeps_pattern: fixed || self.bases[base.register() as usize] && !moves_own,
            rows: [None; MAX_WORDS],
            hint: 0,
        };
        let single;
        let list: &[Operand] = match (stores, inst.dst, inst.src[2]) {
            (false, Dst::Vec(id), _) | (true, _, Operand::Vec(id)) => &kernel.vectors[id.index()],
            (false, Dst::Reg(reg), _) => {
                single = [Operand::Reg(reg)];
                &single
            }
            (false, ..) => &[],
            (_, _, operand) => {
                single = [operand];
                &single
            }
        };
        for (element, &operand) in list.iter().enumerate() {
            let row = match (stores, operand) {
                (false, Operand::Reg(_)) => self.constants.place(operand, &kernel.imms)?,
                // A part of a vector that is dropped.
                (false, _) => continue,
                (_, operand) => self.constants.place(operand, &kernel.imms)?,
            };
            let pair = [row, row.next()];
            let per_element = access.ty.bytes() as usize / 4;
            for (word, row) in pair.into_iter().take(per_element).enumerate() {
                words.rows[element * per_element + word] = Some(row);
            }
        }
        Some(words)
    }
}

/// The value that a load of a parameter or constant always finds, and whether it has 64 bits.
fn known(launch: &Launch<'_>, inst: &Inst, access: Access) -> Option<(u64, bool)> {
    let bytes = match access.space {
        Space::Param => launch.params,
        Space::Const => launch.constants,
        _ => return None,
    };
    let (Operand::Imm(base), Operand::Imm(offset)) = (inst.src[0], inst.src[1]) else { return None };
    let at = usize::try_from(u64::from(base).wrapping_add(offset as i32 as u64)).ok()?;
    let size = access.bytes() as usize;
    if access.ty.bytes() as usize != size || !at.is_multiple_of(size) {
        return None;
    }
    let found = bytes.get(at..at.checked_add(size)?)?;
    match size {
        4 => Some((u32::from_le_bytes(found.try_into().ok()?).into(), false)),
        8 => Some((u64::from_le_bytes(found.try_into().ok()?), true)),
        _ => None,
    }
}

/// By register of a function: several loads and stores take it as their base address, or as the upper half of one. What
/// is found out about the base of a single one is not worth keeping.
fn bases(kernel: &Kernel) -> Vec<bool> {
    let registers = kernel.functions.iter().map(|function| function.registers as usize).max().unwrap_or(0);
    // A base address of one word can be the last register.
    let (mut taken, mut bases) = (vec![false; registers + 2], vec![false; registers + 2]);
    for inst in &kernel.code {
        if let (Op::Ld { .. } | Op::St(_), Operand::Reg(reg)) = (inst.op, inst.src[0])
            && std::mem::replace(&mut taken[reg.index()], true)
        {
            bases[reg.index()..reg.index() + 2].fill(true);
        }
    }
    bases
}
