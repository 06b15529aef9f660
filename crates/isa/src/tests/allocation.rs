//! Liveness and register allocation, checked against a textbook liveness and an interpreter.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::asm::*;
use crate::cfg::*;
use crate::liveness::*;
use crate::regalloc::*;
use crate::*;

/// Registers `0..NARROW` are one word wide, the next `WIDE` two.
const NARROW: u32 = 7;
const WIDE: u32 = 5;
const PREDICATES: u32 = 3;

fn registers() -> Vec<u32> {
    (NARROW..NARROW + WIDE).collect()
}

fn narrow() -> impl Strategy<Value = u32> {
    0..NARROW
}

fn wide() -> impl Strategy<Value = u32> {
    NARROW..NARROW + WIDE
}

fn source() -> impl Strategy<Value = Operand> {
    prop_oneof![4 => narrow().prop_map(r), 1 => (0u32..9).prop_map(imm)]
}

/// A store: the interpreter's only output.
fn output(ty: Ty, count: u8) -> Op {
    Op::St(Access { count, ..Access::plain(Space::Global, ty) })
}

/// An instruction, perhaps guarded, and the elements of its vector operand.
fn instruction() -> impl Strategy<Value = (Inst, Vec<Operand>)> {
    let plain = |inst: Inst| (inst, Vec::new());
    let pred = || 0..PREDICATES;
    let op = prop_oneof![
        3 => (narrow(), source(), source()).prop_map(move |(d, a, b)| plain(add(d, a, b))),
        2 => (narrow(), source()).prop_map(move |(d, a)| plain(mov(d, a))),
        2 => (wide(), wide(), wide()).prop_map(move |(d, a, b)| {
            plain(Inst::new(Op::IAdd(Ty::U64, Clamp::None), dr(d), &[r(a), r(b)]))
        }),
        2 => (wide(), source(), source()).prop_map(move |(d, a, b)| {
            plain(Inst::new(Op::IMul(Ty::U32, Part::Wide), dr(d), &[a, b]))
        }),
        1 => (wide(), source(), source()).prop_map(move |(d, a, b)| plain(Inst::new(Op::Pack64, dr(d), &[a, b]))),
        1 => (narrow(), wide(), 0u8..2).prop_map(move |(d, a, w)| plain(Inst::new(Op::Unpack64(w), dr(d), &[r(a)]))),
        1 => (narrow(), pred(), source(), source()).prop_map(move |(d, q, a, b)| {
            plain(Inst { dst2: dp(q), ..Inst::new(Op::AddCarry(Ty::U32), dr(d), &[a, b, p(q)]) })
        }),
        2 => (pred(), source(), source()).prop_map(move |(d, a, b)| plain(setp(Cmp::Lt, d, a, b))),
        1 => (narrow(), source(), source(), pred()).prop_map(move |(d, a, b, c)| {
            plain(Inst::new(Op::Selp(Ty::B32), dr(d), &[a, b, p(c)]))
        }),
        2 => narrow().prop_map(move |a| plain(Inst::new(output(Ty::U32, 1), Dst::None, &[imm(0), imm(0), r(a)]))),
        1 => prop::collection::vec(wide().prop_map(r), 2).prop_map(move |v| {
            (Inst::new(output(Ty::U64, 2), Dst::None, &[imm(0), imm(0), Operand::Vec(VecId(0))]), v)
        }),
    ];
    let guard = prop_oneof![
        5 => Just(Guard::Always),
        1 => pred().prop_map(|p| Guard::If(Pred(p))),
        1 => pred().prop_map(|p| Guard::Unless(Pred(p))),
    ];
    (op, guard).prop_map(|((inst, vector), guard)| (Inst { guard, ..inst }, vector))
}

#[derive(Clone, Debug)]
enum End {
    Fall,
    Jump(usize),
    Branch(usize, u32),
    Exit(u32),
}

fn block() -> impl Strategy<Value = (Vec<(Inst, Vec<Operand>)>, End)> {
    let end = prop_oneof![
        3 => Just(End::Fall),
        1 => any::<usize>().prop_map(End::Jump),
        4 => (any::<usize>(), 0..PREDICATES).prop_map(|(b, p)| End::Branch(b, p)),
        1 => (0..PREDICATES).prop_map(End::Exit),
    ];
    (prop::collection::vec(instruction(), 0..7), end)
}

/// Writes every register and predicate, so that every later read is defined.
fn prelude() -> Vec<(Inst, Vec<Operand>)> {
    let narrow = (0..NARROW).map(|d| mov(d, imm(d + 1)));
    let wide = (NARROW..NARROW + WIDE).map(|d| Inst::new(Op::Pack64, dr(d), &[imm(d), imm(d + 9)]));
    let preds = (0..PREDICATES).map(|d| setp(Cmp::Lt, d, imm(d), imm(1)));
    narrow.chain(wide).chain(preds).map(|inst| (inst, Vec::new())).collect()
}

fn program() -> impl Strategy<Value = Body> {
    (prop::collection::vec(block(), 1..10), any::<bool>()).prop_map(|(mut blocks, defined)| {
        if defined {
            blocks.insert(0, (prelude(), End::Fall));
        }
        let starts: Vec<u32> = blocks
            .iter()
            .scan(0, |at, (insts, _)| Some(std::mem::replace(at, *at + insts.len() as u32 + 1)))
            .collect();
        let target = |b: usize| starts[b % starts.len()];
        let mut insts = Vec::new();
        let mut vectors = Vec::new();
        for (code, end) in blocks {
            for (mut inst, vector) in code {
                if let Operand::Vec(id) = &mut inst.src[2] {
                    *id = VecId(vectors.len() as u32);
                    vectors.push(vector);
                }
                insts.push(inst);
            }
            insts.push(match end {
                End::Fall => op(Op::Nop),
                End::Jump(b) => bra(target(b)),
                End::Branch(b, p) => bra(target(b)).when(p),
                End::Exit(p) => op(Op::Exit).unless(p),
            });
        }
        insts.push(ret());
        Body { vectors, ..body(NARROW + WIDE, &registers(), PREDICATES, insts) }
    })
}

/// The values live before each instruction, by iterating the textbook equations over single instructions.
/// Predicates follow the registers.
fn live_before(body: &Body) -> Vec<BTreeSet<u32>> {
    let n = body.insts.len();
    let number = |v: Value| match v {
        Value::Reg(r, _) => r.0,
        Value::Pred(p) => body.registers.len() as u32 + p.0,
    };
    let mut live = vec![BTreeSet::new(); n + 1];
    loop {
        let mut changed = false;
        for pc in (0..n).rev() {
            let inst = &body.insts[pc];
            let mut set = live_after(body, &live, pc);
            if inst.guard == Guard::Always {
                inst.for_each_def(body, |v| {
                    set.remove(&number(v));
                });
            }
            inst.for_each_use(body, |v| {
                set.insert(number(v));
            });
            if set != live[pc] {
                live[pc] = set;
                changed = true;
            }
        }
        if !changed {
            return live;
        }
    }
}

fn live_after(body: &Body, live: &[BTreeSet<u32>], pc: usize) -> BTreeSet<u32> {
    let inst = &body.insts[pc];
    let mut set = BTreeSet::new();
    if !inst.ends_flow() {
        set.extend(&live[pc + 1]);
    }
    if let Some(target) = inst.branch_target() {
        set.extend(&live[target.index()]);
    }
    set
}

/// The largest sum of the weights of values that are live at one position: a lower bound for any allocation.
fn most_live<'a>(values: impl Iterator<Item = (&'a [Segment], u32)>, body: &Body) -> u32 {
    let mut change = vec![0i64; 2 * body.insts.len() + 2];
    for (segments, weight) in values {
        for s in segments {
            change[s.start as usize] += i64::from(weight);
            change[s.end as usize] -= i64::from(weight);
        }
    }
    let mut live = 0;
    let peaks = change.iter().map(|c| {
        live += c;
        live
    });
    peaks.max().unwrap_or(0) as u32
}

/// A machine with one lane. A word is `None` until it is written, and so is any result computed from such words.
struct Lane<'a> {
    body: &'a Body,
    /// Words per register number: 2 if virtual, 1 if physical.
    stride: usize,
    words: Vec<Option<u32>>,
    preds: Vec<Option<bool>>,
    log: Vec<Option<u64>>,
}

impl<'a> Lane<'a> {
    fn new(body: &'a Body, stride: usize) -> Self {
        Lane {
            body,
            stride,
            words: vec![None; body.registers.len() * stride],
            preds: vec![None; body.predicates as usize],
            log: Vec::new(),
        }
    }

    fn read(&self, operand: Operand, width: Width) -> Option<u64> {
        match operand {
            Operand::Imm(v) => Some(u64::from(v)),
            Operand::Reg(r) => {
                let at = r.index() * self.stride;
                let low = u64::from(self.words[at]?);
                match width {
                    Width::One => Some(low),
                    Width::Two => Some(low | u64::from(self.words[at + 1]?) << 32),
                }
            }
            Operand::Pred(p) => self.preds[p.index()].map(u64::from),
            _ => panic!("operand {operand:?}"),
        }
    }

    fn write(&mut self, dst: Dst, width: Width, value: Option<u64>) {
        match dst {
            Dst::Reg(r) => {
                let at = r.index() * self.stride;
                self.words[at] = value.map(|v| v as u32);
                if width == Width::Two {
                    self.words[at + 1] = value.map(|v| (v >> 32) as u32);
                }
            }
            Dst::Pred(p) => self.preds[p.index()] = value.map(|v| v & 1 != 0),
            _ => {}
        }
    }

    /// Runs to the end or for `fuel` instructions; false if a guard depends on an unwritten word.
    fn run(&mut self, fuel: usize) -> bool {
        let mut pc = 0;
        for _ in 0..fuel {
            let inst = self.body.insts[pc];
            pc += 1;
            let acts = match inst.guard {
                Guard::Always => Some(true),
                Guard::If(p) => self.preds[p.index()],
                Guard::Unless(p) => self.preds[p.index()].map(|v| !v),
            };
            match acts {
                None => return false,
                Some(false) => continue,
                Some(true) => {}
            }
            let shape = inst.op.shape();
            let get = |i: usize| self.read(inst.src[i], shape.src[i]);
            let (value, second) = match inst.op {
                Op::Nop => continue,
                Op::Ret | Op::Exit => return true,
                Op::Bra => {
                    pc = inst.branch_target().expect("a target").index();
                    continue;
                }
                Op::St(access) => {
                    let elements = match inst.src[2] {
                        Operand::Vec(id) => self.body.vectors[id.index()].clone(),
                        other => vec![other],
                    };
                    for e in elements {
                        self.log.push(self.read(e, Width::of(access.ty)));
                    }
                    continue;
                }
                Op::Mov(_) => (get(0), None),
                Op::IAdd(..) => (get(0).zip(get(1)).map(|(a, b)| a.wrapping_add(b)), None),
                Op::IMul(..) => (get(0).zip(get(1)).map(|(a, b)| a.wrapping_mul(b)), None),
                Op::IMad(..) => {
                    let sum = get(0).zip(get(1)).zip(get(2));
                    (sum.map(|((a, b), c)| a.wrapping_mul(b).wrapping_add(c)), None)
                }
                Op::Pack64 => (get(0).zip(get(1)).map(|(a, b)| a | b << 32), None),
                Op::Unpack64(w) => (get(0).map(|a| a >> (32 * w)), None),
                Op::AddCarry(_) => {
                    let sum = get(0).zip(get(1)).zip(get(2)).map(|((a, b), c)| a + b + c);
                    (sum, sum.map(|s| s >> 32))
                }
                Op::Setp { .. } => (get(0).zip(get(1)).map(|(a, b)| u64::from((a as i32) < b as i32)), None),
                Op::Selp(_) => {
                    let (a, b, c) = (get(0), get(1), get(2));
                    (c.and_then(|c| if c != 0 { a } else { b }), None)
                }
                other => panic!("{other:?}"),
            };
            self.write(inst.dst, shape.dst, value);
            self.write(inst.dst2, Width::One, second);
        }
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn liveness_matches_its_definition(body in program()) {
        let cfg = Cfg::new(&body);
        let liveness = Liveness::new(&body, &cfg);
        let live = live_before(&body);
        let n = body.registers.len() as u32;
        for value in 0..n + body.predicates {
            let register = body.registers.get(value as usize).map(|&width| Value::Reg(Reg(value), width));
            let segments = liveness.segments(register.unwrap_or_else(|| Value::Pred(Pred(value - n))));
            prop_assert!(segments.windows(2).all(|w| w[0].end <= w[1].start));
            for (pc, before) in live[..body.insts.len()].iter().enumerate() {
                let position = 2 * pc as u32;
                let found = segments.iter().any(|s| s.start <= position && position < s.end);
                prop_assert_eq!(found, before.contains(&value), "value {} before {}", value, pc);
            }
        }
    }

    #[test]
    fn values_that_live_together_lie_apart(body in program()) {
        let cfg = Cfg::new(&body);
        let liveness = Liveness::new(&body, &cfg);
        let allocation = Allocation::new(&body, &liveness);
        let live = live_before(&body);
        let n = body.registers.len() as u32;
        for pc in 0..body.insts.len() {
            let mut together = live_after(&body, &live, pc);
            body.insts[pc].for_each_def(&body, |v| {
                together.insert(match v {
                    Value::Reg(r, _) => r.0,
                    Value::Pred(p) => n + p.0,
                });
            });
            for (set, position) in [(&live[pc], 2 * pc as u32), (&together, 2 * pc as u32 + 1)] {
                let mut words = BTreeSet::new();
                for &v in set {
                    if v < n {
                        let web = liveness.register_web(Reg(v), position).expect("a web");
                        let place = allocation.register(web).0;
                        let width = body.registers[v as usize].words();
                        prop_assert_eq!(place % width, 0);
                        prop_assert!(place + width <= allocation.register_count);
                        for w in place..place + width {
                            prop_assert!(words.insert(("r", w)), "word {} is taken twice at {}", w, pc);
                        }
                    } else {
                        let web = liveness.predicate_web(Pred(v - n), position).expect("a web");
                        let place = allocation.predicate(web).0;
                        prop_assert!(place < allocation.predicate_count);
                        prop_assert!(words.insert(("p", place)), "predicate {} is taken twice at {}", place, pc);
                    }
                }
            }
        }
        let registers = (0..n).map(Reg).zip(body.registers.iter().copied());
        let words = registers.map(|(r, width)| (liveness.segments(Value::Reg(r, width)), width.words()));
        let least = most_live(words, &body);
        prop_assert!(allocation.register_count >= least);
        // Random jumps make live ranges full of holes; with compiled code the result is within a register or two.
        prop_assert!(allocation.register_count <= least + least / 2 + 4, "{} of {}", allocation.register_count, least);
        let predicates = (0..body.predicates).map(|p| (liveness.segments(Value::Pred(Pred(p))), 1));
        prop_assert!(allocation.predicate_count >= most_live(predicates, &body));
    }

    #[test]
    fn programs_compute_the_same_on_physical_registers(body in program(), optimise in any::<bool>()) {
        let mut expected = Lane::new(&body, 2);
        let complete = expected.run(400);
        let physical = link::prepare(&body, link::Passes { optimise, ..Default::default() }).body;
        let mut found = Lane::new(&physical, 1);
        // Optimised code gets further with as many instructions, so it may only be ahead, and is given more.
        found.run(if optimise { 800 } else { 400 });
        if complete {
            prop_assert!(expected.log.len() <= found.log.len());
            prop_assert!(optimise || expected.log.len() == found.log.len());
        }
        for (i, (e, f)) in expected.log.iter().zip(&found.log).enumerate() {
            prop_assert!(e.is_none() || e == f, "output {}: {:?} became {:?}", i, e, f);
        }
    }
}

#[test]
fn a_guarded_write_keeps_the_old_value_alive() {
    // r0 is set, overwritten for some lanes only, and read. r1 is live in between.
    let insts = vec![
        mov(0, imm(1)),
        mov(1, imm(2)),
        Inst::new(output(Ty::U32, 1), Dst::None, &[imm(0), imm(0), r(1)]),
        mov(0, imm(3)).when(0),
        Inst::new(output(Ty::U32, 1), Dst::None, &[imm(0), imm(0), r(0)]),
        ret(),
    ];
    let body = body(2, &[], 1, insts);
    let liveness = Liveness::new(&body, &Cfg::new(&body));
    let segments = |r| liveness.segments(Value::Reg(Reg(r), Width::One));
    assert_eq!(segments(0), [Segment { start: 1, end: 9 }]);
    assert_eq!(segments(1), [Segment { start: 3, end: 5 }]);
    assert_eq!(Allocation::new(&body, &liveness).register_count, 2);
}

#[test]
fn unrelated_lives_of_a_register_are_told_apart() {
    // r0 has two lives. Its second one begins while r1, which took its register, is still live.
    let out = |a| Inst::new(output(Ty::U32, 1), Dst::None, &[imm(0), imm(0), r(a)]);
    let insts = vec![
        mov(0, imm(1)),
        add(1, r(0), imm(1)),
        mov(0, imm(2)),
        out(1),
        bra(7).when(0),
        mov(0, imm(3)),
        mov(0, imm(4)).when(1),
        out(0),
        ret(),
    ];
    let body = body(2, &[], 2, insts);
    let cfg = Cfg::new(&body);
    let liveness = Liveness::new(&body, &cfg);
    assert_eq!(liveness.web_counts(), (3, 2));
    assert_ne!(liveness.register_web(Reg(0), 2), liveness.register_web(Reg(0), 5));
    assert_eq!(liveness.register_web(Reg(0), 5), liveness.register_web(Reg(0), 11));
    let prepared = link::prepare(&body, link::Passes::default());
    let text = print::body(&prepared.body).to_string();
    assert_eq!(prepared.registers, 2, "{text}");
}

#[test]
fn narrow_values_fill_broken_pairs() {
    // Narrow, wide, narrow, wide, all live to the end: six words, no gap.
    let wide_mov = |d| Inst::new(Op::Mov(Ty::B64), dr(d), &[imm(0)]);
    let mut insts = vec![mov(0, imm(0)), wide_mov(1), mov(2, imm(0)), wide_mov(3)];
    insts.push(Inst::new(output(Ty::U32, 1), Dst::None, &[r(1), imm(0), r(0)]));
    insts.push(Inst::new(output(Ty::U32, 1), Dst::None, &[r(3), imm(0), r(2)]));
    insts.push(ret());
    let body = body(4, &[1, 3], 0, insts);
    let allocation = Allocation::new(&body, &Liveness::new(&body, &Cfg::new(&body)));
    assert_eq!(allocation.register_count, 6);
}

#[test]
fn large_functions() {
    // 100,000 instructions in 20,000 blocks, 100,000 registers: most die young, a few live throughout.
    let blocks = 20_000u32;
    let long = 40;
    let mut insts: Vec<Inst> = (0..long).map(|i| mov(i, imm(i))).collect();
    let mut next = long;
    for b in 0..blocks {
        insts.push(add(next, r(b % long), imm(1)));
        insts.push(add(next + 1, r(next), r((b + 7) % long)));
        insts.push(add(next + 2, r(next + 1), r(next)));
        insts.push(setp(Cmp::Lt, b, r(next + 2), imm(0)));
        insts.push(bra(insts.len() as u32 + 1).when(b));
        next += 3;
    }
    insts.extend((0..long).map(|i| add(next, r(i), r(i))));
    insts.push(ret());
    let prepared = link::prepare(&body(next + 1, &[], blocks, insts), link::Passes::default());
    assert_eq!((prepared.registers, prepared.predicates), (long + 2, 1));

    // One block, everything defined first, and the first sum taken before anything dies.
    let n = 30_000;
    let mut insts: Vec<Inst> = (0..n).map(|i| mov(i, imm(i))).collect();
    insts.extend((0..n).map(|i| add(n, r(i), r(n - 1 - i))));
    insts.push(ret());
    assert_eq!(link::prepare(&body(n + 1, &[], 0, insts), link::Passes::default()).registers, n + 1);
}
