//! Random programs as trees of statements.

use super::leaf::{leaf, together};
use crate::random::Random;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stmt {
    /// Instructions without control flow.
    Leaf(String),
    /// Divergent: threads whose predicate holds take one branch, the others the other.
    If { predicate: usize, then: Vec<Stmt>, other: Vec<Stmt> },
    /// Divergent: each thread iterates as often as the low bits of a register say, and leaves early if a predicate
    /// holds at the end of an iteration.
    Loop { register: usize, mask: u32, leave: Option<usize>, body: Vec<Stmt> },
    /// Uniform: all threads iterate equally often.
    Repeat { times: u32, body: Vec<Stmt> },
    /// Each thread takes the arm that the low bits of a register select. The number of arms is a power of two.
    Switch { register: usize, arms: Vec<Vec<Stmt>> },
    /// Calls a function of the program with two 32-bit registers and a 64-bit one. The result is a 32-bit register.
    Call { function: usize, args: [usize; 3], result: usize },
}

impl Stmt {
    /// The lists of statements inside.
    pub(super) fn lists(&self) -> Vec<&Vec<Stmt>> {
        match self {
            Stmt::Leaf(_) | Stmt::Call { .. } => vec![],
            Stmt::If { then, other, .. } => vec![then, other],
            Stmt::Loop { body, .. } | Stmt::Repeat { body, .. } => vec![body],
            Stmt::Switch { arms, .. } => arms.iter().collect(),
        }
    }

    pub(super) fn lists_mut(&mut self) -> Vec<&mut Vec<Stmt>> {
        match self {
            Stmt::Leaf(_) | Stmt::Call { .. } => vec![],
            Stmt::If { then, other, .. } => vec![then, other],
            Stmt::Loop { body, .. } | Stmt::Repeat { body, .. } => vec![body],
            Stmt::Switch { arms, .. } => arms.iter_mut().collect(),
        }
    }
}

/// Limits of generated programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Approximate number of statements of the kernel.
    pub statements: usize,
    /// Depth of nested control flow.
    pub depth: usize,
    /// Maximum number of device functions.
    pub functions: usize,
}

impl Default for Options {
    /// Those that recorded results are made with.
    fn default() -> Self {
        Options { statements: 50, depth: 3, functions: 2 }
    }
}

/// A kernel whose results depend neither on the machine nor on the order in which threads run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub(super) seed: u64,
    /// Number of CTAs.
    pub(super) grid: u32,
    /// Threads per CTA: whole warps of 32.
    pub(super) block: u32,
    pub(super) body: Vec<Stmt>,
    pub(super) functions: Vec<Vec<Stmt>>,
}

impl Program {
    /// The program of a seed. Recorded results depend on it: a change makes them stale.
    pub fn generate(seed: u64, options: Options) -> Program {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(0x57a9));
        let block = random.pick(&[32, 64, 64, 96, 128]);
        let grid = 1 + random.below(3) as u32;
        let count = random.below(options.functions + 1);
        let mut generator = Generator { random, options, left: 0, functions: count, block, in_kernel: false };
        let functions = (0..count).map(|f| generator.function(f)).collect();
        generator.in_kernel = true;
        generator.functions = count;
        generator.left = options.statements;
        let mut body = Vec::new();
        while generator.left > 0 {
            generator.statement(&mut body, 0, true, 0);
        }
        Program { seed, grid, block, body, functions }
    }

    /// Number of statements, at any depth.
    pub(super) fn statements(&self) -> usize {
        fn count(list: &[Stmt]) -> usize {
            list.iter().map(|s| 1 + s.lists().iter().map(|l| count(l)).sum::<usize>()).sum()
        }
        count(&self.body) + self.functions.iter().map(|f| count(f)).sum::<usize>()
    }
}

struct Generator {
    random: Random,
    options: Options,
    /// Statements still to generate.
    left: usize,
    /// Number of functions of the program.
    functions: usize,
    block: u32,
    in_kernel: bool,
}

impl Generator {
    /// A function calls only later ones, so there is no recursion.
    fn function(&mut self, number: usize) -> Vec<Stmt> {
        self.left = 3 + self.random.below(8);
        let mut body = Vec::new();
        while self.left > 0 {
            self.statement(&mut body, 1, false, number + 1);
        }
        body
    }

    /// Adds a statement. `converged` says whether all threads of the CTA reach it together. `callable` is the first
    /// function that may be called.
    fn statement(&mut self, list: &mut Vec<Stmt>, depth: usize, converged: bool, callable: usize) {
        self.left = self.left.saturating_sub(1);
        let nested = depth < self.options.depth;
        let register = self.random.below(super::leaf::WORDS);
        let predicate = self.random.below(super::leaf::PREDICATES);
        let statement = match self.random.below(24) {
            0..3 if nested => {
                let then = self.list(depth, false, callable);
                let other =
                    if self.random.once_in(2) { self.list(depth, false, callable) } else { Vec::new() };
                Stmt::If { predicate, then, other }
            }
            3 if nested => {
                let mask = self.random.pick(&[1, 3, 7]);
                let leave = if self.random.once_in(2) { Some(predicate) } else { None };
                Stmt::Loop { register, mask, leave, body: self.list(depth, false, callable) }
            }
            4 if nested && converged => {
                let times = 1 + self.random.below(3) as u32;
                Stmt::Repeat { times, body: self.list(depth, true, callable) }
            }
            5 if nested => {
                let arms = self.random.pick(&[2, 4]);
                Stmt::Switch {
                    register,
                    arms: (0..arms).map(|_| self.list(depth, false, callable)).collect(),
                }
            }
            6 if callable < self.functions => Stmt::Call {
                function: callable + self.random.below(self.functions - callable),
                args: [
                    register,
                    self.random.below(super::leaf::WORDS),
                    self.random.below(super::leaf::WIDES),
                ],
                result: self.random.below(super::leaf::WORDS),
            },
            7..11 if converged => Stmt::Leaf(together(&mut self.random, self.block)),
            _ => Stmt::Leaf(leaf(&mut self.random, self.in_kernel)),
        };
        list.push(statement);
    }

    fn list(&mut self, depth: usize, converged: bool, callable: usize) -> Vec<Stmt> {
        let mut list = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            self.statement(&mut list, depth + 1, converged, callable);
        }
        list
    }
}
