//! Addresses of memory instructions: state space, base and offset. Start at [`Builder::address`].
//!
//! Shared, local, constant and parameter addresses fit in 32 bits, so their base register may have either width.
//! Global and generic bases are converted to the module's address width.

use isa::{Clamp, Cvt, Op, Operand, Round, Space, Symbol, Ty, Width};
use warploom_isa as isa;

use super::opcode::Opcode;
use super::operand::address_type;
use super::{Builder, Result, Slot};
use crate::diag::Diagnostic;
use crate::resolved::{self, Base, FrameKind, OperandKind};

/// A state space as the text names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// One of the machine's spaces; generic if none is named.
    In(Space),
    /// `.shared::cluster`: shared memory of any CTA of the cluster.
    Cluster,
    /// `.param`: of the kernel or of a device function, whichever the address belongs to.
    Param,
    /// `.param::entry`
    KernelParam,
    /// `.param::func`
    FunctionParam,
}

/// An address split into base and offset.
#[derive(Clone, Copy)]
pub(super) struct Address {
    pub(super) space: Space,
    pub(super) base: Operand,
    /// Always an `Imm`.
    pub(super) offset: Operand,
    /// Width of the base.
    bits: u32,
}

const PLACES: &[(&str, Place)] = &[
    ("global", Place::In(Space::Global)),
    ("shared", Place::In(Space::Shared)),
    ("shared::cta", Place::In(Space::Shared)),
    ("shared::cluster", Place::Cluster),
    ("local", Place::In(Space::Local)),
    ("const", Place::In(Space::Const)),
    ("param", Place::Param),
    ("param::entry", Place::KernelParam),
    ("param::func", Place::FunctionParam),
];

/// Takes the state space from the opcode, if one is named.
pub(super) fn place(oc: &mut Opcode<'_>) -> Option<Place> {
    oc.pick(PLACES)
}

/// Takes the state space from the opcode; generic if none is named.
pub(super) fn place_or_generic(oc: &mut Opcode<'_>) -> Place {
    place(oc).unwrap_or(Place::In(Space::Generic))
}

impl Address {
    pub(super) fn is_wide(self) -> bool {
        self.bits == 64
    }
}

impl Builder<'_> {
    /// The machine's space for a place, if the address itself does not determine it. Parameters of device functions
    /// are local memory.
    pub(super) fn space_of(&self, place: Place) -> Space {
        match place {
            Place::In(space) => space,
            Place::Cluster => Space::Shared,
            Place::KernelParam => Space::Param,
            Place::FunctionParam => Space::Local,
            Place::Param if self.function.is_kernel => Space::Param,
            Place::Param => Space::Local,
        }
    }

    /// The address of a memory operand `[…]`.
    pub(super) fn address(&mut self, op: &resolved::Operand, place: Place) -> Result<Address> {
        let OperandKind::Address(base, offset) = op.kind else {
            return Err(self.at(op, format!("`{}` takes an address in brackets here", self.name())));
        };
        let bits = u32::from(self.cx.module.address_bits);
        if place == Place::Cluster {
            return self.cluster_address(op);
        }
        match base {
            Base::Reg(reg) => self.register_address(op, reg, offset, self.space_of(place)),
            Base::Var(id) => {
                let variable = &self.cx.module.variables[id.index()];
                let generic = place == Place::In(Space::Generic);
                if !generic && place != Place::In(variable.space) {
                    return Err(self.wrong_space(op, &variable.name, variable.space.name()));
                }
                let space = self.space_of(place);
                let (inner, outer) = split(offset);
                let base = self.symbol(Symbol::Variable(id), inner, generic);
                Ok(Address { space, base, offset: outer, bits })
            }
            Base::Frame(id) => self.frame_operand(op, id, offset, place),
            Base::Param(index) => {
                let at = self.displaced(op, self.layout.params[index as usize], offset)?;
                match place {
                    Place::Param | Place::KernelParam | Place::FunctionParam => Ok(Address {
                        space: Space::Param,
                        base: Operand::Imm(at as u32),
                        offset: Operand::Imm(0),
                        bits,
                    }),
                    _ => Err(self.wrong_space(op, &self.function.params[index as usize].name, "param")),
                }
            }
            Base::Absolute => {
                let base = self.imm64(offset as u64);
                Ok(Address { space: self.space_of(place), base, offset: Operand::Imm(0), bits })
            }
        }
    }

    /// An address of `.shared::cluster` becomes a generic one, which says whose shared memory it is in.
    fn cluster_address(&mut self, op: &resolved::Operand) -> Result<Address> {
        let inside = self.address(op, Place::In(Space::Shared))?;
        let bits = u32::from(self.cx.module.address_bits);
        let at = self.whole(inside, bits);
        let base = self.value(Op::ToGeneric(Space::Shared, address_type(bits)), address_width(bits), &[at]);
        Ok(Address { space: Space::Generic, base, offset: Operand::Imm(0), bits })
    }

    fn frame_operand(
        &mut self,
        op: &resolved::Operand,
        id: resolved::FrameId,
        offset: i64,
        place: Place,
    ) -> Result<Address> {
        let bits = u32::from(self.cx.module.address_bits);
        if self.is_variadic(id) && matches!(place, Place::Param | Place::FunctionParam) {
            self.displaced(op, 0, offset)?;
            let base = self.variadic_address(id, offset, bits);
            return Ok(Address { space: Space::Local, base, offset: Operand::Imm(0), bits });
        }
        let var = &self.body.frame[id.0 as usize];
        let at = self.displaced(op, self.frame[id.0 as usize], offset)?;
        let is_local = var.kind == FrameKind::Local;
        match place {
            Place::In(Space::Generic) => {
                let local = self.frame_address(at, bits);
                let base = self.value(
                    Op::ToGeneric(Space::Local, address_type(bits)),
                    address_width(bits),
                    &[local],
                );
                Ok(Address { space: Space::Generic, base, offset: Operand::Imm(0), bits })
            }
            Place::In(Space::Local) | Place::Param | Place::FunctionParam
                if is_local == (place == Place::In(Space::Local)) =>
            {
                Ok(Address {
                    space: Space::Local,
                    base: Operand::Frame,
                    offset: Operand::Imm(at as u32),
                    bits,
                })
            }
            _ => {
                let kind = if is_local { "local" } else { "param" };
                Err(self.wrong_space(op, &var.name, kind))
            }
        }
    }

    fn wrong_space(&self, op: &resolved::Operand, name: &str, space: &str) -> Diagnostic {
        let message = format!("`{name}` is in `.{space}`, which `{}` does not access", self.name());
        self.at(op, message)
    }

    fn register_address(
        &mut self,
        op: &resolved::Operand,
        reg: resolved::RegId,
        offset: i64,
        space: Space,
    ) -> Result<Address> {
        let (base, declared) = match self.slots[reg.0 as usize] {
            Slot::Reg(reg, ty) if ty.bits() >= 32 && !matches!(ty, Ty::F32 | Ty::F64) => {
                (Operand::Reg(reg), ty)
            }
            _ => {
                let name = &self.body.registers[reg.0 as usize].name;
                let message = format!(
                    "`{name}` cannot hold an address: that takes an integer register of 32 or 64 bits"
                );
                return Err(self.at(op, message));
            }
        };
        let want = u32::from(self.cx.module.address_bits);
        let full = matches!(space, Space::Global | Space::Generic);
        let (mut base, mut bits) = (base, declared.bits());
        if full && bits < want {
            base = self.value(Op::Cvt(extend(Ty::U32, Ty::U64)), Width::Two, &[base]);
            bits = 64;
        } else if full && bits > want {
            base = self.value(Op::Unpack64(0), Width::One, &[base]);
            bits = 32;
        }
        let (inner, outer) = split(offset);
        if inner != 0 {
            base = self.add_offset(base, inner, bits);
        }
        Ok(Address { space, base, offset: outer, bits })
    }

    fn add_offset(&mut self, base: Operand, offset: i64, bits: u32) -> Operand {
        let offset = if bits == 64 { self.imm64(offset as u64) } else { Operand::Imm(offset as u32) };
        self.value(Op::IAdd(address_type(bits), Clamp::None), address_width(bits), &[base, offset])
    }

    /// An address as one value of the given width, for instructions without an offset operand.
    pub(super) fn whole(&mut self, address: Address, bits: u32) -> Operand {
        let offset = match address.offset {
            Operand::Imm(offset) => i64::from(offset as i32),
            _ => 0,
        };
        let base = match address.base {
            Operand::Imm(base) => return Operand::Imm(base.wrapping_add(offset as u32)),
            Operand::Reg(_) if address.bits < bits => {
                self.value(Op::Cvt(extend(Ty::U32, Ty::U64)), Width::Two, &[address.base])
            }
            Operand::Reg(_) if address.bits > bits => {
                self.value(Op::Unpack64(0), Width::One, &[address.base])
            }
            base => base,
        };
        if offset == 0 { base } else { self.add_offset(base, offset, bits) }
    }

    /// An address that must lie in shared memory. A generic one is converted.
    pub(super) fn shared_address(&mut self, op: &resolved::Operand, place: Option<Place>) -> Result<Address> {
        let place = match place {
            Some(Place::Cluster) => Place::In(Space::Shared),
            place => place.unwrap_or(Place::In(Space::Generic)),
        };
        let address = self.address(op, place)?;
        match address.space {
            Space::Shared => Ok(address),
            Space::Generic => {
                let bits = u32::from(self.cx.module.address_bits);
                let op = Op::FromGeneric(Space::Shared, address_type(bits));
                let base = self.value(op, address_width(bits), &[address.base]);
                Ok(Address { space: Space::Shared, base, bits, ..address })
            }
            _ => Err(self.at(op, format!("`{}` works on shared memory only", self.name()))),
        }
    }
}

/// The register width of an address.
fn address_width(bits: u32) -> Width {
    if bits == 64 { Width::Two } else { Width::One }
}

/// An exact conversion to a wider type.
pub(super) fn extend(from: Ty, to: Ty) -> Cvt {
    Cvt { to, from, round: Round::Rn, integral: false, ftz: false, clamp: Clamp::None }
}

/// Splits an offset into a part to add to the base and an immediate. An offset beyond a signed 32-bit immediate goes
/// to the base.
fn split(offset: i64) -> (i64, Operand) {
    match i32::try_from(offset) {
        Ok(small) => (0, Operand::Imm(small as u32)),
        Err(_) => (offset, Operand::Imm(0)),
    }
}
