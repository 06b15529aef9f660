//! Random programs as trees of statements.

use super::leaf::{leaf, together};
use crate::random::Random;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stmt {
    /// Instructions without control flow.
    Leaf(String),
    /// Threads whose predicate holds go one way, the others another.
    If { predicate: usize, then: Vec<Stmt>, other: Vec<Stmt> },
    /// Each thread goes round so often as the low bits of a register say, and leaves early if a predicate holds at the end of a
    /// turn.
    Loop { register: usize, mask: u32, leave: Option<usize>, body: Vec<Stmt> },
    /// All threads go round so often.
    Repeat { times: u32, body: Vec<Stmt> },
    /// Each thread takes the arm that the low bits of a register say; their number is a power of two.
    Switch { register: usize, arms: Vec<Vec<Stmt>> },
    /// Calls a function of the program with two 32-bit registers and a 64-bit one; the result is a 32-bit one.
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

/// What programs may consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Statements of the kernel, about.
    pub statements: usize,
    /// Depth of nested control flow.
    pub depth: usize,
    /// Device functions at most.
    pub functions: usize,
}

impl Default for Options {
    /// What recorded results are made with.
    fn default() -> Self {
        Options { statements: 50, depth: 3, functions: 2 }
    }
}

/// A kernel whose results do not depend on the machine or on the order in which threads run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What it was made from.
    pub seed: u64,
    /// CTAs.
    pub grid: u32,
    /// Threads of a CTA: whole warps of 32.
    pub block: u32,
    pub(super) body: Vec<Stmt>,
    pub(super) functions: Vec<Vec<Stmt>>,
}

impl Program {
    /// The program of a seed.
    pub fn generate(seed: u64, options: Options) -> Program {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(0x57a9));
        let block = random.pick(&[32, 64, 64, 96, 128]);
        let grid = 1 + random.below(3) as u32;
        let count = random.below(options.functions + 1);
        let mut maker = Maker { random, options, left: 0, functions: count, block, in_kernel: false };
        let functions = (0..count).map(|f| maker.function(f)).collect();
        maker.in_kernel = true;
        maker.functions = count;
        maker.left = options.statements;
        let mut body = Vec::new();
        while maker.left > 0 {
            maker.statement(&mut body, 0, true, 0);
        }
        Program { seed, grid, block, body, functions }
    }

    /// Statements, at any depth.
    pub fn statements(&self) -> usize {
        fn count(list: &[Stmt]) -> usize {
            list.iter().map(|s| 1 + s.lists().iter().map(|l| count(l)).sum::<usize>()).sum()
        }
        count(&self.body) + self.functions.iter().map(|f| count(f)).sum::<usize>()
    }
}

struct Maker {
    random: Random,
    options: Options,
    /// Statements still wanted.
    left: usize,
    /// Functions of the program.
    functions: usize,
    block: u32,
    in_kernel: bool,
}

impl Maker {
    /// A function, which calls only those after it.
    fn function(&mut self, number: usize) -> Vec<Stmt> {
        self.left = 3 + self.random.below(8);
        let mut body = Vec::new();
        while self.left > 0 {
            self.statement(&mut body, 1, false, number + 1);
        }
        body
    }

    /// Adds a statement. Where `converged`, all threads of the CTA come by together. `callable` is the first function that
    /// may be called.
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
