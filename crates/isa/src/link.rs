//! Links a kernel: collects the functions it reaches, runs the passes over each, and joins them into one code array in
//! which every address is known. Start at [`link()`]; [`prepare`] lists the passes in order.

use std::cell::OnceCell;

use crate::cfg::*;
use crate::diag::Diagnostic;
use crate::dominators::*;
use crate::ends::*;
use crate::inst::*;
use crate::kernel::*;
use crate::liveness::*;
use crate::lock_loops::*;
use crate::loops::*;
use crate::module::*;
use crate::optimise::{optimise, uniform_additions};
use crate::reconvergence::*;
use crate::regalloc::*;
use crate::released::*;
use crate::spin::*;
use crate::types::*;
use crate::visit::*;
use crate::webs::*;

/// Why a kernel cannot be linked, or a variable has no initial value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    #[error("kernel `{name}` is declared but has no body")]
    NoBody { name: String, span: Span },
    /// The kernel, or a function that it reaches, needs what the model does not have.
    #[error("{}", .0.iter().map(|each| each.message.as_str()).collect::<Vec<_>>().join("; "))]
    NotModelled(Vec<Diagnostic>),
    #[error("`{caller}` calls `{callee}`, which is declared but has no body")]
    UndefinedFunction { caller: String, callee: String, span: Span },
    #[error("variable `{name}` has no address")]
    NoAddress { name: String, span: Span },
    /// Shared memory has no address before a kernel runs.
    #[error("the initial value of `{name}` holds the address of shared variable `{target}`")]
    SharedAddress { name: String, target: String, span: Span },
    /// The initial value, or an address in it, does not fit the variable.
    #[error("the initial value of `{name}` is larger than the variable")]
    Initializer { name: String, span: Span },
    /// A 32-bit register where the instruction moves 64 bits.
    #[error("`{function}` uses a 32-bit register for a 64-bit operand")]
    Width { function: String, span: Span },
    /// A count or size that does not fit the machine's 32-bit fields.
    #[error("{what} of kernel `{name}` exceeds 32 bits")]
    TooLarge { name: String, what: &'static str },
}

/// A function after all passes: physical registers, reconvergence points set. Positions are the new body's.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub body: Body,
    /// 32-bit registers per activation.
    pub registers: u32,
    /// Predicates per activation.
    pub predicates: u32,
    /// By header.
    pub loops: Vec<Loop>,
    pub atomics: Vec<AtomicLoop>,
    /// Loads that take a lock bit and never check whether they got it.
    pub unverified: Vec<Pc>,
    /// Atomic additions that a compiler makes once for a whole warp.
    pub aggregated: Vec<Pc>,
    /// Loads that take the lock bit of a statically known word.
    pub lock_words: Vec<(Pc, SymbolUse)>,
}

/// Which passes run that not every machine needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passes {
    /// Atomics on shared memory become loops around lock bits.
    pub lock_bits: bool,
    /// Virtual registers are optimised and scheduled as a compiler would.
    pub optimise: bool,
}

/// Runs the passes over one function.
pub(crate) fn prepare(body: &Body, passes: Passes) -> Prepared {
    let optimised = (passes.optimise && !body.allocated).then(|| optimise(body));
    let body = optimised.as_ref().unwrap_or(body);
    let mut cfg = Cfg::new(body);
    let dominators = DominatorTree::dominators(&cfg);
    let mut post_dominators = DominatorTree::post_dominators(&cfg);
    let forest = LoopForest::new(&cfg, &dominators);
    let liveness = Liveness::new(body, &cfg);
    let webs = separate(body, &liveness);
    // Spins are found before atomics are expanded: the program's own code shows what it waits for.
    let spins = spinning_latches(&webs, &cfg, &post_dominators, &forest);
    let mut loops: Vec<Loop> =
        forest.loops.iter().zip(&spins).flat_map(|(l, spins)| report(&cfg, l, spins)).collect();

    heed(&mut loops, &body.lock_notes);
    let places = Places::new(&webs);
    let code = Code {
        body: &webs,
        cfg: &cfg,
        post_dominators: &post_dominators,
        places: &places,
        loops: &loops,
        liveness: OnceCell::new(),
    };
    let ends: Vec<WaitEnds> = loops.iter().map(|l| places.wait_ends(&code, l)).collect();
    loops.iter_mut().zip(ends).for_each(|(l, ends)| l.ends = ends);
    let mut lock_words = places.lock_words();

    let mut body = body.clone();
    let mut atomics = Vec::new();
    if let Some(expanded) = passes.lock_bits.then(|| expand(&mut body)).flatten() {
        cfg = Cfg::new(&body);
        post_dominators = DominatorTree::post_dominators(&cfg);
        loops = loops_after(loops, &expanded);
        lock_words.iter_mut().for_each(|(pc, _)| *pc = expanded.start(*pc));
        atomics = expanded.atomics;
    }
    set_reconvergence(&mut body, &cfg, &post_dominators);
    let liveness = Liveness::new(&body, &cfg);
    let unverified = unverified(&body, &liveness);
    if body.allocated {
        let (registers, predicates) = (body.registers.len() as u32, body.predicates);
        let aggregated = Vec::new();
        return Prepared { body, registers, predicates, loops, atomics, unverified, aggregated, lock_words };
    }
    let aggregated = if passes.optimise { uniform_additions(&body) } else { Vec::new() };
    let allocation = Allocation::new(&body, &liveness);
    allocation.apply(&mut body, &liveness);
    let (registers, predicates) = (allocation.register_count, allocation.predicate_count);
    Prepared { body, registers, predicates, loops, atomics, unverified, aggregated, lock_words }
}

/// Notes on locks in the text override what the analysis found.
fn heed(loops: &mut [Loop], notes: &[(Pc, LockNote)]) {
    for &(pc, note) in notes {
        let holds = |l: &&mut Loop| l.header <= pc && l.latches.iter().any(|&latch| pc <= latch);
        match note {
            LockNote::Release => {
                loops.iter_mut().filter(|l| l.spins_on == Some(pc)).for_each(|l| l.spins_on = None);
            }
            LockNote::Acquire | LockNote::Wait => {
                if let Some(l) = loops.iter_mut().filter(holds).max_by_key(|l| l.depth) {
                    l.spins_on = Some(pc);
                }
            }
        }
    }
}

/// The loops at their new positions, together with those of the expanded atomics.
fn loops_after(loops: Vec<Loop>, expanded: &Expanded) -> Vec<Loop> {
    let moved = loops.into_iter().map(|l| Loop {
        header: expanded.start(l.header),
        latches: l.latches.into_iter().map(|pc| expanded.last(pc)).collect(),
        spins_on: l.spins_on.map(|pc| expanded.access(pc)),
        ends: l.ends.at(|pc| expanded.access(pc)),
        ..l
    });
    let mut loops: Vec<Loop> = moved.collect();
    let around = |pc: Pc| {
        let holds = |l: &&Loop| l.header <= pc && l.latches.iter().any(|&latch| pc <= latch);
        loops.iter().filter(holds).map(|l| l.depth).max().unwrap_or(0)
    };
    let made = expanded.atomics.iter().map(|atomic| Loop {
        header: atomic.load,
        latches: vec![atomic.branch],
        depth: around(atomic.load) + 1,
        spins_on: Some(atomic.load),
        of_atomic: true,
        ends: WaitEnds::Elsewhere,
    });
    let made: Vec<Loop> = made.collect();
    loops.extend(made);
    loops.sort_by_key(|l| (l.header, l.depth));
    loops
}

/// Loads that take a lock bit whose success predicate is never read.
fn unverified(body: &Body, liveness: &Liveness) -> Vec<Pc> {
    let ignored = |&(at, inst): &(usize, &Inst)| {
        let written = 2 * at as u32 + 1;
        let unread = |p: Pred| {
            let of = liveness.segments(Value::Pred(p)).iter().find(|s| s.start <= written && written < s.end);
            of.is_none_or(|s| s.end == written + 1)
        };
        matches!(inst.op, Op::LdLock(_))
            && match inst.dst2 {
                Dst::Pred(p) => unread(p),
                _ => true,
            }
    };
    body.insts.iter().enumerate().filter(ignored).map(|(at, _)| Pc(at as u32)).collect()
}

/// A loop as users see it. If only some of its backward branches spin, these form a second loop inside the first.
fn report(cfg: &Cfg, natural: &NaturalLoop, spins: &[Option<Pc>]) -> Vec<Loop> {
    let mut loops: Vec<Loop> = Vec::new();
    for (latch, &spins_on) in natural.latches.iter().zip(spins) {
        let branch = cfg.blocks[latch.index()].last();
        match loops.iter_mut().find(|l| l.spins_on == spins_on) {
            Some(l) => l.latches.push(branch),
            None => loops.push(Loop {
                header: cfg.blocks[natural.header.index()].start,
                latches: vec![branch],
                depth: natural.depth,
                spins_on,
                of_atomic: false,
                ends: WaitEnds::Elsewhere,
            }),
        }
    }
    if loops.len() > 1 {
        loops.sort_by_key(|l| l.spins_on);
        loops.iter_mut().filter(|l| l.spins_on.is_some()).for_each(|l| l.depth += 1);
    }
    loops
}

/// Links kernel `entry` with every function that it can call.
pub fn link(module: &Module, entry: FuncId, addresses: &AddressMap) -> Result<Kernel, LinkError> {
    let graph = CallGraph::new(module, entry)?;
    let shared = SharedLayout::new(module, &graph)?;
    let function = &module.functions[entry.index()];
    let too_large = |what| LinkError::TooLarge { name: function.name.clone(), what };

    let mut kernel = Kernel {
        name: function.name.clone(),
        code: Vec::new(),
        origins: Vec::new(),
        source: module.source.clone(),
        address_bits: module.address_bits,
        functions: Vec::new(),
        vectors: Vec::new(),
        tables: Vec::new(),
        calls: Vec::new(),
        imms: Vec::new(),
        params: function.params.clone(),
        param_bytes: function.param_bytes,
        bounds: function.bounds.clone(),
        shared: shared.vars,
        static_shared_bytes: shared.static_bytes,
        dynamic_shared_offset: shared.dynamic_offset,
        registers: 0,
        recursive: false,
        local_bytes: 0,
        loops: Vec::new(),
        atomics: Vec::new(),
        unverified: Vec::new(),
        aggregated: Vec::new(),
        lock_words: Vec::new(),
        lock_notes: Vec::new(),
        sibs: Vec::new(),
        windows: addresses.windows,
    };
    let resolver = Resolver { module, addresses, shared: Some(&shared.offsets) };
    // Every frame size is a multiple of the strictest alignment, so that each frame is aligned at any stack depth.
    let quantum = graph.bodies().map(|b| b.frame_align).fold(16, u32::max);
    for &id in &graph.functions {
        let function = &module.functions[id.index()];
        let Some(body) = &function.body else { continue };
        check_widths(function, body)?;
        let start = u32::try_from(kernel.code.len()).map_err(|_| too_large("the code"))?;
        let passes = Passes { lock_bits: addresses.lock_bits, optimise: addresses.optimise };
        let prepared = prepare(body, passes);
        let frame_bytes = body.frame_bytes.checked_next_multiple_of(quantum);
        kernel.functions.push(FunctionImage {
            name: function.name.clone(),
            id,
            start: Pc(start),
            end: Pc(start + prepared.body.insts.len() as u32),
            registers: prepared.registers,
            predicates: prepared.predicates,
            frame_bytes: frame_bytes.ok_or_else(|| too_large("a frame"))?,
            frame_vars: body.frame_vars.clone(),
        });
        append(&mut kernel, prepared, &graph, &resolver)?;
    }
    // No instruction may have the number of `Pc::RETURN`.
    if kernel.code.len() >= u32::MAX as usize {
        return Err(too_large("the code"));
    }

    let depth = |weight: &dyn Fn(&FunctionImage) -> u32| -> u64 {
        let weights: Vec<u64> = kernel.functions.iter().map(|f| u64::from(weight(f))).collect();
        graph.deepest(&weights)
    };
    let registers = depth(&|f| f.registers);
    let local_bytes = depth(&|f| f.frame_bytes);
    kernel.registers = u32::try_from(registers).map_err(|_| too_large("the register count"))?;
    kernel.local_bytes = u32::try_from(local_bytes).map_err(|_| too_large("local memory"))?;
    kernel.recursive = graph.recursive();
    Ok(kernel)
}

/// A 64-bit operand in a register declared with 32 bits would read the neighbouring register.
fn check_widths(function: &Function, body: &Body) -> Result<(), LinkError> {
    if body.allocated {
        return Ok(());
    }
    for (pc, inst) in body.insts.iter().enumerate() {
        let mut fits = true;
        let mut check = |value: Value| {
            if let Value::Reg(r, width) = value {
                fits &= width.words() <= body.registers[r.index()].words();
            }
        };
        inst.for_each_use(body, &mut check);
        inst.for_each_def(body, &mut check);
        if !fits {
            let span = body.origins.get(pc).map_or(Span::default(), |o| o.span);
            return Err(LinkError::Width { function: function.name.clone(), span });
        }
    }
    Ok(())
}

/// Appends a prepared function to the kernel and rebases all its indices.
fn append(
    kernel: &mut Kernel,
    prepared: Prepared,
    graph: &CallGraph,
    resolver: &Resolver,
) -> Result<(), LinkError> {
    let mut body = prepared.body;
    let code = kernel.code.len() as u32;
    let vectors = kernel.vectors.len() as u32;
    let tables = kernel.tables.len() as u32;
    let calls = kernel.calls.len() as u32;
    let imms = kernel.imms.len() as u32;
    kernel.imms.append(&mut body.imms);

    let symbols = body.symbols;
    let kernel_imms = &mut kernel.imms;
    let mut operand = |o: &mut Operand| -> Result<(), LinkError> {
        match o {
            Operand::Imm64(id) => id.0 += imms,
            Operand::Vec(id) => id.0 += vectors,
            Operand::Symbol(id) => {
                let address = resolver.address(symbols[id.index()])?;
                *o = match u32::try_from(address) {
                    Ok(small) => Operand::Imm(small),
                    Err(_) => {
                        kernel_imms.push(address);
                        Operand::Imm64(ImmId(kernel_imms.len() as u32 - 1))
                    }
                };
            }
            _ => {}
        }
        Ok(())
    };
    let rebase = |o: &mut Operand, by: u32| {
        if let Operand::Imm(i) = o
            && *i != Pc::RETURN.0
        {
            *i += by;
        }
    };

    for mut inst in body.insts {
        for dst in [&mut inst.dst, &mut inst.dst2] {
            if let Dst::Vec(id) = dst {
                id.0 += vectors;
            }
        }
        inst.src.iter_mut().try_for_each(&mut operand)?;
        match inst.op {
            Op::Ssy => rebase(&mut inst.src[0], code),
            Op::Bra => inst.src[..2].iter_mut().for_each(|pc| rebase(pc, code)),
            Op::Brx => {
                rebase(&mut inst.src[1], tables);
                rebase(&mut inst.src[2], code);
            }
            Op::Call => rebase(&mut inst.src[0], calls),
            _ => {}
        }
        kernel.code.push(inst);
    }
    body.origins.resize(kernel.code.len() - code as usize, Origin::default());
    kernel.origins.append(&mut body.origins);
    for mut vector in body.vectors {
        vector.iter_mut().try_for_each(&mut operand)?;
        kernel.vectors.push(vector);
    }
    let move_pc = |pc: Pc| Pc(pc.0 + code);
    kernel.tables.extend(body.tables.into_iter().map(|t| t.into_iter().map(move_pc).collect()));
    for call in body.calls {
        let callee = match call.callee {
            Callee::Direct(id) => {
                LinkedCallee::Direct(graph.index[id.index()].expect("callees are collected"))
            }
            Callee::Indirect(mut callee) => {
                operand(&mut callee)?;
                LinkedCallee::Indirect(callee)
            }
        };
        kernel.calls.push(LinkedCall { callee, args: call.args, returns: call.returns });
    }
    kernel.loops.extend(prepared.loops.into_iter().map(|l| Loop {
        header: move_pc(l.header),
        latches: l.latches.into_iter().map(move_pc).collect(),
        spins_on: l.spins_on.map(move_pc),
        ends: l.ends.at(move_pc),
        ..l
    }));
    kernel.atomics.extend(prepared.atomics.into_iter().map(|made| AtomicLoop {
        load: move_pc(made.load),
        store: move_pc(made.store),
        branch: move_pc(made.branch),
        ..made
    }));
    for (pc, word) in prepared.lock_words {
        kernel.lock_words.push((move_pc(pc), resolver.address(word)?));
    }
    kernel.unverified.extend(prepared.unverified.into_iter().map(move_pc));
    kernel.aggregated.extend(prepared.aggregated.into_iter().map(move_pc));
    kernel.lock_notes.extend(body.lock_notes.into_iter().map(|(pc, note)| (move_pc(pc), note)));
    kernel.sibs.extend(body.sibs.into_iter().map(move_pc));
    Ok(())
}

/// Calls `f` for each operand of a body, including those in vectors and call sites.
fn for_each_operand(body: &Body, mut f: impl FnMut(Operand)) {
    body.insts.iter().flat_map(|i| i.src).for_each(&mut f);
    body.vectors.iter().flatten().copied().for_each(&mut f);
    for call in &body.calls {
        if let Callee::Indirect(operand) = call.callee {
            f(operand);
        }
    }
}

/// The call graph of one kernel.
struct CallGraph<'a> {
    module: &'a Module,
    /// The kernel, then the functions it reaches, in order of discovery.
    functions: Vec<FuncId>,
    /// Position in `functions` of each function of the module.
    index: Vec<Option<u32>>,
    /// Callees (positions in `functions`) of each function.
    callees: Vec<Vec<u32>>,
}

impl<'a> CallGraph<'a> {
    fn new(module: &'a Module, entry: FuncId) -> Result<Self, LinkError> {
        let function = &module.functions[entry.index()];
        if function.body.is_none() {
            return Err(LinkError::NoBody { name: function.name.clone(), span: function.span });
        }
        let mut graph = CallGraph {
            module,
            functions: Vec::new(),
            index: vec![None; module.functions.len()],
            callees: Vec::new(),
        };
        let mut targets: Option<Vec<FuncId>> = None;
        graph.add(entry);
        let mut next = 0;
        while let Some(&id) = graph.functions.get(next) {
            let caller = &module.functions[id.index()];
            if !caller.refusals.is_empty() {
                return Err(LinkError::NotModelled(caller.refusals.clone()));
            }
            let Some(body) = &caller.body else { break };
            let mut callees = Vec::new();
            for (pc, inst) in body.insts.iter().enumerate() {
                let (Op::Call, Operand::Imm(site)) = (inst.op, inst.src[0]) else { continue };
                match body.calls[site as usize].callee {
                    Callee::Direct(callee) => {
                        if module.functions[callee.index()].body.is_none() {
                            return Err(LinkError::UndefinedFunction {
                                caller: caller.name.clone(),
                                callee: module.functions[callee.index()].name.clone(),
                                span: body.origins.get(pc).map_or(caller.span, |o| o.span),
                            });
                        }
                        callees.push(graph.add(callee));
                    }
                    Callee::Indirect(_) => {
                        let targets = targets.get_or_insert_with(|| address_taken(module));
                        callees.extend(targets.iter().map(|&t| graph.add(t)));
                    }
                }
            }
            callees.sort_unstable();
            callees.dedup();
            graph.callees.push(callees);
            next += 1;
        }
        Ok(graph)
    }

    fn add(&mut self, id: FuncId) -> u32 {
        *self.index[id.index()].get_or_insert_with(|| {
            self.functions.push(id);
            self.functions.len() as u32 - 1
        })
    }

    fn bodies(&self) -> impl Iterator<Item = &'a Body> {
        self.functions.iter().filter_map(|f| self.module.functions[f.index()].body.as_ref())
    }

    /// The heaviest chain of calls from the kernel. Mutually recursive functions count once each.
    fn deepest(&self, weights: &[u64]) -> u64 {
        let components = self.components();
        let mut below = vec![0u64; components.len()];
        let mut component_of = vec![0; self.functions.len()];
        // Callees' components come before their callers'.
        for (c, members) in components.iter().enumerate() {
            members.iter().for_each(|&m| component_of[m as usize] = c);
            let callees = members.iter().flat_map(|&m| &self.callees[m as usize]);
            let deepest =
                callees.map(|&f| component_of[f as usize]).filter(|&o| o != c).map(|o| below[o]).max();
            let own: u64 = members.iter().map(|&m| weights[m as usize]).sum();
            below[c] = own + deepest.unwrap_or(0);
        }
        component_of.first().map_or(0, |&c| below[c])
    }

    fn recursive(&self) -> bool {
        self.components().iter().any(|c| c.len() > 1)
            || self.callees.iter().enumerate().any(|(f, callees)| callees.contains(&(f as u32)))
    }

    /// Strongly connected components, callees first (Tarjan's algorithm with an explicit stack).
    fn components(&self) -> Vec<Vec<u32>> {
        let n = self.functions.len();
        let mut components = Vec::new();
        let mut number = vec![0u32; n];
        let mut low = vec![0u32; n];
        let mut open = vec![false; n];
        let mut members: Vec<u32> = Vec::new();
        let mut stack: Vec<(u32, usize)> = Vec::new();
        let mut clock = 0;
        for root in 0..n as u32 {
            if number[root as usize] != 0 {
                continue;
            }
            stack.push((root, 0));
            while let Some((f, next)) = stack.last_mut() {
                let at = *f as usize;
                if *next == 0 {
                    clock += 1;
                    (number[at], low[at], open[at]) = (clock, clock, true);
                    members.push(*f);
                }
                if let Some(&callee) = self.callees[at].get(*next) {
                    *next += 1;
                    let callee_at = callee as usize;
                    if number[callee_at] == 0 {
                        stack.push((callee, 0));
                    } else if open[callee_at] {
                        low[at] = low[at].min(number[callee_at]);
                    }
                    continue;
                }
                stack.pop();
                if let Some(&(caller, _)) = stack.last() {
                    low[caller as usize] = low[caller as usize].min(low[at]);
                }
                if low[at] == number[at] {
                    let first = members.iter().rposition(|&m| m as usize == at).unwrap_or(0);
                    let component = members.split_off(first);
                    component.iter().for_each(|&m| open[m as usize] = false);
                    components.push(component);
                }
            }
        }
        components
    }
}

/// Device functions with a body whose address is used anywhere in the module: the targets of indirect calls.
fn address_taken(module: &Module) -> Vec<FuncId> {
    let mut taken = vec![false; module.functions.len()];
    let mut take = |symbol: Symbol| {
        if let Symbol::Function(f) = symbol {
            taken[f.index()] = true;
        }
    };
    for body in module.functions.iter().filter_map(|f| f.body.as_ref()) {
        for_each_operand(body, |o| {
            if let Operand::Symbol(id) = o {
                take(body.symbols[id.index()].symbol);
            }
        });
    }
    module.variables.iter().flat_map(|v| &v.relocations).for_each(|r| take(r.target.symbol));
    let callable = |f: &Function| f.body.is_some() && !f.is_kernel;
    let functions = module.functions.iter().enumerate();
    functions.filter(|&(i, f)| taken[i] && callable(f)).map(|(i, _)| FuncId(i as u32)).collect()
}

/// The layout of a kernel's shared memory.
struct SharedLayout {
    vars: Vec<SharedVar>,
    static_bytes: u32,
    dynamic_offset: u32,
    /// By variable of the module; `None` if the kernel does not use it.
    offsets: Vec<Option<u32>>,
}

impl SharedLayout {
    fn new(module: &Module, graph: &CallGraph) -> Result<Self, LinkError> {
        let mut used = vec![false; module.variables.len()];
        for body in graph.bodies() {
            body.shared.iter().for_each(|v| used[v.index()] = true);
            for_each_operand(body, |o| {
                if let Operand::Symbol(id) = o
                    && let Symbol::Variable(v) = body.symbols[id.index()].symbol
                {
                    used[v.index()] = module.variables[v.index()].space == Space::Shared;
                }
            });
        }
        let too_large = || LinkError::TooLarge {
            name: module.functions[graph.functions[0].index()].name.clone(),
            what: "shared memory",
        };
        let mut vars = Vec::new();
        let mut offsets = vec![None; module.variables.len()];
        let used = || module.variables.iter().enumerate().filter(|(i, _)| used[*i]);
        let mut at = 0u32;
        let mut place = |i: usize, var: &Variable, at: u32| {
            offsets[i] = Some(at);
            vars.push(SharedVar { name: var.name.clone(), offset: at, bytes: var.bytes as u32 });
        };
        for (i, var) in used().filter(|(_, v)| v.bytes > 0) {
            let offset = at.checked_next_multiple_of(var.align.max(1)).ok_or_else(too_large)?;
            let bytes = u32::try_from(var.bytes).map_err(|_| too_large())?;
            at = offset.checked_add(bytes).ok_or_else(too_large)?;
            place(i, var, offset);
        }
        let static_bytes = at;
        let dynamic = || used().filter(|(_, v)| v.bytes == 0);
        let align = dynamic().map(|(_, v)| v.align).fold(16, u32::max);
        let dynamic_offset = at.checked_next_multiple_of(align).ok_or_else(too_large)?;
        dynamic().for_each(|(i, var)| place(i, var, dynamic_offset));
        Ok(SharedLayout { vars, static_bytes, dynamic_offset, offsets })
    }
}

/// Turns symbols into addresses.
struct Resolver<'a> {
    module: &'a Module,
    addresses: &'a AddressMap,
    /// Offsets of shared variables, if a kernel is being linked.
    shared: Option<&'a [Option<u32>]>,
}

impl Resolver<'_> {
    fn address(&self, target: SymbolUse) -> Result<u64, LinkError> {
        let windows = &self.addresses.windows;
        let address = match target.symbol {
            Symbol::Function(f) => windows.functions + 16 * u64::from(f.0),
            Symbol::Variable(v) => {
                let var = &self.module.variables[v.index()];
                let own = match var.space {
                    Space::Shared => self.shared.and_then(|s| s[v.index()]).map(u64::from),
                    _ => self.addresses.variables.get(v.index()).copied(),
                };
                let own =
                    own.ok_or_else(|| LinkError::NoAddress { name: var.name.clone(), span: var.span })?;
                if target.generic { own.wrapping_add(windows.base(var.space)) } else { own }
            }
        };
        let address = address.wrapping_add_signed(target.offset);
        Ok(if self.module.address_bits == 32 { address & 0xffff_ffff } else { address })
    }
}

/// The initial value of a variable, padded with zeros to its size, with addresses filled in.
pub fn variable_image(module: &Module, var: VarId, addresses: &AddressMap) -> Result<Vec<u8>, LinkError> {
    let variable = &module.variables[var.index()];
    let too_small = || LinkError::Initializer { name: variable.name.clone(), span: variable.span };
    let bytes = usize::try_from(variable.bytes).map_err(|_| too_small())?;
    if variable.init.len() > bytes {
        return Err(too_small());
    }
    let mut image = variable.init.clone();
    image.resize(bytes, 0);
    let resolver = Resolver { module, addresses, shared: None };
    for relocation in &variable.relocations {
        if let Symbol::Variable(v) = relocation.target.symbol
            && module.variables[v.index()].space == Space::Shared
        {
            return Err(LinkError::SharedAddress {
                name: variable.name.clone(),
                target: module.variables[v.index()].name.clone(),
                span: variable.span,
            });
        }
        let address = resolver.address(relocation.target)?;
        let shifted = address.checked_shr(u32::from(relocation.shift)).unwrap_or(0).to_le_bytes();
        let start = usize::try_from(relocation.offset).map_err(|_| too_small())?;
        let count = usize::from(relocation.bytes);
        let place =
            start.checked_add(count).and_then(|end| image.get_mut(start..end)).ok_or_else(too_small)?;
        place.copy_from_slice(shifted.get(..count).ok_or_else(too_small)?);
    }
    Ok(image)
}
