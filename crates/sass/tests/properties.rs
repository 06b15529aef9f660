//! Every instruction that a listing can hold is printed and read back unchanged.

use std::collections::BTreeSet;

use warploom_isa::form::{Slot, form};
use warploom_isa::{
    Body, Combine, Dst, Function, Guard, ImmId, Inst, LaunchBounds, MbarrierOp, Module, Op, Operand, Origin,
    Pred, Reg, Source, Space, Span, VecId, Width, print, spell,
};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// The words after all mnemonics: the strings in the source of the tables.
fn vocabulary() -> Vec<String> {
    let text = include_str!("../../isa/src/spell/tables.rs").to_string()
        + include_str!("../../isa/src/spell/words.rs")
        + include_str!("../../isa/src/spell/mod.rs");
    let quoted: BTreeSet<String> = text
        .split('"')
        .skip(1)
        .step_by(2)
        .flat_map(|row| row.split('.'))
        .filter(|w| {
            !w.is_empty()
                && w.len() < 20
                && w.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        })
        .map(str::to_string)
        .collect();
    let mut words: Vec<String> = quoted.into_iter().collect();
    words.push("0X1E".into());
    words
}

/// The operations that random mnemonics find, each in its canonical form.
fn operations(random: &mut Random) -> Vec<Op> {
    let words = vocabulary();
    let mut found: Vec<Op> = Vec::new();
    let mut texts = BTreeSet::new();
    for name in spell::names() {
        // Suffixes that this name accepts. A later attempt extends one of them.
        let mut open: Vec<Vec<String>> = vec![Vec::new()];
        for _ in 0..6_000 {
            let mut suffixes = open[random.below(open.len() as u64) as usize].clone();
            for _ in 0..=random.below(3) {
                suffixes.push(words[random.below(words.len() as u64) as usize].clone());
            }
            for suffixes in [Vec::new(), suffixes] {
                if let Some(op) = spell::operation(name, &suffixes)
                    && texts.insert(spell::mnemonic(op))
                {
                    found.push(spell::canonical(op));
                    open.push(suffixes);
                }
            }
        }
    }
    let specials = spell::specials().filter_map(spell::special_named).map(Op::Special);
    found.extend(specials);
    found
}

/// A random instruction of an operation. Its vectors and wide immediates are added to the body.
fn instruction(op: Op, random: &mut Random, body: &mut Body) -> Inst {
    let mut inst = Inst::new(op, Dst::None, &[]);
    inst.guard = match random.below(4) {
        0 => Guard::If(Pred(random.below(7) as u32)),
        1 => Guard::Unless(Pred(random.below(7) as u32)),
        _ => Guard::Always,
    };
    let shape = op.shape();
    let count = match op {
        Op::Ld { access, .. } | Op::St(access) => usize::from(access.count),
        _ => 1,
    };
    let register = |random: &mut Random| Reg(2 * random.below(24) as u32);
    let vector = |random: &mut Random, body: &mut Body| {
        let list = (0..count).map(|_| Operand::Reg(register(random))).collect();
        body.vectors.push(list);
        VecId(body.vectors.len() as u32 - 1)
    };
    let pred = |random: &mut Random| match random.below(2) {
        0 => Operand::Pred(Pred(random.below(7) as u32)),
        _ => Operand::NotPred(Pred(random.below(7) as u32)),
    };
    for &slot in form(op, true) {
        match slot {
            Slot::Dst if count > 1 => inst.dst = Dst::Vec(vector(random, body)),
            Slot::Dst => inst.dst = Dst::Reg(register(random)),
            Slot::DstPred => inst.dst = Dst::Pred(Pred(random.below(7) as u32)),
            Slot::Dst2Pred if random.below(2) == 0 => inst.dst2 = Dst::Pred(Pred(random.below(7) as u32)),
            Slot::Src(i) => {
                let wide = shape.src[i as usize] == Width::Two;
                inst.src[i as usize] = match random.below(4) {
                    _ if count > 1 => Operand::Vec(vector(random, body)),
                    0 if wide => {
                        body.imms.push(random.below(1 << 30) << 33 | 1 << 32);
                        Operand::Imm64(ImmId(body.imms.len() as u32 - 1))
                    }
                    0 => Operand::Imm(random.below(1 << 32) as u32),
                    1 => Operand::Imm(random.below(3) as u32),
                    _ => Operand::Reg(register(random)),
                };
            }
            Slot::Opt(i) if random.below(2) == 0 => inst.src[i as usize] = Operand::Reg(register(random)),
            Slot::Count(i) if random.below(2) == 0 => inst.src[i as usize] = Operand::Imm(64),
            Slot::Pred(i) => inst.src[i as usize] = pred(random),
            Slot::OptPred(i) => inst.src[i as usize] = pred(random),
            Slot::Combined(i) => {
                let none = matches!(
                    op,
                    Op::Setp { combine: Combine::None, .. }
                        | Op::Set { combine: Combine::None, .. }
                        | Op::SetpPred(_, Combine::None)
                );
                if !none {
                    inst.src[i as usize] = pred(random);
                }
            }
            Slot::Memory => {
                inst.src[0] = Operand::Reg(register(random));
                inst.src[1] = Operand::Imm(random.below(1 << 32) as u32);
            }
            _ => {}
        }
    }
    inst
}

#[test]
fn instructions_are_read_back() {
    let mut random = Random(42);
    let operations = operations(&mut random);
    assert!(operations.len() > 1500, "{}", operations.len());
    let mut body = Body {
        allocated: true,
        frame_align: 1,
        predicates: 7,
        registers: vec![Width::One; 64],
        ..Body::default()
    };
    for op in operations {
        assert_eq!(spell::canonical(op), op);
        // Control flow is tested on whole kernels (`round_trip.rs`).
        let branches = matches!(
            op,
            Op::Ssy | Op::Bra | Op::Brx | Op::Call | Op::Ret | Op::Exit | Op::Trap | Op::AssertFail
        );
        // Addresses with the module's width, which the shape does not know.
        let widths = matches!(op, Op::Printf | Op::Mbarrier(MbarrierOp::PendingCount, true));
        // The other bank of `LDC`.
        let bank = matches!(op, Op::Ld { access, .. } if access.space == Space::Param);
        if branches || widths || bank {
            continue;
        }
        for _ in 0..3 {
            let inst = instruction(op, &mut random, &mut body);
            body.insts.push(inst);
        }
    }
    body.insts.push(Inst::new(Op::Exit, Dst::None, &[]));
    body.origins = vec![Origin::default(); body.insts.len()];
    let function = Function {
        name: "k".into(),
        is_kernel: true,
        returns: Vec::new(),
        params: Vec::new(),
        param_bytes: 0,
        bounds: LaunchBounds::default(),
        body: Some(body.clone()),
        refusals: Vec::new(),
        span: Span::default(),
    };
    let module = Module {
        source: Source::default(),
        dialect: String::new(),
        address_bits: 64,
        functions: vec![function],
        variables: Vec::new(),
    };
    let text = print::module(&module, None);
    let again = warploom_sass::load("k.sass", &text).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let again = again.functions[0].body.clone().unwrap();
    assert_eq!(again.insts.len(), body.insts.len());
    for (a, b) in body.insts.iter().zip(&again.insts) {
        let resolve = |body: &Body, inst: &Inst| {
            let mut lists = Vec::new();
            let mut inst = *inst;
            for src in &mut inst.src {
                match src {
                    Operand::Imm64(id) => {
                        lists.push(vec![format!("{:x}", body.imms[id.index()])]);
                        *src = Operand::None;
                    }
                    Operand::Vec(id) => {
                        lists.push(body.vectors[id.index()].iter().map(|o| format!("{o:?}")).collect());
                        *src = Operand::None;
                    }
                    _ => {}
                }
            }
            if let Dst::Vec(id) = inst.dst {
                lists.push(body.vectors[id.index()].iter().map(|o| format!("{o:?}")).collect());
                inst.dst = Dst::None;
            }
            (inst, lists)
        };
        assert_eq!(resolve(&body, a), resolve(&again, b));
    }
}
