//! Linking: reachable functions, addresses, sizes, listings.

use super::asm::*;
use crate::*;

fn call_site(callee: Callee) -> CallSite {
    CallSite {
        callee,
        args: vec![FrameCopy { caller: 0, callee: 4, bytes: 4 }],
        returns: vec![FrameCopy { caller: 8, callee: 0, bytes: 4 }],
    }
}

fn call(site: u32) -> Inst {
    Inst::new(Op::Call, Dst::None, &[imm(site)])
}

fn symbol(n: u32) -> Operand {
    Operand::Symbol(SymbolUseId(n))
}

fn mov64(d: u32, a: Operand) -> Inst {
    Inst::new(Op::Mov(Ty::B64), dr(d), &[a])
}

/// A function that calls each of `callees`, with a frame of `frame_bytes`.
fn caller(callees: &[Callee], frame_bytes: u32) -> Body {
    let mut insts: Vec<Inst> = (0..callees.len() as u32).map(call).collect();
    insts.push(ret());
    Body { calls: callees.iter().map(|&c| call_site(c)).collect(), frame_bytes, ..body(2, &[1], 0, insts) }
}

fn variable_use(var: u32, offset: i64, generic: bool) -> SymbolUse {
    SymbolUse { symbol: Symbol::Variable(VarId(var)), offset, generic }
}

fn function_use(function: u32) -> SymbolUse {
    SymbolUse { symbol: Symbol::Function(FuncId(function)), offset: 0, generic: true }
}

fn direct(f: u32) -> Callee {
    Callee::Direct(FuncId(f))
}

fn link0(module: &Module) -> Result<Kernel, LinkError> {
    link(
        module,
        FuncId(0),
        &AddressMap { variables: vec![0x1000; module.variables.len()], ..AddressMap::default() },
    )
}

/// A spinning kernel with a switch, a helper function, vectors, and memory of every kind.
fn sample() -> Module {
    let main = vec![
        Inst::new(Op::Special(Special::TidX), dr(0), &[]),
        Inst::new(
            Op::Ld { access: Access::plain(Space::Param, Ty::U64), wide: false },
            dr(1),
            &[imm(0), imm(0)],
        ),
        Inst::new(Op::IMad(Ty::U32, Part::Wide, Clamp::None), dr(2), &[r(0), imm(8), r(1)]),
        Inst::new(Op::Atom(AtomOp::Cas, access(Space::Global)), dr(3), &[r(1), imm(0), imm(0), imm(1)]),
        setp(Cmp::Ne, 0, r(3), imm(0)),
        bra(3).when(0),
        Inst::new(
            Op::Ld { access: Access { count: 2, ..access(Space::Global) }, wide: false },
            Dst::Vec(VecId(0)),
            &[r(2), imm(16)],
        ),
        Inst::new(Op::FFma(Ty::F32, FloatMode::RN), dr(4), &[r(4), imm(0x3f80_0000), r(5)]),
        Inst::new(Op::Brx, Dst::None, &[r(0), imm(0)]),
        st(access(Space::Local), Operand::Frame, 0, r(4)),
        call(0),
        ld(access(Space::Local), 6, Operand::Frame, 8),
        bra(14),
        mov(6, imm(u32::MAX)),
        mov64(7, symbol(0)),
        st(Access { wide_address: true, ..access(Space::Generic) }, r(7), 0, r(6)),
        mov64(8, symbol(1)),
        mov64(9, Operand::Imm64(ImmId(0))),
        Inst::new(
            Op::St(Access::plain(Space::Global, Ty::U64)),
            Dst::None,
            &[r(8), imm((-8i32) as u32), r(9)],
        ),
        Inst::new(Op::Bar(BarMode::Sync), Dst::None, &[imm(0)]),
        op(Op::Exit).unless(0),
        ret(),
    ];
    let main = Body {
        vectors: vec![vec![r(4), r(5)]],
        tables: vec![vec![Pc(9), Pc(13)]],
        calls: vec![call_site(direct(1))],
        symbols: vec![variable_use(1, 4, true), variable_use(0, 0, false)],
        imms: vec![0x1_2345_6789],
        frame_bytes: 12,
        labels: vec![(Pc(3), "$spin".into())],
        ..body(10, &[1, 2, 7, 8, 9], 1, main)
    };
    let helper = vec![
        ld(access(Space::Local), 0, Operand::Frame, 4),
        setp(Cmp::Gt, 0, r(0), imm(100)),
        bra(4).when(0),
        add(0, r(0), r(0)),
        st(access(Space::Local), Operand::Frame, 0, r(0)),
        ret(),
    ];
    let helper = Body { frame_bytes: 8, ..body(1, &[], 1, helper) };
    let mut kernel = function("sample", true, Some(main));
    kernel.params =
        vec![Param { name: "lock".into(), ty: Ty::U64, bytes: 8, align: 8, offset: 0, pointer: None }];
    kernel.param_bytes = 8;
    module(
        vec![kernel, function("double", false, Some(helper))],
        vec![variable("far", Space::Global, 8, 8), variable("tile", Space::Shared, 16, 64)],
    )
}

#[test]
fn listing() {
    let module = sample();
    let body = module.functions[0].body.as_ref().expect("a body");
    insta::assert_snapshot!("virtual", print::body(body).to_string());
    let addresses = AddressMap { variables: vec![0x7_0000_0000, 0], ..AddressMap::default() };
    let kernel = link(&module, FuncId(0), &addresses).expect("links");
    insta::assert_snapshot!("kernel", kernel.to_string());
}

#[test]
fn only_what_is_reached_is_linked() {
    let module = module(
        vec![
            function("main", true, Some(caller(&[direct(2)], 4))),
            function("unused", false, Some(caller(&[], 0))),
            function("used", false, Some(caller(&[direct(3), direct(3)], 20))),
            function("leaf", false, Some(caller(&[], 32))),
        ],
        Vec::new(),
    );
    let kernel = link0(&module).expect("links");
    let names: Vec<_> =
        kernel.functions.iter().map(|f| (f.name.as_str(), f.start.0, f.frame_bytes)).collect();
    assert_eq!(names, [("main", 0, 16), ("used", 2, 32), ("leaf", 5, 32)]);
    assert_eq!((kernel.local_bytes, kernel.recursive), (80, false));
    let callees: Vec<_> = kernel.calls.iter().map(|c| c.callee).collect();
    assert_eq!(callees, [LinkedCallee::Direct(1), LinkedCallee::Direct(2), LinkedCallee::Direct(2)]);
    assert_eq!(kernel.code[3].src[0], imm(2));
    assert_eq!(kernel.function_at(Pc(4)).name, "used");
}

#[test]
fn the_deepest_chain_counts() {
    // main -> a -> b -> c, main -> d; b and a call each other.
    let module = module(
        vec![
            function("main", true, Some(caller(&[direct(4), direct(1)], 16))),
            function("a", false, Some(caller(&[direct(2)], 16))),
            function("b", false, Some(caller(&[direct(1), direct(3)], 32))),
            function("c", false, Some(caller(&[], 64))),
            function("d", false, Some(caller(&[], 96))),
        ],
        Vec::new(),
    );
    let kernel = link0(&module).expect("links");
    assert_eq!((kernel.local_bytes, kernel.recursive), (128, true));
}

#[test]
fn indirect_calls_reach_what_has_an_address() {
    let pointer = Body {
        symbols: vec![function_use(2)],
        calls: vec![call_site(Callee::Indirect(r(1)))],
        ..body(2, &[1], 0, vec![mov64(1, symbol(0)), call(0), ret()])
    };
    let mut table = variable("table", Space::Global, 8, 16);
    table.relocations = vec![Relocation { offset: 8, bytes: 8, shift: 0, target: function_use(3) }];
    let module = module(
        vec![
            function("main", true, Some(pointer)),
            function("never", false, Some(caller(&[], 0))),
            function("named", false, Some(caller(&[direct(4)], 0))),
            function("listed", false, Some(caller(&[], 0))),
            function("below", false, Some(caller(&[], 0))),
        ],
        vec![table],
    );
    let kernel = link0(&module).expect("links");
    let names: Vec<_> = kernel.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["main", "named", "listed", "below"]);
    assert_eq!(kernel.code[0].src[0], imm(0x0500_0020));
    assert_eq!(kernel.calls[0].callee, LinkedCallee::Indirect(r(0)));
    assert!(!kernel.recursive);

    let addresses = AddressMap { variables: vec![0x1000], ..AddressMap::default() };
    let image = variable_image(&module, VarId(0), &addresses).expect("an image");
    assert_eq!(image, [&[0; 8][..], &0x0500_0030u64.to_le_bytes()].concat());
}

#[test]
fn shared_memory_holds_what_is_used() {
    let uses = Body {
        symbols: [4, 0, 3, 2].map(|v| variable_use(v, 0, v == 2)).to_vec(),
        ..body(1, &[], 0, [0, 1, 2, 3].map(|s| mov(0, symbol(s))).into_iter().chain([ret()]).collect())
    };
    let module = module(
        vec![function("main", true, Some(uses))],
        vec![
            variable("a", Space::Shared, 1, 3),
            variable("unused", Space::Shared, 8, 800),
            variable("b", Space::Shared, 8, 8),
            variable("more", Space::Shared, 32, 0),
            variable("dynamic", Space::Shared, 4, 0),
        ],
    );
    let kernel = link0(&module).expect("links");
    let places: Vec<_> = kernel.shared.iter().map(|v| (v.name.as_str(), v.offset, v.bytes)).collect();
    assert_eq!(places, [("a", 0, 3), ("b", 8, 8), ("more", 32, 0), ("dynamic", 32, 0)]);
    assert_eq!((kernel.static_shared_bytes, kernel.dynamic_shared_offset), (16, 32));
    let values: Vec<_> = kernel.code[..4].iter().map(|i| i.src[0]).collect();
    assert_eq!(values, [imm(32), imm(0), imm(32), imm(0x0100_0008)]);
}

#[test]
fn images_hold_addresses() {
    let mut v = variable("v", Space::Global, 8, 24);
    v.init = vec![1, 2, 3];
    let relocate = |offset, bytes, shift, target| Relocation { offset, bytes, shift, target };
    v.relocations = vec![
        relocate(8, 8, 0, variable_use(1, 4, true)),
        relocate(16, 1, 8, variable_use(0, 0, false)),
        relocate(20, 4, 0, variable_use(1, -1, false)),
    ];
    let mut module =
        module(Vec::new(), vec![v, variable("c", Space::Const, 4, 64), variable("s", Space::Shared, 4, 4)]);
    let addresses = AddressMap { variables: vec![0x7_0000_ab00, 0x40, 0], ..AddressMap::default() };
    let mut expected = vec![0; 24];
    expected[..3].copy_from_slice(&[1, 2, 3]);
    expected[8..16].copy_from_slice(&0x0300_0044u64.to_le_bytes());
    expected[16] = 0xab;
    expected[20..].copy_from_slice(&0x3fu32.to_le_bytes());
    assert_eq!(variable_image(&module, VarId(0), &addresses), Ok(expected));

    module.variables[0].relocations.push(relocate(0, 4, 0, variable_use(2, 0, false)));
    let error = variable_image(&module, VarId(0), &addresses).expect_err("a shared address");
    assert_eq!(error.to_string(), "the initial value of `v` holds the address of shared variable `s`");
    module.variables[0].relocations = vec![relocate(20, 8, 0, variable_use(0, 0, false))];
    assert!(matches!(variable_image(&module, VarId(0), &addresses), Err(LinkError::Initializer { .. })));
}

#[test]
fn errors_name_the_culprit() {
    let declared = module(
        vec![function("main", true, Some(caller(&[direct(1)], 0))), function("gone", false, None)],
        Vec::new(),
    );
    let error = link0(&declared).expect_err("no body").to_string();
    assert_eq!(error, "`main` calls `gone`, which is declared but has no body");
    assert!(matches!(link(&declared, FuncId(1), &AddressMap::default()), Err(LinkError::NoBody { .. })));

    let narrow = module(
        vec![function("main", true, Some(body(1, &[], 0, vec![mov64(0, imm(0)), ret()])))],
        Vec::new(),
    );
    assert!(matches!(link0(&narrow), Err(LinkError::Width { .. })));

    let main =
        Body { symbols: vec![variable_use(0, 0, false)], ..body(1, &[], 0, vec![mov(0, symbol(0)), ret()]) };
    let lost = module(vec![function("main", true, Some(main))], vec![variable("g", Space::Global, 4, 4)]);
    assert!(matches!(link(&lost, FuncId(0), &AddressMap::default()), Err(LinkError::NoAddress { .. })));
}
