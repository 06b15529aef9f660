//! Miss status holding registers: the lines that are on their way from memory, and who waits for them.

use crate::time::cache::Way;
use crate::time::network::message::Request;

/// A line that is on its way.
#[derive(Clone, Copy, Debug)]
struct Mshr {
    /// Its place in the tags.
    way: Way,
    /// Sectors that will be there before the last waiting request is served: fetched, or written by one that waits.
    coming: u8,
    /// The first waiting request has all it needs.
    ready: bool,
    /// Requests that wait for it, and the places of the first and the last of them.
    waiting: u32,
    first: u32,
    last: u32,
}

/// The index of an MSHR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MshrId(pub u16);

impl MshrId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A request that waits, and the place of the next for the same line.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: Request,
    next: u32,
}

/// All MSHRs of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Mshrs {
    entries: Vec<Mshr>,
    free: Vec<MshrId>,
    merges: u32,
    /// Places of waiting requests: as many as ever waited at once.
    places: Vec<Waiting>,
    free_places: Vec<u32>,
    /// By way: the MSHR, where the line is reserved.
    of_way: Vec<MshrId>,
}

impl Mshrs {
    /// `count` free MSHRs, each for `merges` requests, of a cache of `ways` lines.
    pub fn new(count: u32, merges: u32, ways: usize) -> Mshrs {
        assert!(
            (1..=u16::MAX as u32).contains(&count) && merges > 0,
            "l2.mshrs = {count}, l2.mshr_merges = {merges}"
        );
        let unused = Mshr { way: Way(0), coming: 0, ready: false, waiting: 0, first: 0, last: 0 };
        Mshrs {
            entries: vec![unused; count as usize],
            free: (0..count as u16).rev().map(MshrId).collect(),
            merges,
            places: Vec::new(),
            free_places: Vec::new(),
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
        self.entries[id.index()] = Mshr { way, coming: 0, ready: false, waiting: 0, first: 0, last: 0 };
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
        let waiting = Waiting { request: Request { missed: true, ..request }, next: 0 };
        let place = match self.free_places.pop() {
            Some(place) => {
                self.places[place as usize] = waiting;
                place
            }
            None => {
                self.places.push(waiting);
                self.places.len() as u32 - 1
            }
        };
        let mshr = &mut self.entries[id.index()];
        if mshr.waiting == 0 {
            mshr.first = place;
        } else {
            self.places[mshr.last as usize].next = place;
        }
        mshr.last = place;
        mshr.waiting += 1;
        mshr.coming |= brings;
    }

    /// The request that waits longest.
    pub fn first(&self, id: MshrId) -> &Request {
        &self.places[self.entries[id.index()].first as usize].request
    }

    /// The first request waits no longer. Frees the MSHR and says so if it was the last.
    pub fn serve_first(&mut self, id: MshrId) -> bool {
        let mshr = &mut self.entries[id.index()];
        self.free_places.push(mshr.first);
        mshr.first = self.places[mshr.first as usize].next;
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
