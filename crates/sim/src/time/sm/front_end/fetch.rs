//! Instruction fetch: in turn, warps fetch from the instruction cache into their buffers.

use warploom_isa::Pc;

use crate::chip::timing::{FetchSharing, FetchSpec};
use crate::kit::cycle::Cycle;
use crate::kit::divisor::Divisor;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::kit::line::{LineAddress, LineNumber};
use crate::time::cache::Tags;
use crate::time::sm::Sm;
use crate::time::sm::cycle::Event;
use crate::time::sm::issue::slot::{Position, Slot};
use crate::time::sm::probe::Probe;

/// Where kernels' code lies in memory, as the L2 sees it: above every address that data can have.
pub(crate) const CODE_BASE: u64 = 1 << 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// `count` instructions, from the pc that was asked for, can issue at cycle `at`.
    Hit { count: u32, at: Cycle },
    /// The line at this address must be requested.
    Miss { line: LineAddress },
    /// The line is in flight already.
    Pending,
}

/// This SM's part in an instruction cache that several share. SMs run in windows of cycles beside each other, so each
/// has a copy of the cache's tags, and at the end of a window they tell each other which lines they have requested and
/// which have come. What an SM that starts later has missed before, it requests itself.
#[derive(Clone, Debug)]
struct Sharing {
    /// This SM among those that share the cache, and how many they are.
    place: u64,
    sharers: u64,
    fetches_per_cycle: u64,
    news: LineNews,
}

/// Lines that an SM has requested and received since the last exchange.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineNews {
    pub requested: Vec<LineAddress>,
    pub received: Vec<LineAddress>,
}

impl LineNews {
    pub(crate) fn is_empty(&self) -> bool {
        self.requested.is_empty() && self.received.is_empty()
    }
}

impl Sharing {
    fn new(spec: &FetchSharing, id: u32, sms: u32) -> Sharing {
        let place = id % spec.sms;
        Sharing {
            place: place.into(),
            sharers: spec.sms.min(sms - (id - place)).into(),
            fetches_per_cycle: spec.fetches_per_cycle.into(),
            news: LineNews::default(),
        }
    }

    /// How many fetches the cache serves for this SM in a cycle: the SMs take turns, whether they fetch or not, because
    /// what others do in the same window is not known.
    fn turns(&self, now: Cycle) -> u32 {
        let first = (now.0 % self.sharers) * self.fetches_per_cycle % self.sharers;
        let before_mine = (self.place + self.sharers - first) % self.sharers;
        (self.fetches_per_cycle + self.sharers - 1 - before_mine).div_euclid(self.sharers) as u32
    }
}

/// The fetch unit of an SM. What every cycle reads comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Fetch {
    /// Warps whose buffer has room and that have not fetched yet.
    wants: SlotSet,
    /// Instructions in a buffer that leave room for a fetch.
    room: u32,
    /// Warps that wait for a line, with its address.
    waits: Vec<(WarpSlot, LineAddress)>,
    /// Lines that were requested.
    in_flight: Vec<LineAddress>,
    /// The slot that fetched last.
    last: u8,
    /// The line of the last hit, while it is certainly in the cache and the most recently used, or none.
    latest: LineNumber,
    pub hits: u64,
    tags: Tags,
    sharing: Option<Box<Sharing>>,
    spec: FetchSpec,
    line_bytes: Divisor,
    instruction_bytes: Divisor,
    pub misses: u64,
}

impl Fetch {
    /// Of SM `id` among `sms`, with the tags of an empty cache.
    pub(crate) fn new(spec: &FetchSpec, (id, sms): (u32, u32), tags: Tags) -> Fetch {
        let sharing = spec.shared.as_ref().map(|shared| Box::new(Sharing::new(shared, id, sms)));
        Fetch {
            sharing,
            spec: spec.clone(),
            line_bytes: Divisor::new(spec.cache.line_bytes as u64),
            instruction_bytes: Divisor::new(spec.instruction_bytes as u64),
            tags,
            wants: SlotSet::default(),
            room: spec.buffer_entries.saturating_sub(spec.width),
            waits: Vec::new(),
            in_flight: Vec::new(),
            last: 0,
            latest: LineNumber::NONE,
            hits: 0,
            misses: 0,
        }
    }

    /// The tags of its cache, which are cleared.
    pub(crate) fn into_tags(self) -> Tags {
        let mut tags = self.tags;
        tags.clear();
        tags
    }

    /// The first instructions of a kernel are in the cache, as many as fit.
    pub(crate) fn warm_up(&mut self, code_start: u32, instructions: usize) {
        let bytes = instructions as u64 * self.instruction_bytes.get();
        let lines = self.line_bytes.quotient_up(bytes);
        let room = u64::from(self.spec.cache.sets) * u64::from(self.spec.cache.ways);
        let start = u64::from(code_start) * self.instruction_bytes.get();
        let first = self.line_bytes.quotient(CODE_BASE + start);
        for number in (first..first + lines.min(room)).map(LineNumber) {
            if let Some(way) = self.tags.victim(number) {
                self.tags.replace(way, number);
                self.tags.line_mut(way).valid = 1;
            }
        }
    }

    /// Warps that can fetch in a cycle.
    pub(crate) fn warps_per_cycle(&self, now: Cycle) -> u32 {
        match &self.sharing {
            Some(sharing) => self.spec.warps_per_cycle.min(sharing.turns(now)),
            None => self.spec.warps_per_cycle,
        }
    }

    /// What happened since the last call to lines of a cache that others share.
    pub(crate) fn take_news(&mut self) -> LineNews {
        self.sharing.as_mut().map(|sharing| std::mem::take(&mut sharing.news)).unwrap_or_default()
    }

    /// Lines that another SM has requested and received. Returns whether warps waited for one.
    pub(crate) fn hear(&mut self, news: &LineNews) -> bool {
        for &line in &news.requested {
            let number = LineNumber(self.line_bytes.quotient(line.0));
            if self.tags.find(number).is_none() && !self.in_flight.contains(&line) {
                self.in_flight.push(line);
            }
        }
        let waiting = self.waits.len();
        news.received.iter().for_each(|&line| self.install(line));
        self.waits.len() < waiting
    }

    /// Whether a buffer with so many instructions takes those of another fetch.
    #[inline]
    pub(crate) fn has_room(&self, buffered: u32) -> bool {
        buffered <= self.room
    }

    /// A warp, whose buffer has room, will fetch when it is its turn.
    pub(crate) fn want(&mut self, slot: WarpSlot) {
        self.wants.insert(slot);
    }

    /// A warp has left its slot.
    pub(crate) fn forget(&mut self, slot: WarpSlot) {
        self.wants.remove(slot);
        self.waits.retain(|&(waiting, _)| waiting != slot);
    }

    /// Whether some warp would fetch in this cycle.
    pub(crate) fn is_busy(&self) -> bool {
        !self.wants.is_empty()
    }

    /// The warp whose turn it is to fetch.
    pub(crate) fn next_warp(&mut self) -> Option<WarpSlot> {
        if self.wants.is_empty() {
            return None;
        }
        let later = self.wants.0 & (!1 << self.last);
        let from = if later != 0 { later } else { self.wants.0 };
        let slot = WarpSlot(from.trailing_zeros() as u8);
        self.wants.remove(slot);
        self.last = slot.0;
        Some(slot)
    }

    #[inline]
    pub(crate) fn fetch(&mut self, now: Cycle, slot: WarpSlot, pc: Pc) -> Fetched {
        let line_bytes = self.line_bytes.get();
        let address = CODE_BASE + pc.0 as u64 * self.instruction_bytes.get();
        let number = LineNumber(self.line_bytes.quotient(address));
        if self.latest == number || self.touch(number) {
            self.hits += 1;
            let left = self.instruction_bytes.quotient((number.0 + 1) * line_bytes - address);
            let count = self.spec.width.min(self.spec.buffer_entries).min(left as u32);
            return Fetched::Hit { count, at: now + self.spec.latency_cycles as u64 };
        }
        self.miss(slot, number)
    }

    /// Uses a line, if the cache has it.
    fn touch(&mut self, number: LineNumber) -> bool {
        let way = self.tags.find(number).filter(|&way| self.tags.line(way).valid != 0);
        if let Some(way) = way {
            self.tags.touch(way);
            self.latest = number;
        }
        way.is_some()
    }

    fn miss(&mut self, slot: WarpSlot, number: LineNumber) -> Fetched {
        self.misses += 1;
        let line = number.address(self.line_bytes.get());
        self.waits.push((slot, line));
        if self.in_flight.contains(&line) {
            return Fetched::Pending;
        }
        self.request(line);
        Fetched::Miss { line }
    }

    fn request(&mut self, line: LineAddress) {
        self.in_flight.push(line);
        if let Some(sharing) = &mut self.sharing {
            sharing.news.requested.push(line);
        }
    }

    /// The next line after one that missed that is to be fetched with it, as number `ahead`, if it is not here.
    fn prefetch(&mut self, line: LineAddress, ahead: u32) -> Option<LineAddress> {
        let number = LineNumber(self.line_bytes.quotient(line.0) + u64::from(ahead));
        let next = number.address(self.line_bytes.get());
        if self.tags.find(number).is_some() || self.in_flight.contains(&next) {
            return None;
        }
        self.request(next);
        Some(next)
    }

    /// A line has arrived. The warps that waited for it fetch again.
    pub(crate) fn fill(&mut self, line: LineAddress) {
        if let Some(sharing) = &mut self.sharing {
            sharing.news.received.push(line);
        }
        self.install(line);
    }

    fn install(&mut self, line: LineAddress) {
        let number = LineNumber(self.line_bytes.quotient(line.0));
        self.in_flight.retain(|&requested| requested != line);
        // Two SMs that share the cache may have requested a line in the same window.
        if self.tags.find(number).is_none()
            && let Some(way) = self.tags.victim(number)
        {
            self.tags.replace(way, number);
            self.tags.line_mut(way).valid = 1;
            self.latest = LineNumber::NONE;
        }
        let wants = &mut self.wants;
        self.waits.retain(|&(slot, waited)| {
            if waited == line {
                wants.insert(slot);
            }
            waited != line
        });
    }
}

impl Slot {
    /// Fetched instructions are decoded. They are dropped if the warp has gone elsewhere meanwhile.
    #[inline]
    pub(crate) fn fill_buffer(&mut self, count: u32) {
        let buffer = &mut self.buffer;
        buffer.fetching = false;
        if let Position::At(pc) = self.position
            && Pc(pc.0 + buffer.count) == buffer.fetch_pc
        {
            buffer.count += count;
            buffer.pc = pc;
        }
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// One warp fetches.
    pub(crate) fn fetch_one(&mut self, now: Cycle) {
        // Lines that the network refused are requested again first.
        while let Some(&line) = self.refused_lines.last() {
            if !self.memory.fetch_instructions(now, line) {
                break;
            }
            self.refused_lines.pop();
        }
        let Some(slot) = self.fetch.next_warp() else { return };
        let entry = &mut self.slots[slot.index()];
        let Position::At(pc) = entry.position else {
            entry.buffer.fetching = false;
            return;
        };
        let pc = Pc(pc.0 + entry.buffer.count);
        entry.buffer.fetch_pc = pc;
        let life = entry.occupant.life;
        match self.fetch.fetch(now, slot, Pc(entry.occupant.code_start + pc.0)) {
            Fetched::Hit { count, at } => self.agenda.events.push(at, Event::Decoded { slot, life, count }),
            Fetched::Miss { line } => {
                self.request_line(now, line);
                for ahead in 1..=self.fetch.spec.prefetch_lines {
                    if let Some(next) = self.fetch.prefetch(line, ahead) {
                        self.request_line(now, next);
                    }
                }
            }
            Fetched::Pending => {}
        }
    }

    fn request_line(&mut self, now: Cycle, line: LineAddress) {
        if !self.memory.fetch_instructions(now, line) {
            self.refused_lines.push(line);
        }
    }

    /// A warp's next instruction is not the one after its last: its buffer is dropped.
    pub(crate) fn redirect(&mut self, slot: WarpSlot, now: Cycle) {
        let entry = &mut self.slots[slot.index()];
        entry.buffer.count = 0;
        if !entry.buffer.fetching && self.branch_latency > 0 {
            entry.buffer.fetching = true;
            let life = entry.occupant.life;
            self.agenda.events.push(now + self.branch_latency, Event::Refetch { slot, life });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many fetches each of `sms` has in each of the first cycles.
    fn turns(sms: u32, fetches_per_cycle: u32) -> Vec<Vec<u32>> {
        let spec = FetchSharing { sms: 8, fetches_per_cycle };
        let sharing = |id| Sharing::new(&spec, id, sms);
        (0..16).map(|cycle| (0..sms).map(|id| sharing(id).turns(Cycle(cycle))).collect()).collect()
    }

    #[test]
    fn sms_take_turns_at_a_shared_cache() {
        for sms in 1..=8 {
            for fetches in 1..=9 {
                let turns = turns(sms, fetches);
                for cycle in &turns {
                    assert_eq!(cycle.iter().sum::<u32>(), fetches, "{sms} SMs, {fetches} fetches: {turns:?}");
                }
                let shares =
                    (0..sms as usize).map(|sm| turns[..sms as usize].iter().map(|cycle| cycle[sm]).sum());
                assert!(shares.collect::<Vec<u32>>().iter().all(|&share| share == fetches), "{turns:?}");
            }
        }
        assert_eq!(turns(8, 4)[..2], [[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]]);
        assert_eq!(turns(1, 4)[0], [4]);
    }

    #[test]
    fn lines_of_a_shared_cache_are_known_to_others() {
        let mut chip = crate::chip::Chip::load("apu", &[]).unwrap();
        chip.fetch.cache.sets = 1;
        let fetch = |id| Fetch::new(&chip.fetch, (id, 8), Tags::new(&chip.fetch.cache));
        let (mut one, mut other) = (fetch(0), fetch(1));
        let (now, slot, pc) = (Cycle(0), WarpSlot(3), Pc(0));
        let Fetched::Miss { line } = one.fetch(now, slot, pc) else { panic!("the cache is empty") };
        assert!(!other.hear(&one.take_news()));
        assert_eq!(other.fetch(now, slot, pc), Fetched::Pending);
        assert!(!other.is_busy());
        one.fill(line);
        assert!(other.hear(&one.take_news()));
        assert_eq!(other.next_warp(), Some(slot));
        assert!(matches!(other.fetch(now, slot, pc), Fetched::Hit { .. }));
        assert!(one.take_news().is_empty() && other.take_news().is_empty());
    }
}
