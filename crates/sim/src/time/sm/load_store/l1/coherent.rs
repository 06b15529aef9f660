//! The L1 where it is coherent: what its lines may be used for, and what happens to them when others want them.
//!
//! A line that is here and is not to be written without asking is shared or owned; one that is on its way to become
//! writable stays readable until somebody takes it away. A line that was given back is kept beside the cache until the
//! directory has it, for whoever asks meanwhile.

use super::*;
use crate::time::cache::{LineBytes, LineWritten};
use crate::time::directory::{Given, Grant, Probe};

/// The MOESI state of a line that is present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Moesi {
    /// Readable and clean.
    #[default]
    Shared,
    /// Readable, writable and clean; no other L1 has it.
    Exclusive,
    /// Readable and dirty; others may have copies.
    Owned,
    /// Readable, writable and dirty; no other L1 has it.
    Modified,
}

impl Moesi {
    fn is_dirty(self) -> bool {
        matches!(self, Moesi::Owned | Moesi::Modified)
    }

    fn is_writable(self) -> bool {
        matches!(self, Moesi::Exclusive | Moesi::Modified)
    }
}

/// Result of a lookup for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writable {
    /// The line is here and may be written.
    Hit(Way),
    /// The line is in flight for a write; this access waits for the same message.
    Merged(Ticket),
    /// The line is present, but needs ownership before it is written.
    Upgrade(Way),
    /// The line must be fetched into this way.
    Miss(Way),
    Refused(Refusal),
}

/// A line of which the directory knows that it is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Clean(LineAddress),
    /// It is newer than memory.
    Dirty(LineAddress),
}

/// The part of an L1 that makes it coherent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coherence {
    states: Vec<Moesi>,
    /// Lines that were evicted and have not reached the directory yet.
    leaving: Vec<Leaving>,
    /// Messages that ask for a line to write it.
    owning: Vec<Ticket>,
}

#[derive(Clone, Debug)]
struct Leaving {
    line: LineAddress,
    ticket: Ticket,
    given: Given,
}

impl L1 {
    pub(crate) fn make_coherent(&mut self) {
        let states = vec![Moesi::default(); self.bytes.len()];
        self.coherence = Some(Box::new(Coherence { states, ..Coherence::default() }));
    }

    pub(crate) fn is_coherent(&self) -> bool {
        self.coherence.is_some()
    }

    fn states(&mut self) -> &mut Coherence {
        self.coherence.as_mut().expect("it is coherent")
    }

    /// Looks up a line for a write.
    pub(crate) fn look_to_write(&mut self, line: LineAddress) -> Writable {
        let number = self.number(line);
        if let Some(way) = self.tags.find(number).filter(|&way| self.tags.line(way).valid != 0) {
            if self.states().states[way.index()].is_writable() {
                self.tags.touch(way);
                return Writable::Hit(way);
            }
            return match self.merge_to_write(number) {
                Some(merged) => merged,
                None if self.misses.len() >= self.mshrs => Writable::Refused(Refusal::Mshrs),
                None => Writable::Upgrade(way),
            };
        }
        if let Some(merged) = self.merge_to_write(number) {
            return merged;
        }
        if self.misses.len() >= self.mshrs {
            return Writable::Refused(Refusal::Mshrs);
        }
        match self.tags.victim(number) {
            Some(way) => Writable::Miss(way),
            None => Writable::Refused(Refusal::Ways),
        }
    }

    fn merge_to_write(&mut self, number: LineNumber) -> Option<Writable> {
        let at = self.misses.iter().position(|miss| miss.number == number)?;
        let ticket = self.misses[at].ticket;
        let owning = self.states().owning.contains(&ticket);
        let miss = &mut self.misses[at];
        // A line that comes to be read is asked for again when it is here.
        if !owning || miss.waiting >= self.merges {
            return Some(Writable::Refused(Refusal::Merges));
        }
        miss.waiting += 1;
        Some(Writable::Merged(ticket))
    }

    /// The line in a way is asked for with message `ticket`, to be written.
    pub(crate) fn upgrade(&mut self, way: Way, ticket: Ticket, now: Cycle) {
        let number = self.tags.line(way).number;
        self.tags.line_mut(way).reserved = true;
        self.misses.push(Miss { number, ticket, asked_at: now, waiting: 1 });
        self.states().owning.push(ticket);
    }

    /// The message `ticket`, with which a line was asked for, wants to write it.
    pub(crate) fn fetch_to_write(&mut self, way: Way, line: LineAddress, ticket: Ticket, now: Cycle) {
        self.fetch(way, line, ticket, now, false);
        self.states().owning.push(ticket);
    }

    /// A line that was asked for has arrived; without bytes if they are here already.
    pub(crate) fn grant(
        &mut self,
        line: LineAddress,
        ticket: Ticket,
        grant: Grant,
        given: Option<(&LineBytes, LineWritten)>,
    ) -> Option<Way> {
        let at = self.misses.iter().position(|miss| miss.ticket == ticket)?;
        self.misses.swap_remove(at);
        self.states().owning.retain(|&owning| owning != ticket);
        self.changes += 1;
        let way = self.tags.find(self.number(line))?;
        let tag = self.tags.line_mut(way);
        tag.reserved = false;
        debug_assert!(given.is_some() || tag.valid != 0, "an upgrade keeps what it has");
        tag.valid = u8::MAX;
        if let Some((bytes, written)) = given {
            self.bytes[way.index()] = *bytes;
            self.set_written(way, written);
        }
        self.states().states[way.index()] = match grant {
            Grant::Shared => Moesi::Shared,
            Grant::Exclusive => Moesi::Exclusive,
            Grant::Modified => Moesi::Modified,
        };
        Some(way)
    }

    /// The bytes of a line that may be written, which is modified from now on. `written` are the bytes that are.
    pub(crate) fn write(&mut self, way: Way, written: LineWritten) -> &mut LineBytes {
        self.changes += 1;
        self.states().states[way.index()] = Moesi::Modified;
        if !self.written.is_empty() {
            self.written[way.index()] |= written;
        }
        &mut self.bytes[way.index()]
    }

    /// The line that has to be given up before a way is used for another.
    pub(crate) fn held(&self, way: Way) -> Option<Held> {
        let coherence = self.coherence.as_ref()?;
        let tag = self.tags.line(way);
        if tag.valid == 0 || self.is_local[way.index()] {
            return None;
        }
        let line = tag.number.address(self.line_bytes);
        let is_dirty = coherence.states[way.index()].is_dirty();
        Some(if is_dirty { Held::Dirty(line) } else { Held::Clean(line) })
    }

    /// The clean line in a way is gone.
    pub(crate) fn drop_line(&mut self, way: Way) {
        self.changes += 1;
        self.tags.evict(way);
    }

    /// The line in a way is given back with message `ticket`.
    pub(crate) fn give_back(&mut self, way: Way, ticket: Ticket) {
        let line = self.tags.line(way).number.address(self.line_bytes);
        let given = Given { bytes: self.bytes[way.index()], written: self.written(way), dirty: true };
        self.changes += 1;
        self.tags.evict(way);
        self.states().leaving.push(Leaving { line, ticket, given });
    }

    /// A line that was given back with message `ticket`.
    pub(crate) fn leaving(&self, ticket: Ticket) -> Option<&Given> {
        let leaving = &self.coherence.as_ref()?.leaving;
        leaving.iter().find(|leaving| leaving.ticket == ticket).map(|leaving| &leaving.given)
    }

    /// The directory has what was given back with message `ticket`.
    pub(crate) fn has_left(&mut self, ticket: Ticket) {
        self.states().leaving.retain(|leaving| leaving.ticket != ticket);
    }

    /// An atomic goes to a line: a copy here would be old. Returns the way of one that has to be given back first.
    pub(crate) fn step_aside(&mut self, line: LineAddress) -> Result<Option<Way>, Refusal> {
        let number = self.number(line);
        if self.misses.iter().any(|miss| miss.number == number) {
            return Err(Refusal::Merges);
        }
        let Some(way) = self.tags.find(number) else { return Ok(None) };
        Ok(self.held(way).map(|_| way))
    }

    /// Another node asks for a line. Returns it if this L1 is its owner.
    pub(crate) fn probe(&mut self, probe: Probe) -> Option<Box<Given>> {
        let number = self.number(probe.line);
        if let Some(leaving) = self.states().leaving.iter().find(|leaving| leaving.line == probe.line) {
            return Some(Box::new(leaving.given.clone()));
        }
        let way = self.tags.find(number).filter(|&way| self.tags.line(way).valid != 0)?;
        let state = self.states().states[way.index()];
        let given = (state != Moesi::Shared).then(|| {
            let (bytes, written) = (self.bytes[way.index()], self.written(way));
            Box::new(Given { bytes, written, dirty: state.is_dirty() })
        });
        self.changes += 1;
        if !probe.takes {
            let state = if state.is_dirty() { Moesi::Owned } else { Moesi::Shared };
            self.states().states[way.index()] = state;
        } else if self.tags.line(way).reserved {
            // It waits to become writable, and now has to come whole.
            self.tags.line_mut(way).valid = 0;
        } else {
            self.tags.evict(way);
        }
        given
    }

    /// Every line that is newer than memory.
    pub(crate) fn dirty_lines(&self) -> impl Iterator<Item = (LineAddress, &LineBytes, LineWritten)> {
        let resident = self.tags.ways().filter_map(|way| {
            let Some(Held::Dirty(line)) = self.held(way) else { return None };
            Some((line, &self.bytes[way.index()], self.written(way)))
        });
        let leaving = self.coherence.iter().flat_map(|coherence| &coherence.leaving);
        resident.chain(leaving.map(|l| (l.line, &l.given.bytes, l.given.written)))
    }
}
