//! Reads the notation of the catalogue.

use warploom::isa::Ty;

use crate::conform::bound::Bound;
use crate::conform::case::{Case, Input, SLOT_BYTES, Slot};
use crate::conform::operands::Domain;

/// Abbreviations for common alternatives.
const NAMED: &[(&str, &str)] = &[
    ("<int>", "{u16,s16,u32,s32,u64,s64}"),
    ("<bits>", "{b16,b32,b64}"),
    ("<rnd>", "{.rn,.rz,.rm,.rp}"),
    ("<cmp>", "{eq,ne,lt,le,gt,ge}"),
    ("<cmpu>", "{eq,ne,lt,le,gt,ge,lo,ls,hi,hs}"),
    ("<cmpf>", "{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}"),
    ("<bool>", "{.and,.or,.xor}"),
    ("<lut>", "{0x96,0xe8,0xca,0x80,0xfe,0x1b,0x00,0xff,0x6a}"),
];

/// A row with some or all braces replaced.
pub(crate) struct Row {
    left: String,
    /// What the braces so far were replaced with.
    choices: Vec<String>,
    text: Option<String>,
}

/// All alternatives of a row.
pub(crate) fn expand(row: &str) -> Vec<Row> {
    let (left, text) = match row.split_once(" : ") {
        Some((left, text)) => (left, Some(text.to_string())),
        None => (row, None),
    };
    let left = NAMED.iter().fold(left.to_string(), |left, (name, all)| left.replace(name, all));
    let mut rows = vec![Row { left, choices: Vec::new(), text }];
    while rows.iter().any(|r| r.left.contains('{')) {
        rows = rows.into_iter().flat_map(Row::choose).collect();
    }
    rows
}

impl Row {
    /// One row for each alternative of the first braces.
    fn choose(self) -> Vec<Row> {
        let Some((before, rest)) = self.left.split_once('{') else { return vec![self] };
        let Some((inside, after)) = rest.split_once('}') else { return vec![self] };
        let one = |choice: &str| {
            let mut choices = self.choices.clone();
            choices.push(choice.to_string());
            Row { left: format!("{before}{choice}{after}"), choices, text: self.text.clone() }
        };
        inside.split(',').map(one).collect()
    }

    pub(crate) fn case(&self, tuples: usize) -> Case {
        let mut words = self.left.split_whitespace();
        let opcode = words.next().unwrap_or_default();
        let types: Vec<Ty> = opcode.split(['.', '+']).filter_map(Ty::named).collect();
        let mut case = Case {
            name: opcode.to_string(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            bound: Bound::Exact,
            tuples,
            body: String::new(),
        };
        let mut results = String::new();
        let mut sources: Vec<String> = Vec::new();
        let mut is_source = false;
        for word in words {
            if word == "=" {
                is_source = true;
            } else if let Some(bound) = word.strip_prefix('~') {
                case.bound = Bound::parse(bound);
            } else if let Some(constant) = word.strip_prefix('#') {
                sources.push(constant.to_string());
                if constant != FULL_MASK {
                    case.name = format!("{} {constant}", case.name);
                }
            } else if is_source {
                let (slot, domain) = word.split_once(':').unwrap_or((word, ""));
                sources.push(format!("%a{}", case.inputs.len()));
                case.inputs.push(Input { slot: self::slot(slot, &types), domain: Domain::parse(domain) });
            } else {
                for (i, part) in word.split('|').enumerate() {
                    results.push_str(if i > 0 {
                        "|"
                    } else if results.is_empty() {
                        ""
                    } else {
                        ", "
                    });
                    results.push_str(&format!("%d{}", case.outputs.len()));
                    case.outputs.push(slot(part, &types));
                }
            }
        }
        let memory = case.outputs.len() * SLOT_BYTES;
        case.body = match &self.text {
            Some(text) => self.fill(text, &types, memory),
            None => {
                let comma = if sources.is_empty() { "" } else { ", " };
                format!("{opcode} {results}{comma}{}", sources.join(", "))
            }
        };
        case
    }

    /// Replaces `$1` by the choice of the first braces, `$b` by the untyped register class of the first type, and
    /// `$m` by the thread's own memory, which is behind its results.
    fn fill(&self, text: &str, types: &[Ty], memory: usize) -> String {
        let mut text = text.to_string();
        for (i, choice) in self.choices.iter().enumerate() {
            text = text.replace(&format!("${}", i + 1), choice);
        }
        if let Some(ty) = types.first() {
            text = text.replace("$b", Slot::Value(*ty).register());
        }
        let memory = if text.contains(".shared") { "%shared".to_string() } else { format!("%out+{memory}") };
        text.replace("$m", &memory)
    }
}

const FULL_MASK: &str = "0xffffffff";

/// `T` and `U` are the opcode's first and second type, `W` has twice the width of `T`, `p` is a predicate.
fn slot(word: &str, types: &[Ty]) -> Slot {
    let at = |i: usize| types.get(i).copied().unwrap_or(Ty::B32);
    Slot::Value(match word {
        "p" => return Slot::Pred,
        "T" => at(0),
        "U" => at(1),
        "W" => match at(0) {
            Ty::U16 => Ty::U32,
            Ty::S16 => Ty::S32,
            Ty::U32 => Ty::U64,
            _ => Ty::S64,
        },
        name => Ty::named(name).unwrap_or(Ty::B32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::catalogue::GROUPS;

    /// A typing error in a row must not become another case.
    #[test]
    fn every_word_is_known() {
        for row in GROUPS.iter().flat_map(|g| g.rows).flat_map(|r| expand(r)) {
            let mut words = row.left.split_whitespace();
            let opcode = words.next().unwrap();
            let types = opcode.split(['.', '+']).filter_map(Ty::named).count();
            for word in words.filter(|w| *w != "=" && !w.starts_with('#')) {
                if let Some(bound) = word.strip_prefix('~') {
                    assert_ne!(Bound::parse(bound), Bound::Exact, "{}", row.left);
                    continue;
                }
                let (slots, domain) = word.split_once(':').unwrap_or((word, ""));
                assert!(domain.is_empty() || Domain::parse(domain) != Domain::Any, "{}", row.left);
                for slot in slots.split('|') {
                    let known = match slot {
                        "p" => true,
                        "T" | "W" => types > 0,
                        "U" => types > 1,
                        name => Ty::named(name).is_some(),
                    };
                    assert!(known, "`{slot}` in `{}`", row.left);
                }
            }
        }
    }

    #[test]
    fn braces_multiply() {
        let names = |row| expand(row).iter().map(|r| r.case(64).body).collect::<Vec<_>>();
        assert_eq!(names("add{,.sat}.s32 T = T T"), ["add.s32 %d0, %a0, %a1", "add.sat.s32 %d0, %a0, %a1"]);
        assert_eq!(
            names("setp.{lt,ge}.and.f32 p|p = T T p"),
            ["setp.lt.and.f32 %d0|%d1, %a0, %a1, %a2", "setp.ge.and.f32 %d0|%d1, %a0, %a1, %a2"]
        );
        assert_eq!(
            names("red.{global,shared}.add.u32 T = T T : red.$1.add.u32 [$m], %a1"),
            ["red.global.add.u32 [%out+8], %a1", "red.shared.add.u32 [%shared], %a1"]
        );
    }
}
