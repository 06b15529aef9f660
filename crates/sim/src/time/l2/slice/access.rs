//! What happens to a request at the tags: it hits, or its line is fetched and it waits; then it is served.

use crate::chip::timing::SECTOR_BYTES;
use crate::kit::cycle::Cycle;
use crate::kit::line::LineNumber;
use crate::time::cache::{Line, Way};
use crate::time::dram::{Direction, Transfer};
use crate::time::l2::Served;
use crate::time::l2::fetch::Fill;
use crate::time::l2::mshr::MshrId;
use crate::time::l2::slice::{
    AtomicJob, AtomicWork, Incoming, Outcome, PARTS, Passed, Role, Slice, Stall, Turn, changes_memory,
    far_writes_of,
};
use crate::time::network::message::{Request, RequestKind, sector_count};

impl Slice {
    /// The head of the input queue looks up its line.
    pub(super) fn access(&mut self, turn: &mut Turn) -> Outcome {
        let mut queue = self.first_queue(turn.cycle);
        if self.heads[queue] > turn.cycle {
            return Outcome::Idle;
        }
        // What the twin passes on must not wait for what the twin has no room for: both might wait for each other.
        if queue == 0
            && self.heads[1] <= turn.cycle
            && self.twin_room == 0
            && self.incoming[0].front().is_some_and(|head| head.role == Role::Pass)
        {
            self.wants_twin = true;
            queue = 1;
        }
        let Some(&head) = self.incoming[queue].front() else { return Outcome::Idle };
        // A lookup takes the tags only; moving data takes the port.
        let port_is_busy = self.port_free > turn.cycle;
        let went = if head.role == Role::Pass {
            self.pass(&head, turn)
        } else if head.request.kind == RequestKind::Fence {
            self.answer_fence(&head, turn)
        } else if head.role == Role::Copy {
            if port_is_busy {
                return Outcome::PortBusy;
            }
            self.serve_copy(&head, turn)
        } else if let Some(way) = self.tags.find(head.number) {
            let line = self.tags.line(way);
            let missing = self.needs(&head.request) & !line.valid;
            if line.reserved {
                self.join(way, &head.request, missing, turn)
            } else if missing != 0 {
                self.fetch_more(way, &head, missing, turn)
            } else if port_is_busy {
                return Outcome::PortBusy;
            } else {
                self.hit(way, &head, turn)
            }
        } else if port_is_busy && self.needs(&head.request) == 0 {
            return Outcome::PortBusy;
        } else {
            self.allocate(&head, turn)
        };
        if let Err(cause) = went {
            return Outcome::Stalled(cause);
        }
        self.incoming[queue].pop_front();
        self.heads[queue] = self.incoming[queue].front().map_or(Cycle::NEVER, |head| head.ready);
        if queue == 0
            && let Some(atomic) = self.outside.pop_front()
        {
            self.entered.extend(atomic);
        }
        let stats = &mut *turn.stats;
        stats.queue_wait_cycles += turn.cycle - head.ready;
        if head.role == Role::Pass {
            stats.passed += 1;
            return Outcome::Moved;
        }
        if head.request.far && changes_memory(&head.request) {
            self.far_writes[far_writes_of(head.number)] -= 1;
        }
        match head.request.kind {
            RequestKind::Read => stats.reads += 1,
            RequestKind::Write => stats.writes += 1,
            RequestKind::Atomic { .. } => stats.atomics += 1,
            RequestKind::Fence => stats.fences += 1,
        }
        Outcome::Moved
    }

    /// The twin has the line: the request goes there. An atomic also takes a turn of the atomic unit here.
    fn pass(&mut self, head: &Incoming, turn: &mut Turn) -> Result<(), Stall> {
        if self.twin_room == 0 {
            self.wants_twin = true;
            return Err(Stall::Twin);
        }
        if let RequestKind::Atomic { .. } = head.request.kind {
            let free = Cycle(self.atomic_free / PARTS);
            if self.atomic.is_some() || free > turn.cycle {
                self.settles = self.settles.min(free.max(turn.cycle + 1));
                return Err(Stall::Atomic);
            }
            self.atomic_free = self.atomic_free.max(turn.cycle.0 * PARTS) + self.port_parts;
        }
        self.twin_room -= 1;
        turn.passed.push(Passed {
            cycle: turn.cycle,
            slice: u32::from(self.index),
            request: head.request,
            since: head.since,
        });
        Ok(())
    }

    /// All before it is done, but perhaps not the last atomic.
    fn answer_fence(&mut self, head: &Incoming, turn: &mut Turn) -> Result<(), Stall> {
        if self.atomic.is_some() {
            return Err(Stall::Atomic);
        }
        if self.reply_room == 0 {
            self.wants_reply = true;
            return Err(Stall::Reply);
        }
        self.reply(&head.request, head.request.far, turn);
        Ok(())
    }

    /// This half of the L2 has a copy of the twin's line.
    fn serve_copy(&mut self, head: &Incoming, turn: &mut Turn) -> Result<(), Stall> {
        if self.reply_room == 0 {
            self.wants_reply = true;
            return Err(Stall::Reply);
        }
        self.use_port(head.request.sectors, turn);
        self.reply(&head.request, false, turn);
        turn.stats.hits += 1;
        Ok(())
    }

    /// The line has all that is needed.
    #[inline(always)]
    fn hit(&mut self, way: Way, head: &Incoming, turn: &mut Turn) -> Result<(), Stall> {
        self.check(head.number, &head.request, turn.cycle)?;
        self.tags.touch(way);
        self.serve(way, &head.request, turn);
        turn.stats.hits += 1;
        Ok(())
    }

    /// The line is in flight: the request waits with the others, and sectors that were not asked for are fetched too.
    fn join(&mut self, way: Way, request: &Request, missing: u8, turn: &mut Turn) -> Result<(), Stall> {
        let id = self.mshrs.of(way);
        if self.mshrs.has_no_place(id) {
            return Err(Stall::Mshr);
        }
        let missing = missing & !self.mshrs.coming(id);
        let fetched = if missing != 0 {
            self.check_dram(1, turn)?;
            self.fetch(id, missing, turn)
        } else {
            0
        };
        self.mshrs.join(id, request, fetched | self.overwritten(request));
        self.tags.touch(way);
        // Once the line has come, a request that joins only waits for its turn.
        let count = if missing == 0 && self.mshrs.is_ready(id) {
            &mut turn.stats.hits
        } else {
            &mut turn.stats.merges
        };
        *count += 1;
        Ok(())
    }

    /// The line is here, but not all that is needed of it.
    fn fetch_more(&mut self, way: Way, head: &Incoming, missing: u8, turn: &mut Turn) -> Result<(), Stall> {
        if self.mshrs.is_full() {
            return Err(Stall::Mshr);
        }
        self.check_dram(1, turn)?;
        self.tags.touch(way);
        self.wait_for(way, &head.request, missing, turn);
        turn.stats.misses += 1;
        Ok(())
    }

    /// The line is not here: it replaces another one.
    fn allocate(&mut self, head: &Incoming, turn: &mut Turn) -> Result<(), Stall> {
        let missing = self.needs(&head.request);
        if missing == 0 {
            self.check(head.number, &head.request, turn.cycle)?;
        } else if self.mshrs.is_full() {
            return Err(Stall::Mshr);
        }
        let fetches = (missing != 0) as u32;
        self.check_dram(fetches, turn)?;
        let way = self.tags.victim(head.number).ok_or(Stall::Line)?;
        let writes_back = self.tags.line(way).dirty != 0;
        self.check_dram(fetches + writes_back as u32, turn)?;
        let victim = self.tags.replace(way, head.number);
        if writes_back {
            self.write_back(&victim, turn);
        }
        if missing == 0 {
            self.serve(way, &head.request, turn);
        } else {
            self.wait_for(way, &head.request, missing, turn);
        }
        turn.stats.misses += 1;
        Ok(())
    }

    /// The request is the first that waits for sectors of the line.
    fn wait_for(&mut self, way: Way, request: &Request, missing: u8, turn: &mut Turn) {
        let Some(id) = self.mshrs.take(way) else { return };
        self.tags.line_mut(way).reserved = true;
        let fetched = self.fetch(id, missing, turn);
        self.mshrs.join(id, request, fetched | self.overwritten(request));
    }

    /// Fetches sectors of a line. Returns all sectors that come, as bursts may bring more.
    fn fetch(&mut self, mshr: MshrId, missing: u8, turn: &mut Turn) -> u8 {
        let (sectors, bursts) = self.bursts.cover(missing);
        let sectors = sectors & self.all_sectors;
        let number = self.tags.line(self.mshrs.way(mshr)).number;
        let tag = Fill { slice: self.index, mshr, sectors }.tag();
        self.send(number, bursts, Direction::Read, tag, turn);
        sectors
    }

    fn write_back(&mut self, victim: &Line, turn: &mut Turn) {
        let (_, bursts) = self.bursts.cover(victim.dirty);
        self.send(victim.number, bursts, Direction::Write, 0, turn);
        self.use_port(victim.dirty, turn);
        turn.stats.writebacks += 1;
    }

    fn send(&self, number: LineNumber, bursts: u8, direction: Direction, tag: u32, turn: &mut Turn) {
        let place = turn.map.place(turn.map.local_of_line(self.index as u32, number));
        let transfer = Transfer { bank: place.bank as u16, row: place.row, bursts, direction, tag };
        turn.channel.send(turn.cycle, transfer);
    }

    fn check_dram(&mut self, transfers: u32, turn: &Turn) -> Result<(), Stall> {
        if turn.channel.room() >= transfers {
            return Ok(());
        }
        self.wants_dram = transfers;
        Err(Stall::Dram)
    }

    /// Whether a request whose sectors are there can be served.
    #[inline(always)]
    pub(super) fn check(&mut self, number: LineNumber, request: &Request, now: Cycle) -> Result<(), Stall> {
        let (is_atomic, words) = match request.kind {
            RequestKind::Atomic { words, .. } => (true, words),
            _ => (false, 0),
        };
        if self.atomic.as_ref().is_some_and(|job| is_atomic || job.number == number) {
            return Err(Stall::Atomic);
        }
        if is_atomic && !self.settling.is_empty() {
            self.settling.retain(|&(_, _, until)| until > now);
            let same = self.settling.iter().filter(|&&(line, other, _)| line == number && other & words != 0);
            if let Some(until) = same.map(|&(_, _, until)| until).max() {
                self.settles = self.settles.min(until);
                return Err(Stall::Atomic);
            }
        }
        let is_read = request.kind == RequestKind::Read;
        if is_read && !self.written.is_empty() && self.is_being_written(number, now) {
            return Err(Stall::Write);
        }
        if self.reply_room == 0 && !is_atomic {
            self.wants_reply = true;
            return Err(Stall::Reply);
        }
        Ok(())
    }

    /// Whether a reader of the line must wait for a store.
    fn is_being_written(&mut self, number: LineNumber, now: Cycle) -> bool {
        self.written.retain(|&(_, until)| until > now);
        let until = self.written.iter().find(|(line, _)| *line == number).map(|&(_, until)| until);
        self.settles = self.settles.min(until.unwrap_or(Cycle::NEVER));
        until.is_some()
    }

    fn note_write(&mut self, number: LineNumber, now: Cycle) {
        if self.read_after_write_cycles > 0 {
            self.written.retain(|&(line, until)| line != number && until > now);
            self.written.push((number, now + self.read_after_write_cycles));
        }
    }

    /// Moves the data of a request.
    pub(super) fn serve(&mut self, way: Way, request: &Request, turn: &mut Turn) {
        self.use_port(request.sectors, turn);
        let overwritten = self.overwritten(request);
        if request.kind == RequestKind::Write {
            let partial = u64::from(sector_count(request.sectors & !overwritten));
            let cycles = partial * (self.partial_write_cycles - 1);
            self.port_free += cycles;
            turn.stats.port_busy_cycles += cycles;
            self.note_write(self.tags.line(way).number, turn.cycle);
        }
        let line = self.tags.line_mut(way);
        let mut far = request.far;
        match request.kind {
            RequestKind::Read | RequestKind::Fence => line.copied |= request.far,
            RequestKind::Write => {
                // A store from the other half changes its copy on the way. Any other ends that copy before it is
                // done, so the answer is as late as from there.
                if !request.far {
                    far |= std::mem::take(&mut line.copied);
                }
                line.valid |= overwritten;
                line.dirty |= request.sectors;
            }
            RequestKind::Atomic { passes, same_word, lanes, words, adds, .. } => {
                line.copied = false;
                line.dirty |= request.sectors;
                let number = line.number;
                let work = AtomicWork {
                    lanes: u64::from(lanes),
                    passes: u64::from(passes),
                    same_word: u64::from(same_word),
                    adds,
                };
                let unit_done = self.use_atomic_unit((number, words), work, turn);
                let done = self.port_free.max(unit_done);
                self.atomic = Some(AtomicJob { number, request: *request, done });
                return;
            }
        }
        self.reply(request, far, turn);
    }

    /// The atomic unit begins as soon as it has performed its last pass. Returns the cycle in which it is free again.
    fn use_atomic_unit(
        &mut self,
        (number, words): (LineNumber, u32),
        AtomicWork { lanes, passes, same_word, adds }: AtomicWork,
        turn: &mut Turn,
    ) -> Cycle {
        let (request_parts, word_parts) = match adds {
            true => self.add_parts,
            false => (self.request_parts, self.word_parts),
        };
        let spread = self.atomic_lanes_per_cycle.quotient_up(lanes) * PARTS;
        let last_change = (same_word - 1) * word_parts;
        let work = passes * self.pass_parts;
        let parts = spread.max(work).max(last_change + self.pass_parts).max(request_parts);
        turn.stats.atomic_lanes += lanes;
        turn.stats.same_word_cycles += (last_change + self.pass_parts).saturating_sub(spread) / PARTS;
        let begin = self.atomic_free.max(turn.cycle.0 * PARTS);
        self.atomic_free = begin + parts;
        if word_parts > self.pass_parts {
            self.settling.push((number, words, Cycle((begin + last_change + word_parts) / PARTS)));
        }
        Cycle(self.atomic_free / PARTS).max(turn.cycle + 1)
    }

    /// The reply leaves as soon as the port has moved its last byte, or that of an earlier reply.
    pub(super) fn reply(&mut self, request: &Request, far: bool, turn: &mut Turn) {
        self.reply_room -= 1;
        let cycle = turn.cycle.max(self.port_free);
        turn.served.push(Served { cycle, slice: self.index as u32, far, request: *request });
    }

    /// Moves sectors through the port, behind what it moves already.
    fn use_port(&mut self, sectors: u8, turn: &mut Turn) {
        let bytes = u64::from(sector_count(sectors) * SECTOR_BYTES);
        let rest = if self.port_free < turn.cycle { 0 } else { self.port_rest };
        let parts = self.port_bytes.quotient_up(bytes).max(1) * self.port_parts + rest;
        let cycles = parts / PARTS;
        self.port_rest = parts % PARTS;
        self.port_free = self.port_free.max(turn.cycle) + cycles;
        turn.stats.port_busy_cycles += cycles;
    }

    /// Sectors that must be there before a request is served.
    fn needs(&self, request: &Request) -> u8 {
        match request.kind {
            RequestKind::Read | RequestKind::Atomic { .. } => request.sectors,
            RequestKind::Write if self.fetch_on_write => self.all_sectors,
            RequestKind::Write => request.sectors & !request.whole,
            RequestKind::Fence => 0,
        }
    }

    /// Sectors that a request makes valid by itself.
    fn overwritten(&self, request: &Request) -> u8 {
        match request.kind {
            RequestKind::Write => request.whole & request.sectors,
            RequestKind::Read | RequestKind::Atomic { .. } | RequestKind::Fence => 0,
        }
    }

    pub(super) fn first_is_ready(&self, id: MshrId) -> bool {
        let valid = self.tags.line(self.mshrs.way(id)).valid;
        self.needs(self.mshrs.first(id)) & !valid == 0
    }
}
