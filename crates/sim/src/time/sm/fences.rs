//! Fences that wait for every access of their SM, not only of their warp: on some chips an SM cannot tell them apart.

use std::collections::VecDeque;

use crate::kit::ids::WarpSlot;

/// The accesses of an SM in the order of issue, and the fences that wait for them.
#[derive(Debug, Default)]
pub(crate) struct Fences {
    /// Whether an access is done, from number `first` on.
    done: VecDeque<bool>,
    first: u64,
    /// Warps at a fence, with the number of the first access that was issued after it, the earliest fence first.
    waiting: VecDeque<(WarpSlot, u64)>,
}

impl Fences {
    /// An access is issued. Returns its number.
    pub(crate) fn begin(&mut self) -> u64 {
        self.done.push_back(false);
        self.next() - 1
    }

    /// An access is done.
    pub(crate) fn end(&mut self, number: u64) {
        self.done[(number - self.first) as usize] = true;
        while self.done.front() == Some(&true) {
            self.done.pop_front();
            self.first += 1;
        }
    }

    /// A warp is at a fence. Returns whether it has to wait.
    pub(crate) fn wait(&mut self, slot: WarpSlot) -> bool {
        let waits = !self.done.is_empty();
        if waits {
            self.waiting.push_back((slot, self.next()));
        }
        waits
    }

    /// A warp whose fence need not wait any longer.
    pub(crate) fn release(&mut self) -> Option<WarpSlot> {
        let &(slot, _) = self.waiting.front().filter(|&&(_, next)| next <= self.first)?;
        self.waiting.pop_front();
        Some(slot)
    }

    fn next(&self) -> u64 {
        self.first + self.done.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_waits_for_what_was_issued_before_it() {
        let mut fences = Fences::default();
        assert!(!fences.wait(WarpSlot(9)));
        let (a, b) = (fences.begin(), fences.begin());
        assert!(fences.wait(WarpSlot(1)));
        let c = fences.begin();
        assert!(fences.wait(WarpSlot(2)));
        fences.end(b);
        fences.end(c);
        assert_eq!(fences.release(), None);
        fences.end(a);
        assert_eq!([(); 3].map(|()| fences.release()), [Some(WarpSlot(1)), Some(WarpSlot(2)), None]);
        assert!(!fences.wait(WarpSlot(3)));
    }
}
