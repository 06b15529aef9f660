//! An SM's L1 data cache: tags, bytes, and outstanding misses.
//!
//! Global loads are cached. Global stores write through and evict the line, so a line can be older than memory once
//! another SM has written it: the cache is not coherent, unless the chip has a directory ([`coherent`]). Local memory
//! is written back; its bytes are kept with the warp, so only its tags are here.

pub(crate) mod coherent;

use crate::chip::timing::L1Spec;
use crate::exec::memory::store::Memory;
use crate::kit::cycle::Cycle;
use crate::kit::ids::Ticket;
use crate::kit::line::{LineAddress, LineNumber};
use crate::time::cache::{LineBytes, LineWritten, MAX_LINE_BYTES, Tags, Way};

/// An outstanding miss.
#[derive(Clone, Copy, Debug)]
struct Miss {
    number: LineNumber,
    ticket: Ticket,
    asked_at: Cycle,
    /// Accesses that wait for it.
    waiting: u32,
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Hit(Way),
    /// The line is in flight; this access waits for the same message.
    Merged(Ticket),
    /// It has to be fetched into this way, which is reserved for it once [`L1::fetch`] is called.
    Miss(Way),
    Refused(Refusal),
}

/// Why an access must be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// All MSHRs are in use.
    Mshrs,
    /// The MSHR of the line has no room for another access.
    Merges,
    /// All ways of the set wait for data.
    Ways,
    /// The network takes no more packets.
    Network,
}

/// The L1 data cache.
#[derive(Clone, Debug)]
pub(crate) struct L1 {
    tags: Tags,
    bytes: Vec<LineBytes>,
    /// Empty as long as every line is wholly written.
    written: Vec<LineWritten>,
    /// Lines of local memory, which no other SM can change.
    is_local: Vec<bool>,
    /// Ways that got a global line since the last invalidation; some may hold another by now.
    global_ways: Vec<Way>,
    misses: Vec<Miss>,
    line_bytes: u64,
    /// log2 of the line size: division is slow on the host.
    line_shift: u32,
    mshrs: usize,
    merges: u32,
    changes: u64,
    /// `None` where the L1 is not coherent.
    coherence: Option<Box<coherent::Coherence>>,
}

impl L1 {
    pub(crate) fn new(spec: &L1Spec) -> L1 {
        let lines = (spec.cache.sets * spec.cache.ways) as usize;
        L1 {
            tags: Tags::new(&spec.cache),
            bytes: vec![[0; MAX_LINE_BYTES]; lines],
            written: Vec::new(),
            is_local: vec![false; lines],
            global_ways: Vec::new(),
            misses: Vec::with_capacity(spec.mshrs as usize),
            line_bytes: spec.cache.line_bytes as u64,
            line_shift: spec.cache.line_bytes.trailing_zeros(),
            mshrs: spec.mshrs as usize,
            merges: spec.mshr_merges,
            changes: 0,
            coherence: None,
        }
    }

    /// Makes it as good as new. Bytes of lines that are not there are never read.
    pub(crate) fn clear(&mut self) {
        debug_assert!(!self.is_coherent(), "what the directory knows of would be lost");
        self.tags.clear();
        self.written.clear();
        self.global_ways.clear();
        self.misses.clear();
        self.changes = 0;
    }

    #[inline(always)]
    fn number(&self, line: LineAddress) -> LineNumber {
        LineNumber(line.0 >> self.line_shift)
    }

    /// Number of lines that came or went.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether it holds a global line that differs from memory.
    pub(crate) fn is_stale(&self, memory: &Memory) -> bool {
        if self.is_coherent() {
            return false;
        }
        self.tags.ways().any(|way| self.differs(way, memory))
    }

    /// Whether a way holds a global line that differs from memory.
    fn differs(&self, way: Way, memory: &Memory) -> bool {
        let tag = self.tags.line(way);
        if tag.valid == 0 || self.is_local[way.index()] {
            return false;
        }
        let line = tag.number.0.wrapping_mul(self.line_bytes);
        let Some(at) = memory.find(line) else { return false };
        let (base, bytes) = memory.allocation(at);
        let bytes = &bytes[(line - base) as usize..];
        let some = bytes.len().min(self.line_bytes as usize);
        self.bytes[way.index()][..some] != bytes[..some]
    }

    /// Whether a line is in flight that was asked for before `cycle`: it may be older than memory was then.
    pub(crate) fn awaits_since_before(&self, cycle: Cycle) -> bool {
        self.misses.iter().any(|miss| miss.asked_at < cycle)
    }

    /// Lines in flight.
    pub(crate) fn outstanding(&self) -> usize {
        self.misses.len()
    }

    /// Looks up a line for a read.
    pub(crate) fn look(&mut self, line: LineAddress) -> Lookup {
        let number = self.number(line);
        let held = self.tags.find(number);
        match held {
            // What waits to be written is read after that.
            Some(way) if self.tags.line(way).valid != 0 && !self.tags.line(way).reserved => {
                self.tags.touch(way);
                return Lookup::Hit(way);
            }
            _ => {}
        }
        // Only a coherent L1 waits for lines for which it has reserved no way. There can be hundreds of misses.
        let may_be_in_flight = held.is_some() || self.is_coherent();
        debug_assert!(may_be_in_flight || self.misses.iter().all(|miss| miss.number != number));
        if may_be_in_flight && let Some(miss) = self.misses.iter_mut().find(|miss| miss.number == number) {
            if miss.waiting >= self.merges {
                return Lookup::Refused(Refusal::Merges);
            }
            miss.waiting += 1;
            return Lookup::Merged(miss.ticket);
        }
        if self.misses.len() >= self.mshrs {
            return Lookup::Refused(Refusal::Mshrs);
        }
        match self.tags.victim(number) {
            Some(way) => Lookup::Miss(way),
            None => Lookup::Refused(Refusal::Ways),
        }
    }

    /// The line that must be written back before the way is reused.
    pub(crate) fn must_write_back(&self, way: Way) -> Option<LineAddress> {
        let line = self.tags.line(way);
        (line.dirty != 0).then(|| line.number.address(self.line_bytes))
    }

    /// The line in a way has been written back.
    pub(crate) fn wrote_back(&mut self, way: Way) {
        self.tags.line_mut(way).dirty = 0;
    }

    /// The line is asked for with message `ticket`; `way` is reserved for it.
    pub(crate) fn fetch(&mut self, way: Way, line: LineAddress, ticket: Ticket, now: Cycle, is_local: bool) {
        let number = self.number(line);
        self.changes += 1;
        self.tags.replace(way, number);
        self.tags.line_mut(way).reserved = true;
        self.is_local[way.index()] = is_local;
        if !is_local {
            // Without fences the list would grow for ever.
            if self.global_ways.len() == 2 * self.is_local.len() {
                self.global_ways.clear();
                self.global_ways.extend(self.tags.ways());
            }
            self.global_ways.push(way);
        }
        self.misses.push(Miss { number, ticket, asked_at: now, waiting: 1 });
    }

    /// The line asked for with message `ticket` has come. Returns where it is kept, if it is.
    pub(crate) fn fill(&mut self, line: LineAddress, ticket: Ticket, bytes: &LineBytes) -> Option<Way> {
        // A line that was written meanwhile is no longer waited for, and is not kept.
        let at = self.misses.iter().position(|miss| miss.ticket == ticket)?;
        self.misses.swap_remove(at);
        self.changes += 1;
        let way = self.tags.find(self.number(line))?;
        let tag = self.tags.line_mut(way);
        (tag.reserved, tag.valid) = (false, u8::MAX);
        self.bytes[way.index()] = *bytes;
        Some(way)
    }

    /// Notes which bytes of a line were ever written.
    pub(crate) fn set_written(&mut self, way: Way, written: LineWritten) {
        if self.written.is_empty() {
            if written == LineWritten::MAX {
                return;
            }
            self.written = vec![LineWritten::MAX; self.bytes.len()];
        }
        self.written[way.index()] = written;
    }

    /// Which bytes of a line were ever written.
    #[inline]
    pub(crate) fn written(&self, way: Way) -> LineWritten {
        self.written.get(way.index()).copied().unwrap_or(LineWritten::MAX)
    }

    /// A line's bytes.
    #[inline]
    pub(crate) fn bytes(&self, way: Way) -> &LineBytes {
        &self.bytes[way.index()]
    }

    /// A global line is written, or read past the cache: evicts the copy here, and a copy in flight will not be kept.
    pub(crate) fn forget(&mut self, line: LineAddress) -> bool {
        // After a fence nothing is here that could be forgotten, which is when locks are tried.
        if self.global_ways.is_empty() {
            return false;
        }
        let number = self.number(line);
        self.misses.retain(|miss| miss.number != number);
        let Some(way) = self.tags.find(number) else { return false };
        self.changes += 1;
        self.tags.evict(way);
        true
    }

    /// Looks for a local line to write it: a way to write, and whether it was a hit.
    pub(crate) fn write_local(&mut self, line: LineAddress) -> Result<(Way, bool), Refusal> {
        let number = self.number(line);
        let (way, hit) = match self.tags.find(number) {
            // A line on its way is written when it is there.
            Some(way) if self.tags.line(way).reserved => return Err(Refusal::Ways),
            Some(way) => (way, true),
            None => (self.tags.victim(number).ok_or(Refusal::Ways)?, false),
        };
        Ok((way, hit))
    }

    /// Writes a local line in the way that [`L1::write_local`] named.
    pub(crate) fn dirty_local(&mut self, way: Way, line: LineAddress, hit: bool) {
        if hit {
            self.tags.touch(way);
        } else {
            self.changes += 1;
            self.tags.replace(way, self.number(line));
            self.is_local[way.index()] = true;
        }
        let tag = self.tags.line_mut(way);
        (tag.valid, tag.dirty) = (u8::MAX, u8::MAX);
    }

    /// Drops every global line, present or in flight, so that later loads see what other SMs wrote.
    pub(crate) fn invalidate(&mut self) {
        if self.is_coherent() {
            return;
        }
        while let Some(way) = self.global_ways.pop() {
            if !self.is_local[way.index()] {
                let number = self.tags.evict(way).number;
                self.changes += (number != LineNumber::NONE) as u64;
                self.misses.retain(|miss| miss.number != number);
            }
        }
    }

    /// Evicts the global lines that were changed in memory without this L1's knowledge.
    pub(crate) fn forget_changed(&mut self, memory: &Memory) {
        if !self.written.is_empty() {
            // A byte may have been written with the value that it had.
            return self.invalidate();
        }
        for way in self.tags.ways() {
            if self.differs(way, memory) {
                self.changes += 1;
                self.tags.evict(way);
            }
        }
    }

    /// The value of up to 8 bytes that a load would find here, if the line is here: for messages about stale copies.
    pub(crate) fn peek(&self, address: u64, bytes: u32) -> Option<u64> {
        let number = LineNumber(address >> self.line_shift);
        let way = self.tags.find(number).filter(|&way| self.tags.line(way).valid != 0)?;
        let at = (address & (self.line_bytes - 1)) as usize;
        let data = self.bytes[way.index()].get(at..at + bytes as usize)?;
        Some(data.iter().rev().fold(0, |value, &byte| value << 8 | byte as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::timing::{CacheSpec, L1Policy};

    fn l1() -> L1 {
        L1::new(&L1Spec {
            line_cycles: 1,
            cache: CacheSpec { sets: 2, ways: 2, line_bytes: 128 },
            global: L1Policy::WriteEvict,
            hit_latency_cycles: 35,
            mshrs: 3,
            mshr_merges: 2,
            bypass_bytes: 128,
            coherence: Default::default(),
        })
    }

    fn miss(l1: &mut L1, line: u64, ticket: u32) {
        let (line, ticket) = (LineAddress(line), Ticket(ticket));
        let Lookup::Miss(way) = l1.look(line) else { panic!("{line:?} is no miss") };
        l1.fetch(way, line, ticket, Cycle(0), false);
    }

    #[test]
    fn a_line_is_fetched_once() {
        let mut l1 = l1();
        miss(&mut l1, 0, 7);
        assert_eq!(l1.look(LineAddress(0)), Lookup::Merged(Ticket(7)));
        assert_eq!(l1.look(LineAddress(0)), Lookup::Refused(Refusal::Merges));
        l1.fill(LineAddress(0), Ticket(7), &[5; 128]);
        let Lookup::Hit(way) = l1.look(LineAddress(0)) else { panic!("the line is here") };
        assert_eq!(l1.bytes(way)[17], 5);
        assert_eq!(l1.outstanding(), 0);
    }

    #[test]
    fn ways_and_miss_registers_run_out() {
        let mut l1 = l1();
        miss(&mut l1, 0, 1);
        miss(&mut l1, 256, 2);
        assert_eq!(l1.look(LineAddress(512)), Lookup::Refused(Refusal::Ways));
        miss(&mut l1, 128, 3);
        assert_eq!(l1.look(LineAddress(128 + 256)), Lookup::Refused(Refusal::Mshrs));
    }

    #[test]
    fn a_line_written_while_on_its_way_is_not_kept() {
        let mut l1 = l1();
        miss(&mut l1, 0, 1);
        l1.forget(LineAddress(0));
        miss(&mut l1, 0, 2);
        l1.fill(LineAddress(0), Ticket(1), &[1; 128]);
        assert_eq!(
            l1.look(LineAddress(0)),
            Lookup::Merged(Ticket(2)),
            "the old copy is not taken for the new one"
        );
        l1.fill(LineAddress(0), Ticket(2), &[2; 128]);
        assert_eq!(l1.peek(0, 4), Some(0x0202_0202));
    }

    #[test]
    fn a_copy_is_stale_once_memory_changes() {
        let mut memory = Memory::new(1 << 20, false);
        let at = memory.allocate(200, 1, "flag").unwrap();
        let mut l1 = l1();
        for (line, ticket) in [(at, 1), (at + 128, 2)] {
            miss(&mut l1, line, ticket);
            l1.fill(LineAddress(line), Ticket(ticket), &[0; 128]);
        }
        let changes = l1.changes();
        assert!(!l1.is_stale(&memory) && matches!(l1.look(LineAddress(at)), Lookup::Hit(_)));
        memory.write(at + 196, &[1]);
        assert!(l1.is_stale(&memory));
        assert_eq!(l1.changes(), changes, "a hit changes nothing");
        l1.forget(LineAddress(at + 128));
        assert!(!l1.is_stale(&memory) && l1.changes() > changes);
    }

    #[test]
    fn stale_copies_are_evicted() {
        let mut memory = Memory::new(1 << 20, false);
        let at = memory.allocate(256, 128, "words").unwrap();
        let mut l1 = l1();
        for (line, ticket) in [(at, 1), (at + 128, 2)] {
            miss(&mut l1, line, ticket);
            l1.fill(LineAddress(line), Ticket(ticket), &[0; 128]);
        }
        memory.write(at + 132, &[1]);
        l1.forget_changed(&memory);
        assert_eq!((l1.peek(at, 4), l1.peek(at + 132, 4)), (Some(0), None));
        // A written byte that has its value still, where it matters that it was written.
        l1.set_written(Way(0), 0);
        l1.forget_changed(&memory);
        assert_eq!(l1.peek(at, 4), None);
    }

    #[test]
    fn invalidation_spares_local_lines() {
        let mut l1 = l1();
        let (way, hit) = l1.write_local(LineAddress(128)).unwrap();
        l1.dirty_local(way, LineAddress(128), hit);
        miss(&mut l1, 0, 1);
        l1.fill(LineAddress(0), Ticket(1), &[1; 128]);
        l1.invalidate();
        assert_eq!((l1.peek(0, 4), l1.peek(128, 4).is_some()), (None, true));
        assert_eq!(l1.must_write_back(way), Some(LineAddress(128)));
    }
}
