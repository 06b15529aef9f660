//! Writes programs as PTX. Recorded results depend on the text: see [`stored`](super::stored).

use std::fmt::{self, Write as _};

use super::leaf::{
    DOUBLES, INPUT_WORDS, LOCAL_WORDS, OUTPUT_BYTES, PREDICATES, SCRATCH_AT, SINGLES, SUM_COUNT, WIDES, WORDS,
};
use super::program::{Program, Stmt};

/// One module with a kernel for each program, named by [`Program::entry`].
pub(crate) fn module(programs: &[Program]) -> String {
    let mut out = Emitter {
        text: String::from(".version 7.0\n.target sm_80\n.address_size 64\n"),
        labels: 0,
        entry: String::new(),
    };
    for program in programs {
        // Writing to a string cannot fail.
        let _ = out.program(program);
    }
    out.text
}

impl Program {
    /// The name of the kernel.
    pub(super) fn entry(&self) -> String {
        format!("program_{}", self.seed)
    }

    /// A module with this program alone.
    pub(super) fn ptx(&self) -> String {
        module(std::slice::from_ref(self))
    }
}

struct Emitter {
    text: String,
    /// Labels and loop counters used in the current function.
    labels: usize,
    entry: String,
}

const REGISTERS: &str = "    .reg .b16 %h<3>;
    .reg .b32 %t<2>;
    .reg .b64 %u<2>, %local, %generic, %input, %cells;
    .reg .pred %q<1>;
";

impl Emitter {
    fn program(&mut self, program: &Program) -> fmt::Result {
        self.entry = program.entry();
        // A function calls only later ones, so those come first in the text.
        for (number, body) in program.functions.iter().enumerate().rev() {
            self.function(number, body)?;
        }
        self.kernel(program)
    }

    fn line(&mut self, line: fmt::Arguments<'_>) -> fmt::Result {
        self.text.push_str("    ");
        self.text.write_fmt(line)?;
        self.text.push_str(";\n");
        Ok(())
    }

    /// Declares registers and the local array.
    fn begin(&mut self) -> fmt::Result {
        self.labels = 0;
        self.text.push_str(REGISTERS);
        for (class, name, count) in [("b32", "r", WORDS), ("b64", "l", WIDES), ("pred", "p", PREDICATES)] {
            self.line(format_args!(".reg .{class} %{name}<{count}>"))?;
        }
        self.line(format_args!(".reg .f32 %f<{SINGLES}>"))?;
        self.line(format_args!(".reg .f64 %g<{DOUBLES}>"))?;
        self.line(format_args!(".local .align 16 .b8 memory[{}]", LOCAL_WORDS * 4))
    }

    /// Gives all registers and the local array values that follow from `%r…` and `%l…`.
    fn initialise(&mut self) -> fmt::Result {
        self.line(format_args!("mov.u64 %local, memory"))?;
        self.line(format_args!("cvta.local.u64 %generic, %local"))?;
        for i in 0..LOCAL_WORDS / 4 {
            let names: Vec<_> = (0..4).map(|k| format!("%r{}", (4 * i + k) % WORDS)).collect();
            self.line(format_args!("st.local.v4.b32 [%local+{}], {{{}}}", 16 * i, names.join(", ")))?;
        }
        for i in 0..SINGLES {
            self.line(format_args!("shr.s32 %t0, %r{}, {}", i % WORDS, 4 * i))?;
            self.line(format_args!("cvt.rn.f32.s32 %f{i}, %t0"))?;
        }
        for i in 0..DOUBLES {
            self.line(format_args!("cvt.rn.f64.s64 %g{i}, %l{}", i % WIDES))?;
        }
        for i in 0..PREDICATES {
            self.line(format_args!("setp.lt.s32 %p{i}, %r{i}, 0"))?;
        }
        Ok(())
    }

    fn function(&mut self, number: usize, body: &[Stmt]) -> fmt::Result {
        let name = format!("{}_f{number}", self.entry);
        write!(
            self.text,
            "\n.func (.param .b32 {name}_result) {name}(.param .b32 {name}_a, .param .b32 {name}_b, "
        )?;
        writeln!(self.text, ".param .b64 {name}_c, .param .b64 {name}_input, .param .b64 {name}_cells)\n{{")?;
        self.begin()?;
        self.loop_counters(body)?;
        self.line(format_args!("ld.param.b64 %input, [{name}_input]"))?;
        self.line(format_args!("ld.param.b64 %cells, [{name}_cells]"))?;
        self.line(format_args!("ld.param.b32 %r0, [{name}_a]"))?;
        self.line(format_args!("ld.param.b32 %r1, [{name}_b]"))?;
        self.line(format_args!("ld.param.b64 %l0, [{name}_c]"))?;
        for i in 2..WORDS {
            self.line(format_args!("mad.lo.s32 %r{i}, %r{}, 69069, %r{}", i - 1, i - 2))?;
        }
        for i in 1..WIDES {
            self.line(format_args!("mad.wide.s32 %l{i}, %r{i}, %r{}, %l{}", i + 1, i - 1))?;
        }
        self.initialise()?;
        self.list(body)?;
        for i in 1..WORDS {
            self.line(format_args!("mad.lo.s32 %r0, %r0, 31, %r{i}"))?;
        }
        for i in 0..WIDES {
            self.line(format_args!("mov.b64 {{%t0, %t1}}, %l{i}"))?;
            self.line(format_args!("mad.lo.s32 %r0, %r0, %t0, %t1"))?;
        }
        self.line(format_args!("st.param.b32 [{name}_result], %r0"))?;
        self.text.push_str("    ret;\n}\n");
        Ok(())
    }

    fn kernel(&mut self, program: &Program) -> fmt::Result {
        let name = program.entry();
        let slots = program.block as usize * 8;
        write!(self.text, "\n.visible .entry {name}(.param .u64 {name}_input, .param .u64 {name}_output, ")?;
        writeln!(self.text, ".param .u64 {name}_cells)\n{{")?;
        self.begin()?;
        self.loop_counters(&program.body)?;
        self.line(format_args!(".reg .b64 %output"))?;
        self.line(format_args!(".reg .b32 %tidx, %slot, %slots, %sums"))?;
        self.line(format_args!(".shared .align 8 .b8 {name}_slots[{slots}]"))?;
        self.line(format_args!(".shared .align 8 .b8 {name}_sums[{}]", SUM_COUNT * 8))?;
        for register in ["input", "output", "cells"] {
            self.line(format_args!("ld.param.u64 %{register}, [{name}_{register}]"))?;
            self.line(format_args!("cvta.to.global.u64 %{register}, %{register}"))?;
        }
        self.line(format_args!("mov.u32 %tidx, %tid.x"))?;
        self.line(format_args!("mov.u32 %slots, {name}_slots"))?;
        self.line(format_args!("mad.lo.u32 %slot, %tidx, 8, %slots"))?;
        self.line(format_args!("mov.u32 %sums, {name}_sums"))?;
        // The first threads initialise the sums of the CTA.
        self.line(format_args!("setp.lt.u32 %p0, %tidx, {SUM_COUNT}"))?;
        self.line(format_args!("mad.lo.u32 %t0, %tidx, 8, %sums"))?;
        self.line(format_args!("cvt.u64.u32 %u0, %tidx"))?;
        self.line(format_args!("@%p0 st.shared.b64 [%t0], %u0"))?;
        self.line(format_args!("mov.u32 %t0, %ctaid.x"))?;
        self.line(format_args!("mov.u32 %t1, %ntid.x"))?;
        self.line(format_args!("mad.lo.u32 %t0, %t0, %t1, %tidx"))?;
        self.line(format_args!("mad.wide.u32 %output, %t0, {OUTPUT_BYTES}, %output"))?;
        // Each thread starts with its own words of the input and with its number, which is unique.
        self.line(format_args!("mul.lo.u32 %t1, %t0, {}", WORDS))?;
        self.line(format_args!("and.b32 %t1, %t1, {}", INPUT_WORDS - WORDS))?;
        self.line(format_args!("mad.wide.u32 %u0, %t1, 4, %input"))?;
        for i in 0..WORDS / 4 {
            let names: Vec<_> = (4 * i..4 * i + 4).map(|k| format!("%r{k}")).collect();
            self.line(format_args!("ld.global.v4.u32 {{{}}}, [%u0+{}]", names.join(", "), 16 * i))?;
        }
        self.line(format_args!("add.u32 %r0, %r0, %t0"))?;
        for i in 0..WIDES {
            self.line(format_args!("mul.wide.s32 %l{i}, %r{i}, %r{}", i + WIDES))?;
        }
        self.initialise()?;
        self.line(format_args!("barrier.sync 0"))?;
        self.list(&program.body)?;
        self.finish()
    }

    /// Writes all registers to the output. Every NaN is written as the same bits.
    fn finish(&mut self) -> fmt::Result {
        let mut at = 0;
        for i in 0..WORDS {
            self.line(format_args!("st.global.b32 [%output+{at}], %r{i}"))?;
            at += 4;
        }
        for i in 0..WIDES {
            self.line(format_args!("st.global.b64 [%output+{at}], %l{i}"))?;
            at += 8;
        }
        for i in 0..SINGLES {
            self.line(format_args!("testp.notanumber.f32 %q0, %f{i}"))?;
            self.line(format_args!("mov.b32 %t0, %f{i}"))?;
            self.line(format_args!("selp.b32 %t0, 0x7fc00000, %t0, %q0"))?;
            self.line(format_args!("st.global.b32 [%output+{at}], %t0"))?;
            at += 4;
        }
        for i in 0..DOUBLES {
            self.line(format_args!("testp.notanumber.f64 %q0, %g{i}"))?;
            self.line(format_args!("mov.b64 %u0, %g{i}"))?;
            self.line(format_args!("selp.b64 %u0, 0x7ff8000000000000, %u0, %q0"))?;
            self.line(format_args!("st.global.b64 [%output+{at}], %u0"))?;
            at += 8;
        }
        for i in 0..PREDICATES {
            self.line(format_args!("selp.b32 %t0, 1, 0, %p{i}"))?;
            self.line(format_args!("st.global.b32 [%output+{at}], %t0"))?;
            at += 4;
        }
        debug_assert!(at <= SCRATCH_AT);
        self.text.push_str("    ret;\n}\n");
        Ok(())
    }

    /// Declares a counter for each statement of a function, since any may be a loop.
    fn loop_counters(&mut self, body: &[Stmt]) -> fmt::Result {
        fn labels(list: &[Stmt]) -> usize {
            list.iter().map(|s| 1 + s.lists().iter().map(|l| labels(l)).sum::<usize>()).sum()
        }
        self.line(format_args!(".reg .b32 %c<{}>", labels(body) + 1))
    }

    fn list(&mut self, list: &[Stmt]) -> fmt::Result {
        list.iter().try_for_each(|s| self.statement(s))
    }

    fn label(&mut self, name: &str, number: usize) {
        self.text.push_str(&format!("{name}_{number}:\n"));
    }

    fn statement(&mut self, statement: &Stmt) -> fmt::Result {
        let n = self.labels;
        self.labels += 1;
        match statement {
            Stmt::Leaf(text) => {
                text.split(';').try_for_each(|part| self.line(format_args!("{}", part.trim())))
            }
            Stmt::If { predicate, then, other } => {
                self.line(format_args!("@!%p{predicate} bra ELSE_{n}"))?;
                self.list(then)?;
                if !other.is_empty() {
                    self.line(format_args!("bra END_{n}"))?;
                }
                self.label("ELSE", n);
                self.list(other)?;
                if !other.is_empty() {
                    self.label("END", n);
                }
                Ok(())
            }
            Stmt::Loop { register, mask, leave, body } => {
                self.line(format_args!("and.b32 %c{n}, %r{register}, {mask}"))?;
                self.label("TURN", n);
                self.line(format_args!("setp.eq.u32 %q0, %c{n}, 0"))?;
                self.line(format_args!("@%q0 bra END_{n}"))?;
                self.list(body)?;
                if let Some(leave) = leave {
                    self.line(format_args!("@%p{leave} bra END_{n}"))?;
                }
                self.line(format_args!("sub.u32 %c{n}, %c{n}, 1"))?;
                self.line(format_args!("bra TURN_{n}"))?;
                self.label("END", n);
                Ok(())
            }
            Stmt::Repeat { times, body } => {
                self.line(format_args!("mov.u32 %c{n}, {times}"))?;
                self.label("TURN", n);
                self.list(body)?;
                self.line(format_args!("sub.u32 %c{n}, %c{n}, 1"))?;
                self.line(format_args!("setp.ne.u32 %q0, %c{n}, 0"))?;
                self.line(format_args!("@%q0 bra TURN_{n}"))
            }
            Stmt::Switch { register, arms } => {
                let targets: Vec<_> = (0..arms.len()).map(|arm| format!("ARM{arm}_{n}")).collect();
                self.text.push_str(&format!("TABLE_{n}: .branchtargets {};\n", targets.join(", ")));
                self.line(format_args!("and.b32 %t0, %r{register}, {}", arms.len() - 1))?;
                self.line(format_args!("brx.idx %t0, TABLE_{n}"))?;
                for (number, arm) in arms.iter().enumerate() {
                    self.label(&format!("ARM{number}"), n);
                    self.list(arm)?;
                    self.line(format_args!("bra END_{n}"))?;
                }
                self.label("END", n);
                Ok(())
            }
            Stmt::Call { function, args: [a, b, c], result } => {
                let name = format!("{}_f{function}", self.entry);
                self.text.push_str("    {\n");
                self.line(format_args!(".param .b32 a, b, result"))?;
                self.line(format_args!(".param .b64 c, input, cells"))?;
                self.line(format_args!("st.param.b32 [a], %r{a}"))?;
                self.line(format_args!("st.param.b32 [b], %r{b}"))?;
                self.line(format_args!("st.param.b64 [c], %l{c}"))?;
                self.line(format_args!("st.param.b64 [input], %input"))?;
                self.line(format_args!("st.param.b64 [cells], %cells"))?;
                self.line(format_args!("call (result), {name}, (a, b, c, input, cells)"))?;
                self.line(format_args!("ld.param.b32 %r{result}, [result]"))?;
                self.text.push_str("    }\n");
                Ok(())
            }
        }
    }
}
