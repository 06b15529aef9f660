//! A kernel's instructions as straight runs execute them: each is decoded when a run first comes to it.

use warploom_isa::{Dst, Inst, Kernel, Op, Operand, Pc, Space};

use crate::lanes::frequent::{Constants, Decoded, Frequent, Row};
use crate::launch::Launch;
use crate::straight::words::{MAX_WORDS, Words};

/// How an instruction is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Not decoded yet.
    New,
    /// As [`Step::decoded`].
    Lanes,
    /// Perhaps a lane operation that is not among the frequent ones.
    RareLanes,
    /// To one place.
    Branch,
    /// As [`Step::words`].
    Load,
    Store,
    /// No effect.
    Nothing,
    /// Not in a straight run.
    Other,
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) kind: Kind,
    pub(super) decoded: Decoded,
    pub(super) words: Words,
}

/// The instructions of a kernel by pc.
pub(crate) struct Program<const N: usize> {
    pub(super) steps: Vec<Step>,
    pub(super) constants: Constants<N>,
    /// Loads, and stores, can be made in runs.
    loads: bool,
    stores: bool,
    /// Generic addresses can be those of other CTAs.
    clusters: bool,
}

impl<const N: usize> Program<N> {
    /// Nothing is decoded yet. With `notes_stores`, somebody wants to know of each store.
    pub(crate) fn new(launch: &Launch<'_>, notes_stores: bool) -> Self {
        let new = Step {
            kind: Kind::New,
            decoded: Decoded { op: Frequent::Mov32, sources: [Row::default(); 3] },
            words: Words::default(),
        };
        let checked = launch.check_uninitialised;
        Program {
            steps: vec![new; launch.kernel.code.len()],
            constants: Constants::new(),
            loads: !checked,
            stores: !checked && !notes_stores,
            clusters: launch.clusters,
        }
    }

    /// Whether a run that begins here executes anything, as far as is known.
    #[inline(always)]
    pub(crate) fn begins(&self, pc: Pc) -> bool {
        self.steps[pc.index()].kind != Kind::Other
    }

    #[cold]
    #[inline(never)]
    pub(super) fn decode(&mut self, kernel: &Kernel, pc: Pc) {
        let inst = &kernel.code[pc.index()];
        // Global addresses are generic ones already.
        let op = match inst.op {
            Op::ToGeneric(Space::Global, ty) | Op::FromGeneric(Space::Global, ty) => Op::Mov(ty),
            op => op,
        };
        let decoded = Decoded::of(&Inst { op, ..*inst }, &mut self.constants, &kernel.imms);
        let words = self.words(kernel, inst);
        let step = &mut self.steps[pc.index()];
        step.kind = match (op, decoded, words) {
            (_, Some(decoded), _) => {
                step.decoded = decoded;
                Kind::Lanes
            }
            (_, _, Some((kind, words))) => {
                step.words = words;
                kind
            }
            (Op::Bra, ..) => Kind::Branch,
            (Op::Ssy | Op::Nop | Op::Prefetch | Op::Fence(..), ..) => Kind::Nothing,
            (Op::Ld { .. } | Op::St(_) | Op::Atom(..) | Op::LdLock(_) | Op::StUnlock(_), ..) => Kind::Other,
            _ => Kind::RareLanes,
        };
    }

    /// A load or store of up to four whole words.
    fn words(&mut self, kernel: &Kernel, inst: &Inst) -> Option<(Kind, Words)> {
        let (kind, access) = match inst.op {
            // Extended to 64 bits, it is a word and what follows from it.
            Op::Ld { access, wide } if self.loads && wide == access.ty.is_wide() => (Kind::Load, access),
            Op::St(access) if self.stores => (Kind::Store, access),
            _ => return None,
        };
        let reads_only = matches!(access.space, Space::Const | Space::Param);
        let elsewhere = access.space == Space::Cluster || access.space == Space::Generic && self.clusters;
        if access.ty.bytes() < 4 || access.bytes() as usize > 4 * MAX_WORDS {
            return None;
        }
        if elsewhere || reads_only && kind == Kind::Store {
            return None;
        }
        let Operand::Imm(offset) = inst.src[1] else { return None };
        let fixed = !matches!(inst.src[0], Operand::Reg(_));
        let base = self.constants.place(inst.src[0], &kernel.imms)?;
        let mut words = Words {
            space: access.space,
            count: access.bytes() as usize / 4,
            wide: access.wide_address || fixed,
            offset,
            base,
            rows: [None; MAX_WORDS],
            hint: 0,
        };
        let single;
        let list: &[Operand] = match (kind, inst.dst, inst.src[2]) {
            (Kind::Load, Dst::Vec(id), _) | (Kind::Store, _, Operand::Vec(id)) => &kernel.vectors[id.index()],
            (Kind::Load, Dst::Reg(reg), _) => {
                single = [Operand::Reg(reg)];
                &single
            }
            (Kind::Load, ..) => &[],
            (_, _, operand) => {
                single = [operand];
                &single
            }
        };
        for (element, &operand) in list.iter().enumerate() {
            let row = match (kind, operand) {
                (Kind::Load, Operand::Reg(_)) => self.constants.place(operand, &kernel.imms)?,
                // A part of a vector that is dropped.
                (Kind::Load, _) => continue,
                (_, operand) => self.constants.place(operand, &kernel.imms)?,
            };
            let pair = [row, row.next()];
            let per_element = access.ty.bytes() as usize / 4;
            for (word, row) in pair.into_iter().take(per_element).enumerate() {
                words.rows[element * per_element + word] = Some(row);
            }
        }
        Some((kind, words))
    }
}
