//! The calls of a channel on the host: what `kernels/flow/channel.cuh` does on the device.
//!
//! Producers call [`talloc`](Channel::talloc) and [`enq`](Channel::enq), consumers [`deq`](Channel::deq) and
//! [`tfree`](Channel::tfree), from any number of threads. One thread is the aggregator: only it has the
//! channel's [`Drain`], dispatches ready elements and frees groups.
//!
//! An element is *available* at first, *reserved* after `talloc`, *ready* after `enq`, *dispatched* after
//! [`Drain::dispatch`], *done* after `tfree`, and available again after [`Drain::free`].

use crate::channel::Channel;
use crate::memory::{Arena, Word};

impl Channel {
    /// Reserves `count` adjacent elements. Returns the position of the first, or `None` if there is not enough room.
    pub fn talloc<W: Word>(&self, memory: &Arena<W>, count: u32) -> Option<u32> {
        let mut old = memory.load(self.tail());
        loop {
            let used = old.wrapping_sub(memory.load(self.head()));
            if used > self.shape.width {
                // Between the two loads other threads reserved and freed so much that the head passed this tail.
                old = memory.load(self.tail());
                continue;
            }
            if count > self.shape.width - used {
                return None;
            }
            match memory.compare_exchange(self.tail(), old, old.wrapping_add(count)) {
                seen if seen == old => return Some(old),
                seen => old = seen,
            }
        }
    }

    /// Makes reserved elements ready. Their words must have been written before.
    pub fn enq<W: Word>(&self, memory: &Arena<W>, position: u32, count: u32) {
        let mut at = memory.load(self.reserve());
        loop {
            match memory.compare_exchange(self.reserve(), at, at.wrapping_add(count)) {
                seen if seen == at => break,
                seen => at = seen,
            }
        }
        for i in 0..count {
            let slot = self.slot(position.wrapping_add(i));
            let entry = at.wrapping_add(i);
            memory.store(self.entry(entry), slot << 1 | self.written_bit(entry));
        }
        self.publish(memory, at, at.wrapping_add(count));
    }

    /// Advances `ready` over the entries from `first` to `end`, which the caller has written, if all earlier
    /// entries are ready. Otherwise the producer that writes the first missing entry advances it over these
    /// too. So no entry is left behind, and no producer waits.
    fn publish<W: Word>(&self, memory: &Arena<W>, first: u32, mut end: u32) {
        let mut old = memory.load(self.ready());
        loop {
            if old.wrapping_sub(first) >= end.wrapping_sub(first) {
                return;
            }
            match memory.compare_exchange(self.ready(), old, end) {
                seen if seen == old => break,
                seen => old = seen,
            }
        }
        // Also take along later entries that are already written. If another producer advances `ready` first,
        // the rest is up to that one.
        loop {
            let written = |at: u32| memory.load(self.entry(at)) & 1 == self.written_bit(at);
            let more = (0..self.shape.width).take_while(|&i| written(end.wrapping_add(i))).count() as u32;
            let next = end.wrapping_add(more);
            if more == 0 || memory.compare_exchange(self.ready(), end, next) != end {
                return;
            }
            end = next;
        }
    }

    /// The position of the element that a dispatched control entry names.
    pub fn deq<W: Word>(&self, memory: &Arena<W>, entry: u32) -> u32 {
        memory.load(self.entry(entry)) >> 1
    }

    /// Marks an element as done. The consumer must not access it afterwards.
    pub fn tfree<W: Word>(&self, memory: &Arena<W>, position: u32) {
        memory.add(self.done(position), 1);
    }

    /// Elements that could be reserved now.
    pub fn room<W: Word>(&self, memory: &Arena<W>) -> u32 {
        let head = memory.load(self.head());
        self.shape.width.saturating_sub(memory.load(self.tail()).wrapping_sub(head))
    }
}

/// The aggregator's side of a channel: dispatches ready elements and frees groups of done ones. One per channel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drain {
    /// The first entry that was not yet dispatched.
    next: u32,
    /// The first position of the oldest group that is not yet free.
    group: u32,
    /// Never reserved elements in groups that were closed.
    skipped: u32,
}

impl Drain {
    /// Entries that are ready and not yet dispatched.
    pub fn ready<W: Word>(&self, channel: &Channel, memory: &Arena<W>) -> u32 {
        memory.load(channel.ready()).wrapping_sub(self.next)
    }

    /// Dispatches up to `most` ready entries. Returns the first one's position in the control array and their number.
    pub fn dispatch<W: Word>(&mut self, channel: &Channel, memory: &Arena<W>, most: u32) -> (u32, u32) {
        let (first, count) = (self.next, self.ready(channel, memory).min(most));
        self.next = self.next.wrapping_add(count);
        (first, count)
    }

    /// Elements that were dispatched and are not known to be done.
    pub fn outstanding<W: Word>(&self, channel: &Channel, memory: &Arena<W>) -> u32 {
        let known = self.group.wrapping_add(memory.load(channel.done(self.group)));
        self.next.wrapping_add(self.skipped).wrapping_sub(known)
    }

    /// Frees groups whose elements are all done, in the order in which they were reserved. Returns how many
    /// elements became available.
    pub fn free<W: Word>(&mut self, channel: &Channel, memory: &Arena<W>) -> u32 {
        let before = self.group;
        while memory.load(channel.done(self.group)) == channel.shape.group {
            self.free_oldest(channel, memory);
        }
        self.group.wrapping_sub(before)
    }

    /// Closes the oldest group if only a part of it was ever reserved and all of that part is done: reserves
    /// the rest and frees the whole group. Otherwise a group that nobody fills would never be freed. Returns
    /// how many elements became available.
    pub fn close<W: Word>(&mut self, channel: &Channel, memory: &Arena<W>) -> u32 {
        let size = channel.shape.group;
        // Read `done` before `tail`: elements that are done were reserved before.
        let done = memory.load(channel.done(self.group));
        let tail = memory.load(channel.tail());
        let end = self.group.wrapping_add(size);
        if done == 0 || done == size || tail != self.group.wrapping_add(done) {
            return 0;
        }
        if memory.compare_exchange(channel.tail(), tail, end) != tail {
            return 0;
        }
        self.skipped = self.skipped.wrapping_add(size - done);
        self.free_oldest(channel, memory);
        done
    }

    /// Frees the oldest group. Its count must be 0 before anyone can reserve its elements again.
    fn free_oldest<W: Word>(&mut self, channel: &Channel, memory: &Arena<W>) {
        memory.store(channel.done(self.group), 0);
        self.group = self.group.wrapping_add(channel.shape.group);
        memory.store(channel.head(), self.group);
    }
}
