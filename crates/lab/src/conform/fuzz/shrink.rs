//! Shrinks a program that shows a difference.

use super::program::{Program, Stmt};

impl Program {
    /// Drops statements as long as `interesting` holds for the rest: first large parts of lists, then single
    /// statements, then the control flow around others.
    pub(super) fn shrink(&self, mut interesting: impl FnMut(&Program) -> bool) -> Program {
        let mut best = self.clone();
        loop {
            let before = best.statements();
            for list in 0.. {
                let Some(length) = nth_list(&mut best, list).map(|l| l.len()) else { break };
                shrink_list(&mut best, list, length, &mut interesting);
            }
            if best.statements() == before {
                return best;
            }
        }
    }
}

/// The `n`th list of statements of a program, in a fixed order.
fn nth_list(program: &mut Program, n: usize) -> Option<&mut Vec<Stmt>> {
    fn find<'a>(list: &'a mut Vec<Stmt>, n: &mut usize) -> Option<&'a mut Vec<Stmt>> {
        if *n == 0 {
            return Some(list);
        }
        *n -= 1;
        list.iter_mut().flat_map(Stmt::lists_mut).find_map(|inner| find(inner, n))
    }
    let mut n = n;
    let Program { body, functions, .. } = program;
    std::iter::once(body).chain(functions).find_map(|list| find(list, &mut n))
}

fn shrink_list(
    best: &mut Program,
    list: usize,
    length: usize,
    interesting: &mut impl FnMut(&Program) -> bool,
) {
    let mut attempt = |best: &mut Program, change: &dyn Fn(&mut Vec<Stmt>)| {
        let mut smaller = best.clone();
        let Some(target) = nth_list(&mut smaller, list) else { return false };
        change(target);
        let better = smaller != *best && interesting(&smaller);
        if better {
            *best = smaller;
        }
        better
    };
    let mut piece = length.max(1);
    while piece > 0 {
        let mut at = 0;
        while at < nth_list(best, list).map_or(0, |l| l.len()) {
            let dropped = attempt(best, &|l| drop(l.drain(at..l.len().min(at + piece))));
            if !dropped {
                at += piece;
            }
        }
        piece /= 2;
    }
    // Replace a statement by what is inside, if only that matters.
    let mut at = 0;
    while let Some(inner) = nth_list(best, list).and_then(|l| l.get(at)).map(|s| s.lists().len()) {
        let unwrapped = (0..inner).any(|which| {
            attempt(best, &|l| {
                let inside = l[at].lists()[which].clone();
                l.splice(at..=at, inside);
            })
        });
        if !unwrapped {
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::fuzz::Options;

    #[test]
    fn one_statement_remains() {
        let contains = |p: &Program| p.ptx().contains("red.global.add.u64");
        let seed = (0..).find(|&s| contains(&Program::generate(s, Options::default()))).unwrap();
        let small = Program::generate(seed, Options::default()).shrink(contains);
        assert_eq!(small.statements(), 1, "{}", small.ptx());
    }
}
