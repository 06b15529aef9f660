//! One instruction to compare: its operands, its results, and the kernel that executes it.

use std::fmt::Write as _;

use warploom::isa::Ty;

use super::bound::Bound;
use super::catalogue::row;
use super::operands::Domain;

/// Instructions that share a module and a file of vectors.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Also the name of the file.
    pub(crate) name: &'static str,
    /// The lowest PTX version that has all of the instructions.
    pub(crate) version: &'static str,
    /// The lowest target that has all of them.
    pub(crate) target: &'static str,
    /// Operand tuples per case.
    pub(crate) tuples: usize,
    /// The instructions in the notation of `catalogue/`.
    pub(crate) rows: &'static [&'static str],
}

/// An operand or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A value in a register as wide as its type; 8-bit types have registers of 32 bits.
    Value(Ty),
    Pred,
}

impl Slot {
    /// Bytes of the register; 1 for a predicate.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Slot::Value(ty) => ty.bytes().max(2) as usize * if ty.bytes() == 1 { 2 } else { 1 },
            Slot::Pred => 1,
        }
    }

    /// The untyped register class: `b16`, `b32`, `b64`, `pred`.
    pub(crate) fn register(self) -> &'static str {
        match (self, self.bytes()) {
            (Slot::Pred, _) => "pred",
            (_, 2) => "b16",
            (_, 8) => "b64",
            _ => "b32",
        }
    }
}

/// An operand with the values that it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Input {
    pub slot: Slot,
    pub(crate) domain: Domain,
}

/// One instruction, or a short chain of them, with fixed operands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    /// The opcode, with a suffix where it is not unique.
    pub name: String,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Slot>,
    pub bound: Bound,
    /// Count of operand tuples.
    pub tuples: usize,
    /// The instructions, over operands `%a0`, `%a1` … and results `%d0`, `%d1` …
    pub(crate) body: String,
}

/// Bytes per operand or result in the device's buffers.
pub(crate) const SLOT_BYTES: usize = 8;

/// Threads per CTA: whole warps on every chip, and a warp group.
pub(crate) const BLOCK: usize = 128;

impl Group {
    /// Also that of its file.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The cases, in the order of the rows.
    pub(crate) fn cases(&self) -> Vec<Case> {
        self.rows.iter().flat_map(|r| row::expand(r)).map(|r| r.case(self.tuples)).collect()
    }

    /// One module with a kernel per case.
    pub(crate) fn ptx(&self, cases: &[Case]) -> String {
        let mut text = self.header();
        for case in cases {
            case.write_entry(&mut text);
        }
        text
    }

    fn header(&self) -> String {
        format!(".version {}\n.target {}\n.address_size 64\n", self.version, self.target)
    }
}

impl Case {
    /// The name of the kernel.
    pub(crate) fn entry(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        self.name.chars().map(plain).collect()
    }

    /// Bytes per operand tuple in the input buffer.
    pub(crate) fn input_stride(&self) -> usize {
        self.inputs.len().max(1) * SLOT_BYTES
    }

    /// Bytes per tuple in the output buffer. The slot after the results is memory for atomics.
    pub(crate) fn output_stride(&self) -> usize {
        (self.outputs.len() + 1) * SLOT_BYTES
    }

    /// Bytes of all results.
    pub(crate) fn output_bytes(&self) -> usize {
        self.tuples * self.outputs.iter().map(|s| s.bytes()).sum::<usize>()
    }

    fn write_entry(&self, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = self.try_write_entry(text);
    }

    fn try_write_entry(&self, out: &mut String) -> std::fmt::Result {
        let entry = self.entry();
        let (input_stride, output_stride) = (self.input_stride(), self.output_stride());
        let shared = self.body.contains("%shared");
        writeln!(out, "\n// {}", self.name)?;
        writeln!(
            out,
            ".visible .entry {entry}(.param .u64 {entry}_in, .param .u64 {entry}_out, .param .u32 {entry}_n)\n{{"
        )?;
        writeln!(out, "    .reg .pred %done;\n    .reg .b32 %i, %n, %t;\n    .reg .b64 %in, %out;")?;
        for (i, input) in self.inputs.iter().enumerate() {
            writeln!(out, "    .reg .{} %a{i};", input.slot.register())?;
        }
        for (i, output) in self.outputs.iter().enumerate() {
            writeln!(out, "    .reg .{} %d{i};", output.register())?;
        }
        if shared {
            writeln!(
                out,
                "    .reg .b32 %shared;\n    .shared .align 128 .b8 {entry}_mem[{}];",
                BLOCK * SLOT_BYTES
            )?;
        }
        writeln!(out, "    mov.u32 %i, %ctaid.x;\n    mov.u32 %n, %ntid.x;\n    mov.u32 %t, %tid.x;")?;
        writeln!(out, "    mad.lo.u32 %i, %i, %n, %t;")?;
        writeln!(out, "    ld.param.u32 %n, [{entry}_n];\n    setp.ge.u32 %done, %i, %n;\n    @%done ret;")?;
        for (register, stride) in [("in", input_stride), ("out", output_stride)] {
            writeln!(out, "    ld.param.u64 %{register}, [{entry}_{register}];")?;
            writeln!(out, "    cvta.to.global.u64 %{register}, %{register};")?;
            writeln!(out, "    mad.wide.u32 %{register}, %i, {stride}, %{register};")?;
        }
        if shared {
            writeln!(
                out,
                "    mov.u32 %shared, {entry}_mem;\n    mad.lo.u32 %shared, %t, {SLOT_BYTES}, %shared;"
            )?;
        }
        for (i, input) in self.inputs.iter().enumerate() {
            let at = i * SLOT_BYTES;
            match input.slot {
                Slot::Pred => {
                    writeln!(out, "    ld.global.b32 %t, [%in+{at}];\n    setp.ne.u32 %a{i}, %t, 0;")?
                }
                slot => writeln!(out, "    ld.global.{} %a{i}, [%in+{at}];", slot.register())?,
            }
        }
        for line in self.body.split(';').map(str::trim).filter(|l| !l.is_empty()) {
            writeln!(out, "    {line};")?;
        }
        for (i, output) in self.outputs.iter().enumerate() {
            let at = i * SLOT_BYTES;
            match output {
                Slot::Pred => {
                    writeln!(out, "    selp.b32 %t, 1, 0, %d{i};\n    st.global.b32 [%out+{at}], %t;")?
                }
                slot => writeln!(out, "    st.global.{} [%out+{at}], %d{i};", slot.register())?,
            }
        }
        writeln!(out, "    ret;\n}}")
    }
}
