//! The resolved form of small texts, in a short notation.

use std::fmt::Write as _;

use warploom_isa::{Relocation, Symbol};
use warploom_ptx::resolve_text;
use warploom_ptx::resolved::{Base, Body, Formal, Module, Operand, OperandKind};

fn dump(text: &str) -> String {
    let module = resolve_text("k.ptx", text).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let mut out = format!("PTX {:?} {} {} bits\n", module.version, module.target, module.address_bits);
    for v in &module.variables {
        write!(out, "{} {}: {} bytes, align {}", v.space.name(), v.name, v.bytes, v.align).unwrap();
        if !v.init.is_empty() {
            write!(out, " = {:02X?}", v.init).unwrap();
        }
        for r in &v.relocations {
            write!(out, " {}", relocation(&module, r)).unwrap();
        }
        out.push('\n');
    }
    for f in &module.functions {
        let kind = if f.is_kernel { "kernel" } else { "function" };
        writeln!(out, "{kind} {}({}) -> ({})", f.name, formals(&f.params), formals(&f.returns)).unwrap();
        if f.bounds != Default::default() {
            writeln!(out, "  {:?}", f.bounds).unwrap();
        }
        if let Some(body) = &f.body {
            dump_body(&mut out, &module, body);
        }
    }
    out
}

fn relocation(module: &Module, r: &Relocation) -> String {
    let name = match r.target.symbol {
        Symbol::Variable(id) => &module.variables[id.index()].name,
        Symbol::Function(id) => &module.functions[id.index()].name,
    };
    let generic = if r.target.generic { "generic " } else { "" };
    format!("[{}..+{}] = {generic}{name}{:+} >> {}", r.offset, r.bytes, r.target.offset, r.shift)
}

fn formals(list: &[Formal]) -> String {
    let one = |f: &Formal| {
        let place = match (f.reg, f.frame) {
            (Some(r), _) => format!(" in reg {}", r.0),
            (_, Some(v)) => format!(" in frame {}", v.0),
            _ => String::new(),
        };
        let pointer = f.pointer.map(|s| format!(" -> {}", s.name())).unwrap_or_default();
        format!("{}: {:?} {}/{}{place}{pointer}", f.name, f.ty, f.bytes, f.align)
    };
    list.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn dump_body(out: &mut String, module: &Module, body: &Body) {
    for (i, r) in body.registers.iter().enumerate() {
        writeln!(out, "  reg {i} {} {:?}", r.name, r.ty).unwrap();
    }
    for (i, v) in body.frame.iter().enumerate() {
        writeln!(out, "  frame {i} {} {}/{} {:?}", v.name, v.bytes, v.align, v.kind).unwrap();
    }
    for (i, l) in body.labels.iter().enumerate() {
        writeln!(out, "  label {i} {} = {}", l.name, l.target).unwrap();
    }
    for (i, table) in body.tables.iter().enumerate() {
        writeln!(out, "  table {i} {:?}", table.iter().map(|l| l.0).collect::<Vec<_>>()).unwrap();
    }
    for (i, p) in body.prototypes.iter().enumerate() {
        writeln!(out, "  prototype {i} {:?} -> {:?}", p.params, p.returns).unwrap();
    }
    for (i, inst) in body.insts.iter().enumerate() {
        let guard = inst
            .guard
            .map(|(r, not)| format!("@{}r{} ", if not { "!" } else { "" }, r.0))
            .unwrap_or_default();
        let opcode = inst.opcode.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(".");
        let line = inst
            .line
            .map(|l| format!("  ; {}:{}", module.source.files[l.file as usize], l.line))
            .unwrap_or_default();
        let text = format!("  {i}: {guard}{opcode} {}", operands(&inst.operands));
        writeln!(out, "{}{line}", text.trim_end()).unwrap();
    }
}

fn operands(list: &[Operand]) -> String {
    list.iter().map(operand).collect::<Vec<_>>().join(", ")
}

fn operand(o: &Operand) -> String {
    match &o.kind {
        OperandKind::Reg(r) => format!("r{}", r.0),
        OperandKind::Not(r) => format!("!r{}", r.0),
        OperandKind::Part(r, part) => format!("r{}.{part}", r.0),
        OperandKind::Sum(r, offset) => format!("r{}{offset:+}", r.0),
        OperandKind::Int(i) => format!("{}", *i as i64),
        OperandKind::F32(b) => format!("{}f", f32::from_bits(*b)),
        OperandKind::F64(b) => format!("{}d", f64::from_bits(*b)),
        OperandKind::Address(base, offset) => match base {
            Base::Reg(r) => format!("[r{}{offset:+}]", r.0),
            Base::Var(v) => format!("[var{}{offset:+}]", v.0),
            Base::Frame(v) => format!("[frame{}{offset:+}]", v.0),
            Base::Param(i) => format!("[param{i}{offset:+}]"),
            Base::Absolute => format!("[{offset}]"),
        },
        OperandKind::Vector(v) => format!("{{{}}}", operands(v)),
        OperandKind::List(v) => format!("({})", operands(v)),
        OperandKind::Pair(a, b) => format!("{}|{}", operand(a), operand(b)),
        OperandKind::Sink => "_".into(),
        other => format!("{other:?}"),
    }
}

fn check(text: &str) {
    let name = std::thread::current().name().unwrap_or_default().to_string();
    insta::with_settings!({omit_expression => true}, { insta::assert_snapshot!(name, dump(text)) });
}

#[test]
fn kernel() {
    check(
        r#"
.version 7.8
.target sm_80, debug
.address_size 64
.file 7 "a.cu"
.file 3 "b.cuh", 1234, 56
.visible .entry k(
    .param .u64 .ptr .global .align 16 k_param_0,
    .param .align 8 .b8 k_param_1[24],
    .param .f32 k_param_2
)
.maxntid 16, 8
.minnctapersm 2
.maxnreg 64
{
    .pragma "nounroll";
    .reg .pred %p<3>;
    .reg .b32 %r<10>, %rr;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 tile[1024];
    .loc 7 12 3
    ld.param.u64 %rd1, [k_param_0];
    ld.param.v2.u32 {%r1, _}, [k_param_1+8];
    .loc 3 4 1, function_name $L__info+8, inlined_at 7 13 5
    mov.u32 %r2, %tid.x;
    mov.u64 %rd2, tile+(2*8);
    setp.lt.and.s32 %p1|%p2, %r1, -5, !%p0;
    @!%p1 bra $done;
$loop:
    .loc 7 0 0
    ld.global.L1::no_allocate.u32 %rr, [%rd1+-4];
    ld.global.u32 %rr, [%rd1-4];
    ld.shared.u32 %r3, [tile+4];
    ld.global.u32 %r3, [16];
    mov.f32 %r3, 0f3F800000;
    mov.f64 %rd3, 1.5;
    mov.u32 %r3, WARP_SZ - 1;
    @%p2 bra $loop;
$done:
    ret;
}
.section .debug_str { $L__info: .b8 1, 2 { } }
"#,
    );
}

#[test]
fn scopes_and_shadowing() {
    check(
        "
.version 3.0
.target sm_20
.entry k()
{
    .reg .b32 a, b;
L:  mov.b32 a, b;
    {
        mov.b32 a, 1;
        .reg .f32 a;
        .reg .b32 %t<2>;
        mov.b32 a, %t1;
L:      bra L;
        bra M;
    }
    {
        .reg .b32 %t<2>;
        mov.b32 a, %t1;
    }
    bra L;
M:
}
",
    );
}

#[test]
fn calls() {
    check(
        "
.version 7.8
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 _, .param .b64 _);
.func (.param .b32 out) twice (.param .b32 in);
.func (.reg .u32 y) old (.reg .u32 x) { add.u32 y, x, x; ret; }
.func same (.param .b32 a);
.alias same, other;
.func other (.param .b32 a) { ret; }
.func (.param .b32 out) twice (.param .b32 in)
{
    .local .align 8 .b8 stack[16];
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    mov.u64 %rd1, stack;
    ld.param.b32 %r1, [in];
    st.param.b32 [out+0], %r1;
    ret;
}
.entry k()
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
targets: .branchtargets A, B;
    {
        .param .b32 p0;
        .param .b32 q0;
        st.param.b32 [p0], 1;
        call.uni (q0), twice, (p0);
        prototype : .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[16]) .noreturn;
        fs: .calltargets twice, old;
        mov.u64 %rd1, twice;
        call (q0), %rd1, (p0), prototype;
        call (q0), %rd1, (p0), fs;
        call other, (3);
        call same, (%r1);
    }
    brx.idx %r1, targets;
A:  call (%r1), old, (%r2);
B:  exit;
}
",
    );
}

#[test]
fn variables() {
    check(
        "
.version 7.8
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.extern .global .u32 later[];
.visible .global .u64 pointers[5] = {later, generic(later)+4, generic(later+4), f, 3};
.global .u8 bytes[9] = {0xFF(later), 0xFF00(generic(later)+2), 0xff000000(f), 255, -1, 300};
.visible .global .u32 later[4] = {1, 2};
.const[2] .f32 x = 1.5, y = 0f40000000;
.const .b32 z[2] = {1.5, 0f40000000};
.const .align 8 .f64 d[2] = {1.5, 0d3FF0000000000000};
.global .v2 .u16 v[2] = {{1, 2}, {3}};
.global .s32 grid[][2] = {{1}, {2, -1}};
.global .attribute(.managed) .b32 m = 0f3F800000;
.weak .global .u32 w = 1;
.global .u32 w = 2;
.common .global .u32 c;
.global .b128 big;
.func f() { .global .u32 own = 7; .reg .u32 a; ld.global.u32 a, [own]; ret; }
",
    );
}

#[test]
fn first_compilers() {
    check(
        "
\t.version 1.4
\t.target sm_10, map_f64_to_f32
\t@@DWARF .section .debug_info
\t.file 1 \"x.cu\"
\t.entry _Z1kPf (
\t\t.param .u64 __cudaparm__Z1kPf_a)
\t{
\t.reg .u16 %rh<3>;
\t.reg .u64 %rd<3>;
\t.reg .f32 %f<3>;
\t.loc 1 3 0
$LBB1__Z1kPf:
\tmov.u16 \t%rh1, %ctaid.x;
\tld.param.u64 \t%rd1, [__cudaparm__Z1kPf_a];
\tld.const[0].f32 \t%f1, [%rd1+0];
\texit;
$LDWend__Z1kPf:
\t} // _Z1kPf
",
    );
}

#[test]
fn odd_operands_survive_until_lowering() {
    check(
        "
.version 8.0
.target sm_90
.address_size 64
.entry k()
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    tex.2d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}];
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];
    vadd.s32.s32.s32 %r1, %r2.b0, %r3.h1;
    shfl.sync.idx.b32 %r1|_, %r2, 0, 31, -1;
    bar.sync 0;
    wl.yield;
}
",
    );
}
