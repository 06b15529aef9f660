//! The nested scopes of a body, and suggestions for unknown names.

use std::collections::HashMap;

use super::{Global, Globals};
use crate::resolved::{FrameId, LabelId, ProtoId, RegId, RegTy, Register, TableId};
use warploom_isa::VarId;

/// The meaning of a name inside a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Local {
    Register(RegId),
    /// A vector register: its first element and how many there are.
    Vector(RegId, u8),
    Frame(FrameId),
    /// A kernel's parameter.
    Param(u32),
    Variable(VarId),
    Label(LabelId),
    Table(TableId),
    Prototype(ProtoId),
}

/// `{ … }`
#[derive(Default)]
pub(super) struct Scope<'t> {
    names: HashMap<&'t str, Local>,
    /// `.reg .b32 %r<4>` by prefix. The registers themselves are created on first use: a text may declare billions.
    ranges: HashMap<&'t str, Range>,
}

/// A numbered family of registers, such as `%r<4>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub count: u32,
    pub ty: RegTy,
    /// Elements of each.
    pub lanes: u8,
}

impl<'t> Scope<'t> {
    /// Declares a name; false if the scope has it already.
    pub(super) fn declare(&mut self, name: &'t str, meaning: Local) -> bool {
        if self.range_of(name).is_some() {
            return false;
        }
        self.names.insert(name, meaning).is_none()
    }

    /// Declares a family; false if the scope has it already.
    pub(super) fn declare_range(&mut self, prefix: &'t str, range: Range) -> bool {
        self.ranges.insert(prefix, range).is_none()
    }

    /// The meaning of `name` in this scope. Creates the register if it is the first use of a family's member.
    pub(super) fn get(&mut self, name: &'t str, registers: &mut Vec<Register>) -> Option<Local> {
        if let Some(&found) = self.names.get(name) {
            return Some(found);
        }
        let range = self.range_of(name)?;
        let register = make(registers, name, range.ty, range.lanes);
        self.names.insert(name, register);
        Some(register)
    }

    /// The meaning of `name` in this scope, without looking at families.
    pub(super) fn get_named(&self, name: &str) -> Option<Local> {
        self.names.get(name).copied()
    }

    /// Whether the scope declares `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains_key(name) || self.range_of(name).is_some()
    }

    /// The family that `name` belongs to. A prefix may itself end in digits, so every split is tried.
    fn range_of(&self, name: &str) -> Option<Range> {
        splits(name)
            .find_map(|(prefix, number)| self.ranges.get(prefix).filter(|r| number < r.count).copied())
    }

    /// The family that has the prefix of `name` but not its number.
    pub(super) fn overrun(&self, name: &str) -> Option<(String, Range)> {
        splits(name).find_map(|(prefix, _)| self.ranges.get(prefix).map(|r| (prefix.to_string(), *r)))
    }

    /// Offers the names of this scope that might be meant by `name`.
    fn candidates(&self, name: &str, best: &mut Closest) {
        self.names.keys().for_each(|known| best.offer(known));
        if let Some((_, number)) = splits(name).last() {
            for (prefix, range) in &self.ranges {
                if number < range.count {
                    best.offer(&format!("{prefix}{number}"));
                }
            }
        }
    }
}

/// The names of a vector's elements; textures and colours have letters of their own.
pub(super) const ELEMENTS: [[&str; 4]; 2] = [["x", "y", "z", "w"], ["r", "g", "b", "a"]];

/// Makes a register, or one for each element of a vector.
pub(super) fn make(registers: &mut Vec<Register>, name: &str, ty: RegTy, lanes: u8) -> Local {
    let first = RegId(registers.len() as u32);
    if lanes == 1 {
        registers.push(Register { name: name.to_string(), ty });
        return Local::Register(first);
    }
    for element in &ELEMENTS[0][..lanes.into()] {
        registers.push(Register { name: format!("{name}.{element}"), ty });
    }
    Local::Vector(first, lanes)
}

/// `%r12` as (`%r1`, 2) and (`%r`, 12); numbers have no leading zeros.
fn splits(name: &str) -> impl Iterator<Item = (&str, u32)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count().min(10);
    (1..=digits).filter_map(move |n| {
        let (prefix, number) = name.split_at(name.len() - n);
        if number.len() > 1 && number.starts_with('0') {
            return None;
        }
        Some((prefix, number.parse().ok()?))
    })
}

impl<'t> Globals<'t, '_> {
    /// "did you mean …?" for an unknown name.
    pub(super) fn hint<'s>(
        &self,
        name: &str,
        scopes: impl IntoIterator<Item = &'s Scope<'t>>,
    ) -> Option<String>
    where
        't: 's,
    {
        // Each search looks at every known name, so only the first errors get one.
        if self.errors.len() >= 5 {
            return None;
        }
        let mut best = Closest::new(name);
        scopes.into_iter().for_each(|scope| scope.candidates(name, &mut best));
        self.names.keys().for_each(|known| best.offer(known));
        best.found.map(|(_, known)| format!("did you mean `{known}`?"))
    }

    pub(super) fn global(&self, name: &str) -> Option<Global> {
        self.names.get(name).copied()
    }
}

/// The known name most similar to an unknown one; of equally similar names, the first in alphabetical order.
struct Closest<'n> {
    name: &'n str,
    limit: usize,
    found: Option<(usize, String)>,
}

impl<'n> Closest<'n> {
    fn new(name: &'n str) -> Self {
        // A short name may differ in one letter at most, or too many names would be similar.
        let limit = match name.len() {
            ..=2 => 0,
            3..=4 => 1,
            _ => 2,
        };
        Closest { name, limit, found: None }
    }

    fn offer(&mut self, known: &str) {
        if known.len().abs_diff(self.name.len()) > self.limit || known.len() > 200 {
            return;
        }
        let distance = edit_distance(self.name.as_bytes(), known.as_bytes(), self.limit);
        if distance > self.limit || distance == 0 {
            return;
        }
        let better = self.found.as_ref().is_none_or(|(d, n)| (distance, known) < (*d, n.as_str()));
        if better {
            self.found = Some((distance, known.to_string()));
        }
    }
}

/// Edit distance between `a` and `b`. If it exceeds `limit`, any larger number is returned.
fn edit_distance(a: &[u8], b: &[u8], limit: usize) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
        if row.iter().all(|&d| d > limit) {
            return limit + 1;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_of_a_number() {
        let all = |s| splits(s).collect::<Vec<_>>();
        assert_eq!(all("%r12"), [("%r1", 2), ("%r", 12)]);
        assert_eq!(all("%r105"), [("%r10", 5), ("%r", 105)]);
        assert_eq!(all("x"), []);
        assert_eq!(all("%r0"), [("%r", 0)]);
    }

    #[test]
    fn distances() {
        assert_eq!(edit_distance(b"%r12", b"%r2", 2), 1);
        assert_eq!(edit_distance(b"loop", b"pool", 2), 2);
        assert_eq!(edit_distance(b"abcdef", b"uvwxyz", 2), 3);
    }

    #[test]
    fn families_make_registers_on_demand() {
        let mut registers = Vec::new();
        let mut scope = Scope::default();
        assert!(scope.declare_range("%r", Range { count: u32::MAX, ty: RegTy::Pred, lanes: 1 }));
        assert_eq!(scope.get("%r4000000000", &mut registers), Some(Local::Register(RegId(0))));
        assert_eq!(scope.get("%r4000000000", &mut registers), Some(Local::Register(RegId(0))));
        assert_eq!(scope.get("%r4294967295", &mut registers), None);
        assert!(!scope.declare("%r7", Local::Param(0)));
        assert_eq!(registers.len(), 1);
    }
}
