//! Miss status holding registers: the lines that are in flight from memory, and the requests that wait for them.

use crate::chip::timing::MOST_MSHRS;
use crate::kit::ids::WaitingId;
use crate::kit::slab::Slab;
use crate::time::cache::Way;
use crate::time::network::message::Request;

/// A line in flight.
#[derive(Clone, Copy, Debug)]
struct Mshr {
    way: Way,
    /// Sectors that will be there before the last waiting request is served: fetched, or written by one that waits.
    coming: u8,
    /// The first waiting request has all it needs.
    ready: bool,
    /// How many requests wait for it, and the first and the last of them.
    waiting: u32,
    first: WaitingId,
    last: WaitingId,
}

impl Mshr {
    /// Sentinel: no request.
    const NOBODY: WaitingId = WaitingId(u32::MAX);

    fn new(way: Way) -> Mshr {
        Mshr { way, coming: 0, ready: false, waiting: 0, first: Mshr::NOBODY, last: Mshr::NOBODY }
    }
}

/// The index of an MSHR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MshrId(pub u16);

impl MshrId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A request that waits, and the next one for the same line.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: Request,
    next: WaitingId,
}

/// All MSHRs of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Mshrs {
    entries: Vec<Mshr>,
    free: Vec<MshrId>,
    merges: u32,
    waiting: Slab<WaitingId, Waiting>,
    /// By way: the MSHR, where the line is reserved.
    of_way: Vec<MshrId>,
}

impl Mshrs {
    /// `count` free MSHRs, each for `merges` requests, of a cache of `ways` lines.
    pub(crate) fn new(count: u32, merges: u32, ways: usize) -> Mshrs {
        debug_assert!((1..=MOST_MSHRS).contains(&count) && merges > 0, "checked with the chip");
        Mshrs {
            entries: vec![Mshr::new(Way(0)); count as usize],
            free: (0..count as u16).rev().map(MshrId).collect(),
            merges,
            waiting: Slab::default(),
            of_way: vec![MshrId(0); ways],
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// The MSHR of a reserved line.
    pub(crate) fn of(&self, way: Way) -> MshrId {
        self.of_way[way.index()]
    }

    pub(crate) fn way(&self, id: MshrId) -> Way {
        self.entries[id.index()].way
    }

    /// Takes a free MSHR for a line.
    pub(crate) fn take(&mut self, way: Way) -> Option<MshrId> {
        let id = self.free.pop()?;
        self.entries[id.index()] = Mshr::new(way);
        self.of_way[way.index()] = id;
        Some(id)
    }

    /// Whether no more requests can wait for the line.
    pub(crate) fn has_no_place(&self, id: MshrId) -> bool {
        self.entries[id.index()].waiting >= self.merges
    }

    /// Sectors that will be there before a request that joins now is served.
    pub(crate) fn coming(&self, id: MshrId) -> u8 {
        self.entries[id.index()].coming
    }

    /// A request waits for the line; the sectors of `brings` will be valid when it is served.
    pub(crate) fn join(&mut self, id: MshrId, request: &Request, brings: u8) {
        let joined = self.waiting.put(Waiting { request: *request, next: Mshr::NOBODY });
        self.waiting[joined].request.missed = true;
        let mshr = &mut self.entries[id.index()];
        if mshr.waiting == 0 {
            mshr.first = joined;
        } else {
            self.waiting[mshr.last].next = joined;
        }
        mshr.last = joined;
        mshr.waiting += 1;
        mshr.coming |= brings;
    }

    /// The request that waits longest.
    pub(crate) fn first(&self, id: MshrId) -> &Request {
        &self.waiting[self.entries[id.index()].first].request
    }

    /// The first request waits no longer. If it was the last, frees the MSHR and returns true.
    pub(crate) fn serve_first(&mut self, id: MshrId) -> bool {
        let mshr = &mut self.entries[id.index()];
        self.waiting.give_back(mshr.first);
        mshr.first = self.waiting[mshr.first].next;
        mshr.waiting -= 1;
        if mshr.waiting > 0 {
            return false;
        }
        self.free.push(id);
        true
    }

    /// Whether the first request has all it needs.
    pub(crate) fn is_ready(&self, id: MshrId) -> bool {
        self.entries[id.index()].ready
    }

    /// Notes whether the first request has all it needs. Returns what was noted before.
    pub(crate) fn set_ready(&mut self, id: MshrId, ready: bool) -> bool {
        std::mem::replace(&mut self.entries[id.index()].ready, ready)
    }
}
