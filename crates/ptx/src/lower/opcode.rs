//! The words of one opcode. The handler takes those that it knows, one by one; a word that is left over is an error.
//! It may be of a newer PTX, so only the function that has it is refused.
//!
//! Compilers disagree about the order of modifiers and `ptxas` accepts any, so words are taken by name, not by
//! position. Only types keep their order (`cvt.f32.s32`).

use warploom_isa::Ty;

use super::Result;
use crate::diag::Diagnostic;
use crate::resolved::{Instruction, Operand, Word};

/// The opcode of an instruction, and a bit for each word that was taken.
pub(super) struct Opcode<'i> {
    inst: &'i Instruction,
    taken: u64,
}

/// Types and modifiers of PTX that are not modelled. Messages say so instead of calling them unknown.
const UNMODELLED: &[&str] = &[
    "b128",
    "b4x16",
    "b6x16_p32",
    "e2m1",
    "e2m1x4",
    "e2m3",
    "e2m3x4",
    "e3m2",
    "e3m2x4",
    "e4m3x4",
    "e5m2x4",
    "f32x2",
    "oob",
    "rs",
    "s2",
    "s2f6x2",
    "s8x4",
    "scaled",
    "u2",
    "u8x4",
    "ue8m0",
    "v2",
    "v4",
    "v8",
];

/// The opcode as written.
pub(super) fn name(inst: &Instruction) -> String {
    inst.opcode.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(".")
}

impl<'i> Opcode<'i> {
    pub(super) fn new(inst: &'i Instruction) -> Self {
        Opcode { inst, taken: 1 }
    }

    pub(super) fn mnemonic(&self) -> &'i str {
        &self.inst.opcode[0].text
    }

    /// Whether the opcode has `word`, taken or not.
    pub(super) fn has_verb(&self, word: &str) -> bool {
        self.inst.opcode.iter().any(|w| w.text == word)
    }

    pub(super) fn name(&self) -> String {
        name(self.inst)
    }

    fn left(&self) -> impl Iterator<Item = (usize, &'i Word)> + use<'i> {
        let taken = self.taken;
        self.inst.opcode.iter().enumerate().filter(move |(i, _)| *i >= 64 || taken & (1 << i) == 0)
    }

    /// The words that are not taken yet.
    pub(super) fn words_left(&self) -> impl Iterator<Item = &'i str> + use<'i> {
        self.left().map(|(_, word)| word.text.as_str())
    }

    fn mark(&mut self, index: usize) {
        self.taken |= 1u64.checked_shl(index as u32).unwrap_or(0);
    }

    /// Takes `word`, if the opcode has it.
    pub(super) fn has(&mut self, word: &str) -> bool {
        self.pick(&[(word, ())]).is_some()
    }

    /// Takes the first word that is one of the choices.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[(&str, T)]) -> Option<T> {
        let (index, value) = self.left().find_map(|(i, w)| {
            choices.iter().find(|(name, _)| *name == w.text).map(|(_, value)| (i, *value))
        })?;
        self.mark(index);
        Some(value)
    }

    /// Whether `word` is left, without taking it.
    pub(super) fn peek(&self, word: &str) -> bool {
        self.left().any(|(_, w)| w.text == word)
    }

    /// Whether none of the choices is left.
    pub(super) fn peek_none<T>(&self, choices: &[(&str, T)]) -> bool {
        !choices.iter().any(|(word, _)| self.peek(word))
    }

    /// Takes the first word that `read` understands.
    pub(super) fn take_map<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (index, value) = self.left().find_map(|(i, w)| read(&w.text).map(|value| (i, value)))?;
        self.mark(index);
        Some(value)
    }

    /// Whether `first` comes before `second`, taken or not.
    pub(super) fn is_before(&self, first: &str, second: &str) -> bool {
        let at = |word: &str| self.inst.opcode.iter().position(|w| w.text == word);
        at(first) < at(second)
    }

    /// As [`Self::pick`], but it is an error if none of the choices is left.
    pub(super) fn need<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T> {
        self.pick(choices).ok_or_else(|| {
            let words: Vec<_> = choices.iter().map(|(name, _)| format!("`.{name}`")).collect();
            let list = match words.as_slice() {
                [one] => one.clone(),
                [init @ .., last] => format!("{} or {last}", init.join(", ")),
                [] => String::new(),
            };
            self.unmodelled().unwrap_or_else(|| {
                // Without a word left, none can be of a newer PTX.
                let not_modelled = self.left().next().is_some();
                Diagnostic { not_modelled, ..self.error(format!("`{}` needs {list}", self.name())) }
            })
        })
    }

    /// Takes every word that `known` accepts.
    pub(super) fn ignore(&mut self, known: impl Fn(&str) -> bool) {
        let indices: Vec<_> = self.left().filter(|(_, w)| known(&w.text)).map(|(i, _)| i).collect();
        for index in indices {
            self.mark(index);
        }
    }

    /// The first type among the words left, without taking it.
    pub(super) fn peek_type(&self) -> Option<Ty> {
        self.left().find_map(|(_, w)| Ty::named(&w.text))
    }

    /// Takes the first type left, which must be one of those allowed.
    pub(super) fn ty(&mut self, allowed: &[Ty]) -> Result<Ty> {
        match self.left().find_map(|(i, w)| Ty::named(&w.text).map(|ty| (i, w, ty))) {
            Some((index, _, ty)) if allowed.contains(&ty) => {
                self.mark(index);
                Ok(ty)
            }
            Some((_, word, _)) => Err(self.unmodelled().unwrap_or_else(|| self.not_a_type(word, allowed))),
            None => Err(match (self.unmodelled(), self.left().last()) {
                (Some(error), _) => error,
                (None, Some((_, word))) => self.not_a_type(word, allowed),
                (None, None) => self.error(format!("`{}` needs a type", self.name())),
            }),
        }
    }

    fn not_a_type(&self, word: &Word, allowed: &[Ty]) -> Diagnostic {
        let list: Vec<_> = allowed.iter().map(|t| format!(".{t}")).collect();
        Diagnostic::not_modelled(
            word.span,
            format!("`.{}` is not a type of `{}`", word.text, self.mnemonic()),
        )
        .help(format!("it takes {}", list.join(" ")))
    }

    /// An error about the first word left that PTX has but the model does not.
    fn unmodelled(&self) -> Option<Diagnostic> {
        self.left().find_map(|(_, word)| {
            let text = word.text.as_str();
            let message = if UNMODELLED.contains(&text) {
                format!("`.{text}` of `{}` is not modelled", self.mnemonic())
            } else {
                return None;
            };
            Some(Diagnostic::not_modelled(word.span, message))
        })
    }

    /// Refuses words that are left over.
    pub(super) fn leftover(&self) -> Result {
        let Some((_, word)) = self.left().next() else { return Ok(()) };
        Err(self.unmodelled().unwrap_or_else(|| {
            let message =
                format!("`.{}` is not a modifier of `{}` that is modelled", word.text, self.mnemonic());
            Diagnostic::not_modelled(word.span, message)
        }))
    }

    /// The operands, if no modifier is left over and their number is `N`.
    pub(super) fn operands<const N: usize>(&self) -> Result<&'i [Operand; N]> {
        self.leftover()?;
        self.inst.operands.as_slice().try_into().map_err(|_| self.wrong_count(&N.to_string(), N))
    }

    /// As [`Self::operands`], with a range of counts.
    pub(super) fn operands_between(&self, least: usize, most: usize) -> Result<&'i [Operand]> {
        self.leftover()?;
        let count = self.inst.operands.len();
        if (least..=most).contains(&count) {
            Ok(&self.inst.operands)
        } else {
            let takes = if least == most { most.to_string() } else { format!("{least} to {most}") };
            Err(self.wrong_count(&takes, most))
        }
    }

    fn wrong_count(&self, takes: &str, last: usize) -> Diagnostic {
        let have = self.inst.operands.len();
        let plural = if last == 1 { "" } else { "s" };
        let here = if have == 1 { "there is 1".into() } else { format!("there are {have}") };
        self.not_modelled(format!("`{}` takes {takes} operand{plural}, {here}", self.name()))
    }

    /// An error about an instruction of PTX that the model does not have.
    pub(super) fn not_modelled(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::not_modelled(self.inst.span, message)
    }

    /// An error about the instruction as a whole.
    pub(super) fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.inst.span, message)
    }
}
