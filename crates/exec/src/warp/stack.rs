//! The SIMT stack: divergent paths run one after the other and reconverge at the immediate post-dominator.

use warploom_isa::Pc;

use crate::kit::lane_mask::LaneMask;
use crate::warp::control::{Activation, Caller, Entry, Group, Stretch, Wait};

/// The top entry runs. An entry whose pc reaches its reconvergence point is popped; the entry below it then continues
/// with all lanes that reconverged.
#[derive(Clone, Debug)]
pub struct SimtStack {
    entries: Vec<StackEntry>,
    wait: Option<Wait>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StackEntry {
    pc: Pc,
    reconverge: Pc,
    mask: LaneMask,
    /// The first entry of an activation: popping it returns to the caller.
    is_call: bool,
    activation: Activation,
}

impl StackEntry {
    /// Whether it is another side of the same branch or call as `other`, not nested in it.
    fn is_beside(&self, other: &StackEntry) -> bool {
        self.reconverge == other.reconverge
            && self.is_call == other.is_call
            && self.activation.depth == other.activation.depth
            && other.pc != other.reconverge
    }
}

impl SimtStack {
    /// A stack without a path, of a warp whose state is saved in memory.
    pub fn empty() -> Self {
        SimtStack { entries: Vec::new(), wait: None }
    }

    /// Appends the whole stack to `out`. It must not be waiting.
    pub fn save(&self, out: &mut Vec<u32>) {
        debug_assert!(self.wait.is_none(), "a path that runs waits for nothing");
        out.push(self.entries.len() as u32);
        for entry in &self.entries {
            let Activation { function, registers, predicates, frame, depth, caller } = entry.activation;
            let mask = [entry.mask.0 as u32, (entry.mask.0 >> 32) as u32];
            out.extend([entry.pc.0, entry.reconverge.0, mask[0], mask[1], entry.is_call as u32]);
            out.extend([function, registers, predicates, frame, depth, caller.is_some() as u32]);
            if let Some(Caller { site, frame, resume }) = caller {
                out.extend([site, frame, resume.0]);
            }
        }
    }

    /// Reads what [`SimtStack::save`] wrote.
    pub fn restore(words: &mut impl Iterator<Item = u32>) -> Option<Self> {
        let mut word = || words.next();
        let mut entries = Vec::new();
        for _ in 0..word()? {
            let (pc, reconverge) = (Pc(word()?), Pc(word()?));
            let mask = LaneMask(word()? as u64 | (word()? as u64) << 32);
            let is_call = word()? == 1;
            let (function, registers, predicates) = (word()?, word()?, word()?);
            let (frame, depth) = (word()?, word()?);
            let caller = match word()? {
                0 => None,
                _ => Some(Caller { site: word()?, frame: word()?, resume: Pc(word()?) }),
            };
            let activation = Activation { function, registers, predicates, frame, depth, caller };
            entries.push(StackEntry { pc, reconverge, mask, is_call, activation });
        }
        Some(SimtStack { entries, wait: None })
    }

    /// All lanes of `mask` at the kernel's first instruction.
    pub fn new(start: Pc, mask: LaneMask, activation: Activation) -> Self {
        let entry = StackEntry { pc: start, reconverge: Pc::RETURN, mask, is_call: false, activation };
        SimtStack { entries: vec![entry], wait: None }
    }

    /// As a new one of the kernel's own activation.
    pub(crate) fn restart(&mut self, start: Pc, mask: LaneMask) {
        let activation = Activation::default();
        self.entries.clear();
        self.entries.push(StackEntry { pc: start, reconverge: Pc::RETURN, mask, is_call: false, activation });
        self.wait = None;
    }

    #[inline(always)]
    pub fn current(&self) -> Option<Group> {
        self.running().map(|(path, _)| path)
    }

    /// The path to run next, and its activation.
    #[inline(always)]
    pub fn running(&self) -> Option<(Group, &Activation)> {
        let top = self.entries.last()?;
        if self.wait.is_some() {
            return None;
        }
        Some((Group { pc: top.pc, mask: top.mask }, &top.activation))
    }

    #[inline(always)]
    pub(crate) fn straight(&self) -> Option<Stretch> {
        Some(Stretch::until(self.current()?, self.entries.last()?.reconverge))
    }

    #[inline(always)]
    pub(crate) fn arrive(&mut self, pc: Pc) {
        let top = self.top();
        top.pc = pc;
        if top.pc == top.reconverge {
            self.settle();
        }
    }

    /// The top path, with its activation and wait.
    pub fn top_path(&self) -> Option<(Group, Activation, Option<Wait>)> {
        self.entries.last().map(|e| (Group { pc: e.pc, mask: e.mask }, e.activation, self.wait))
    }

    /// All lanes by the entry that holds them, the top one first.
    pub fn paths(&self) -> Vec<(Group, Activation, Option<Wait>)> {
        let mut above = LaneMask::NONE;
        let mut paths = Vec::new();
        for (at, entry) in self.entries.iter().enumerate().rev() {
            let here = Group { pc: entry.pc, mask: entry.mask & !above };
            let wait = match self.entries.get(at + 1) {
                None => self.wait,
                Some(next) if next.is_beside(entry) => {
                    Some(Wait::OtherPath { first: above, reconverge: next.reconverge })
                }
                Some(_) => Some(Wait::Reconverge(above)),
            };
            if !here.mask.is_empty() && here.pc != Pc::RETURN {
                paths.push((here, entry.activation, wait));
            }
            above |= entry.mask;
        }
        paths
    }

    pub fn is_as(&self, other: &SimtStack) -> bool {
        self.entries == other.entries && self.wait == other.wait
    }

    #[inline]
    pub fn activation(&self) -> Activation {
        self.entries.last().expect("a running warp has a path").activation
    }

    #[inline]
    fn top(&mut self) -> &mut StackEntry {
        self.entries.last_mut().expect("a running warp has a path")
    }

    #[inline(always)]
    pub fn advance(&mut self) -> bool {
        let top = self.top();
        top.pc.0 += 1;
        let goes_on = top.pc != top.reconverge;
        if !goes_on {
            self.settle();
        }
        goes_on
    }

    /// Pops entries that have no lanes left or have reached their reconvergence point.
    fn settle(&mut self) {
        while let Some(top) = self.entries.last() {
            if !top.mask.is_empty() && (top.is_call || top.pc != top.reconverge) {
                break;
            }
            self.entries.pop();
        }
    }

    #[inline]
    pub fn branch(&mut self, groups: &[Group], reconverge: Pc) {
        if let [only] = groups {
            self.top().pc = only.pc;
            return self.settle();
        }
        let top = *self.top();
        // An entry with the same reconvergence point would only be popped together with the new ones.
        if top.reconverge == reconverge && !top.is_call {
            self.entries.pop();
        } else {
            self.top().pc = reconverge;
        }
        for group in groups.iter().rev().filter(|g| g.pc != reconverge) {
            self.entries.push(StackEntry {
                pc: group.pc,
                reconverge,
                mask: group.mask,
                is_call: false,
                ..top
            });
        }
        self.settle();
    }

    pub fn call(&mut self, entries: &[Entry]) {
        self.top().pc.0 += 1;
        for entry in entries.iter().rev() {
            self.entries.push(StackEntry {
                pc: entry.start,
                reconverge: Pc::RETURN,
                mask: entry.mask,
                is_call: true,
                activation: entry.activation,
            });
        }
    }

    pub fn ret(&mut self, mask: LaneMask) {
        self.top().pc.0 += 1;
        for entry in self.entries.iter_mut().rev() {
            entry.mask &= !mask;
            if entry.is_call {
                break;
            }
        }
        self.settle();
    }

    pub fn exit(&mut self, mask: LaneMask) {
        self.top().pc.0 += 1;
        for entry in &mut self.entries {
            entry.mask &= !mask;
        }
        self.settle();
    }

    pub fn wait(&mut self, wait: Wait) {
        self.wait = Some(wait);
    }

    pub fn release_barrier(&mut self, _mask: LaneMask) {
        self.wait = None;
        self.advance();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(function: u32) -> Activation {
        Activation { function, registers: 0, predicates: 0, frame: 0, depth: function, caller: None }
    }

    fn stack() -> SimtStack {
        SimtStack::new(Pc(0), LaneMask(0b1111), at(0))
    }

    fn go(pc: u32, mask: u64) -> Group {
        Group { pc: Pc(pc), mask: LaneMask(mask) }
    }

    #[test]
    fn both_sides_of_an_if_run_and_meet() {
        let mut stack = stack();
        stack.branch(&[go(10, 0b0011), go(1, 0b1100)], Pc(12));
        assert_eq!(stack.current(), Some(go(10, 0b0011)));
        stack.advance();
        stack.advance();
        assert_eq!(stack.current(), Some(go(1, 0b1100)));
        stack.branch(&[go(12, 0b1100)], Pc(12));
        assert_eq!(stack.current(), Some(go(12, 0b1111)));
    }

    #[test]
    fn a_loop_does_not_grow_the_stack() {
        let mut stack = stack();
        for lane in 0..3 {
            let mask = stack.current().unwrap().mask.0;
            stack.branch(&[go(0, mask & !(1 << lane)), go(5, 1 << lane)], Pc(5));
            assert!(stack.entries.len() <= 2);
        }
        assert_eq!(stack.current(), Some(go(0, 0b1000)));
        stack.branch(&[go(5, 0b1000)], Pc(5));
        assert_eq!(stack.current(), Some(go(5, 0b1111)));
    }

    #[test]
    fn lanes_that_return_early_wait_for_the_others() {
        let mut stack = stack();
        stack.call(&[Entry { start: Pc(100), mask: LaneMask(0b0111), activation: at(1) }]);
        assert_eq!(stack.activation(), at(1));
        stack.branch(&[go(110, 0b0001), go(101, 0b0110)], Pc::RETURN);
        stack.ret(LaneMask(0b0001));
        assert_eq!(stack.current(), Some(go(101, 0b0110)));
        stack.ret(LaneMask(0b0010));
        assert_eq!(stack.current(), Some(go(102, 0b0100)));
        stack.ret(LaneMask(0b0100));
        assert_eq!(stack.current(), Some(go(1, 0b1111)));
        assert_eq!(stack.activation(), at(0));
    }

    #[test]
    fn lanes_that_end_are_gone_everywhere() {
        let mut stack = stack();
        stack.branch(&[go(10, 0b0011), go(1, 0b1100)], Pc(12));
        stack.exit(LaneMask(0b0011));
        assert_eq!(stack.current(), Some(go(1, 0b1100)));
        stack.branch(&[go(12, 0b1100)], Pc(12));
        assert_eq!(stack.current(), Some(go(12, 0b1100)));
        stack.exit(LaneMask(0b1100));
        assert_eq!(stack.current(), None);
    }

    #[test]
    fn calls_to_different_functions_run_in_turn() {
        let mut stack = stack();
        stack.call(&[
            Entry { start: Pc(100), mask: LaneMask(0b0011), activation: at(1) },
            Entry { start: Pc(200), mask: LaneMask(0b1100), activation: at(2) },
        ]);
        assert_eq!(stack.current(), Some(go(100, 0b0011)));
        stack.ret(LaneMask(0b0011));
        assert_eq!((stack.current(), stack.activation()), (Some(go(200, 0b1100)), at(2)));
        stack.ret(LaneMask(0b1100));
        assert_eq!(stack.current(), Some(go(1, 0b1111)));
    }

    #[test]
    fn waits_tell_reconverging_lanes_from_the_other_path() {
        let waits = |stack: &SimtStack| stack.paths().into_iter().map(|(g, _, w)| (g, w)).collect::<Vec<_>>();
        let mut looped = stack();
        looped.branch(&[go(0, 0b1110), go(5, 0b0001)], Pc(5));
        assert_eq!(
            waits(&looped),
            [(go(0, 0b1110), None), (go(5, 0b0001), Some(Wait::Reconverge(LaneMask(0b1110))))]
        );
        let mut split = stack();
        split.branch(&[go(10, 0b0011), go(1, 0b1100)], Pc(12));
        let other = Wait::OtherPath { first: LaneMask(0b0011), reconverge: Pc(12) };
        assert_eq!(waits(&split), [(go(10, 0b0011), None), (go(1, 0b1100), Some(other))]);
        let mut called = stack();
        called.call(&[Entry { start: Pc(100), mask: LaneMask(0b0111), activation: at(1) }]);
        assert_eq!(
            waits(&called),
            [(go(100, 0b0111), None), (go(1, 0b1000), Some(Wait::Reconverge(LaneMask(0b0111))))]
        );
    }

    #[test]
    fn a_barrier_holds_the_warp() {
        let mut stack = stack();
        stack.wait(Wait::Barrier);
        assert_eq!(stack.current(), None);
        stack.release_barrier(LaneMask(0b1111));
        assert_eq!(stack.current(), Some(go(1, 0b1111)));
    }
}
