//! Miss status holding registers: the lines that are on their way from memory, and who waits for them.

use crate::mem::cache::Way;
use crate::mem::message::{Request, RequestKind};

/// A line that is on its way.
#[derive(Clone, Copy, Debug)]
struct Mshr {
    /// Its place in the tags.
    way: Way,
    /// Sectors that will be there before the last waiting request is served: fetched, or written by one that waits.
    coming: u8,
    /// The first of `waiting` in the ring of requests.
    first: u8,
    waiting: u8,
    /// The first waiting request has all it needs.
    ready: bool,
}

impl Mshr {
    const EMPTY: Mshr = Mshr { way: Way(0), coming: 0, first: 0, waiting: 0, ready: false };
}

/// The index of an MSHR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MshrId(pub u16);

impl MshrId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// All MSHRs of a slice.
#[derive(Clone, Debug)]
pub(super) struct Mshrs {
    entries: Vec<Mshr>,
    /// A ring of `merges` requests for each MSHR.
    requests: Vec<Request>,
    merges: u8,
    free: Vec<MshrId>,
    /// By way: the MSHR, where the line is reserved.
    of_way: Vec<MshrId>,
}

impl Mshrs {
    /// `count` free MSHRs, each for `merges` requests, of a cache of `ways` lines.
    pub fn new(count: u32, merges: u32, ways: usize) -> Mshrs {
        let merges = merges.clamp(1, u8::MAX as u32);
        let nobody = Request { line: 0, sectors: 0, whole: 0, kind: RequestKind::Read, sm: 0, ticket: 0 };
        Mshrs {
            entries: vec![Mshr::EMPTY; count as usize],
            requests: vec![nobody; (count * merges) as usize],
            merges: merges as u8,
            free: (0..count as u16).rev().map(MshrId).collect(),
            of_way: vec![MshrId(0); ways],
        }
    }

    /// Whether all are taken.
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// The MSHR of a reserved line.
    pub fn of(&self, way: Way) -> MshrId {
        self.of_way[way.index()]
    }

    /// The line's place.
    pub fn way(&self, id: MshrId) -> Way {
        self.entries[id.index()].way
    }

    /// Takes a free MSHR for a line.
    pub fn take(&mut self, way: Way) -> Option<MshrId> {
        let id = self.free.pop()?;
        self.entries[id.index()] = Mshr { way, ..Mshr::EMPTY };
        self.of_way[way.index()] = id;
        Some(id)
    }

    /// Whether no more requests can wait for the line.
    pub fn has_no_place(&self, id: MshrId) -> bool {
        self.entries[id.index()].waiting >= self.merges
    }

    /// Sectors that will be there before a request that joins now is served.
    pub fn coming(&self, id: MshrId) -> u8 {
        self.entries[id.index()].coming
    }

    /// A request waits for the line, and brings sectors on their way.
    pub fn join(&mut self, id: MshrId, request: Request, brings: u8) {
        let mshr = &mut self.entries[id.index()];
        let place = (mshr.first + mshr.waiting) % self.merges;
        mshr.waiting += 1;
        mshr.coming |= brings;
        self.requests[id.index() * self.merges as usize + place as usize] = request;
    }

    /// The request that waits longest.
    pub fn first(&self, id: MshrId) -> &Request {
        let mshr = &self.entries[id.index()];
        &self.requests[id.index() * self.merges as usize + mshr.first as usize]
    }

    /// The first request waits no longer. Frees the MSHR and says so if it was the last.
    pub fn serve_first(&mut self, id: MshrId) -> bool {
        let mshr = &mut self.entries[id.index()];
        mshr.first = (mshr.first + 1) % self.merges;
        mshr.waiting -= 1;
        if mshr.waiting > 0 {
            return false;
        }
        self.free.push(id);
        true
    }

    /// Whether the first request has all it needs.
    pub fn is_ready(&self, id: MshrId) -> bool {
        self.entries[id.index()].ready
    }

    /// Notes whether the first request has all it needs. Returns what was noted before.
    pub fn set_ready(&mut self, id: MshrId, ready: bool) -> bool {
        std::mem::replace(&mut self.entries[id.index()].ready, ready)
    }
}
