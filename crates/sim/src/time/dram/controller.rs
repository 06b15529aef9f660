//! Which command comes next: first ready, first come (FR-FCFS).
//!
//! In each clock, the oldest transfer in the queue whose row is open and whose column command can be given goes first;
//! else the oldest whose bank can be activated or precharged. A row stays open while the queue has transfers for it,
//! and after that until another row of its bank is wanted. The bus keeps its direction as long as there are transfers
//! for it, as they are ready sooner than those that turn it.
//!
//! Each bank knows its candidates: the oldest read and the oldest write of its open row, or else the row command for
//! its oldest transfer, and when the bank can take them. The constraints of other banks, the group and the bus are kept
//! once for each kind of command. So the next command and its clock are found in one pass over the candidates after
//! each command, and nothing is done in the clocks between.

use crate::chip::timing::{DramSpec, MOST_BANK_GROUPS, MOST_BANKS, MOST_QUEUED};
use crate::kit::bits::lanes;
use crate::time::dram::bank::{Bank, Delays, Slot};
use crate::time::dram::choice::{Choice, Kind, When};
use crate::time::dram::clock::NO_CLOCK;
use crate::time::dram::{Direction, DramStats, Pending, Transfer};

/// What a bank wants next, for one direction.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    kind: Kind,
    /// The first clock in which the bank can take it.
    ready: When,
    /// The order of its transfer.
    order: u64,
}

/// A transfer in the queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    pending: Pending,
    /// How many transfers were taken before, and in the lowest byte the slot.
    order: u64,
    /// The next transfer of its bank.
    next: Option<Slot>,
}

/// The controller, its queue and its banks.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    delays: Delays,
    groups: usize,
    burst_bytes: u64,
    pass_limit: u32,

    queue: Vec<Queued>,
    free: Vec<Slot>,
    banks: Vec<Bank>,
    /// Two for each bank: reads (or a row command), and writes.
    candidates: Vec<Candidate>,
    /// Which elements of `candidates` are valid, a bit per bank: reads (or row commands), and writes.
    wanted: [u64; 2],
    /// By kind of command: the first clock for it, as far as other banks, the group and the bus are concerned.
    floors: [When; Kind::LIMIT],
    /// The first clock without a command.
    now: u64,
    /// The best command for the queue as it is.
    choice: Choice,
    /// How many transfers were ever taken.
    taken: u64,
    oldest: Option<Slot>,
    /// Bursts of other transfers since `oldest` became the oldest.
    passed: u32,
    pub stats: DramStats,
    #[cfg(test)]
    pub commands: Vec<crate::time::dram::tests::Given>,
}

impl Controller {
    pub(crate) fn new(spec: &DramSpec) -> Controller {
        let burst_bytes = spec.bus_bytes * spec.burst;
        let groups = spec.bank_groups as usize;
        debug_assert!(
            spec.queue_requests <= MOST_QUEUED && spec.banks <= MOST_BANKS,
            "checked with the chip"
        );
        debug_assert!(spec.bank_groups <= MOST_BANK_GROUPS, "checked with the chip");
        let nothing = Candidate { kind: Kind::ACTIVATE, ready: When::row(NO_CLOCK), order: 0 };
        let unused = Pending {
            transfer: Transfer { bank: 0, bursts: 0, direction: Direction::Read, tag: 0, row: 0 },
            arrival_clock: 0,
        };
        Controller {
            delays: Delays::new(spec),
            groups,
            burst_bytes: burst_bytes as u64,
            // A transfer that was passed by a whole row's worth of bursts waits no longer: by then, closing a row or
            // turning the bus costs little in comparison.
            pass_limit: (spec.row_bytes / burst_bytes).max(1),
            queue: vec![Queued { pending: unused, order: 0, next: None }; spec.queue_requests as usize],
            free: (0..spec.queue_requests).rev().map(|slot| Slot(slot as u8)).collect(),
            banks: (0..spec.banks).map(|number| Bank::new(number, spec.bank_groups)).collect(),
            candidates: vec![nothing; 2 * spec.banks as usize],
            wanted: [0; 2],
            floors: [When(0); Kind::LIMIT],
            now: 0,
            choice: Choice::NONE,
            taken: 0,
            oldest: None,
            passed: 0,
            stats: DramStats::default(),
            #[cfg(test)]
            commands: Vec::new(),
        }
    }

    /// The clock of the next command for what is in the queue.
    #[inline]
    pub(crate) fn next_command(&self) -> u64 {
        self.choice.clock()
    }

    /// The first clock in which the queue can take a transfer, as far as is known.
    #[inline]
    pub(crate) fn next_taking(&self) -> u64 {
        if self.free.is_empty() { NO_CLOCK } else { self.now }
    }

    /// Takes a transfer into the queue. No command can be given before `clock` any more.
    pub(crate) fn take(&mut self, clock: u64, pending: Pending) {
        let Some(slot) = self.free.pop() else { return };
        self.now = clock;
        self.queue[slot.index()] = Queued { pending, order: self.taken << 8 | slot.0 as u64, next: None };
        self.taken += 1;
        self.oldest.get_or_insert(slot);
        let Transfer { bank: number, row, direction, .. } = pending.transfer;
        let bank = &mut self.banks[number as usize];
        match bank.last.replace(slot) {
            Some(last) => self.queue[last.index()].next = Some(slot),
            None => bank.first = Some(slot),
        }
        if bank.row == row {
            bank.hits[direction as usize] += 1;
        }
        // Only the first transfer of its kind changes what the bank wants next.
        if bank.first == Some(slot) || bank.row == row && bank.hits[direction as usize] == 1 {
            self.find_candidates(number as usize);
            self.choose();
        }
    }

    /// Gives the chosen command, and chooses the next. If that was the last burst of a read, returns the clock after
    /// its data and the tag.
    pub(crate) fn give_command(&mut self) -> Option<(u64, u32)> {
        let (clock, slot) = (self.choice.clock(), self.choice.slot());
        debug_assert!(clock >= self.now, "one command a clock");
        let transfer = self.queue[slot.index()].pending.transfer;
        let bank = &mut self.banks[transfer.bank as usize];
        #[cfg(test)]
        self.commands.push(crate::time::dram::tests::Given::new(clock, bank.row, &transfer));
        self.now = clock + 1;
        let mut done = None;
        if bank.row == transfer.row {
            done = self.move_burst(clock, slot);
        } else if bank.row == Bank::CLOSED {
            bank.activate(clock, transfer.row, &self.delays);
            self.count_hits(transfer.bank as usize);
            self.find_candidates(transfer.bank as usize);
            self.floors[Kind::ACTIVATE.index()] = When::row(clock + self.delays.activate_to_other);
            self.stats.row_misses += 1;
        } else {
            bank.precharge(clock, &self.delays);
            self.find_candidates(transfer.bank as usize);
            self.stats.precharges += 1;
        }
        // A row command that was ready may have been passed over for this one. A column command was not.
        for kind in [Kind::ACTIVATE, Kind::PRECHARGE] {
            let floor = &mut self.floors[kind.index()];
            *floor = (*floor).max(When::row(self.now));
        }
        self.choose();
        done
    }

    /// Gives a column command for a queued transfer.
    fn move_burst(&mut self, clock: u64, slot: Slot) -> Option<(u64, u32)> {
        let Pending { transfer, arrival_clock } = self.queue[slot.index()].pending;
        let (delays, stats) = (&self.delays, &mut self.stats);
        let bank = &mut self.banks[transfer.bank as usize];
        stats.row_hits += !bank.fresh as u64;
        bank.move_burst(clock, transfer.direction, delays);
        let (to_read, to_write) = match transfer.direction {
            Direction::Read => {
                stats.reads += 1;
                (delays.column, delays.read_to_write)
            }
            Direction::Write => {
                stats.writes += 1;
                (delays.write_to_read, delays.column)
            }
        };
        let (columns, _) = self.floors[Kind::FIRST_COLUMN..].as_chunks_mut();
        for [read, write] in &mut columns[..self.groups] {
            *read = (*read).max(When::column(clock + to_read));
            *write = (*write).max(When::column(clock + to_write));
        }
        for floor in &mut columns[bank.group as usize] {
            *floor = (*floor).max(When::column(clock + delays.same_group));
        }
        stats.busy_clocks += delays.data;
        stats.bytes += self.burst_bytes;
        self.passed += (self.oldest != Some(slot)) as u32;
        if transfer.bursts > 1 {
            self.queue[slot.index()].pending.transfer.bursts -= 1;
            return None;
        }
        let data_end = clock + delays.read_to_end;
        stats.wait_clocks += clock - arrival_clock;
        bank.hits[transfer.direction as usize] -= 1;
        self.remove(transfer.bank as usize, slot);
        (transfer.direction == Direction::Read).then_some((data_end, transfer.tag))
    }

    /// Removes a transfer from the queue.
    fn remove(&mut self, number: usize, slot: Slot) {
        let bank = &mut self.banks[number];
        let next = self.queue[slot.index()].next;
        let (mut before, mut at) = (None, bank.first);
        while let Some(other) = at
            && other != slot
        {
            (before, at) = (at, self.queue[other.index()].next);
        }
        match before {
            Some(before) => self.queue[before.index()].next = next,
            None => bank.first = next,
        }
        if next.is_none() {
            bank.last = before;
        }
        self.free.push(slot);
        self.find_candidates(number);
        if self.oldest == Some(slot) {
            self.passed = 0;
            self.oldest = self.find_oldest();
        }
    }

    fn find_oldest(&self) -> Option<Slot> {
        let mut oldest = None;
        for number in lanes(self.wanted[0] | self.wanted[1]) {
            if let Some(first) = self.banks[number].first {
                let order = self.queue[first.index()].order;
                oldest = Some(oldest.map_or(order, |oldest: u64| oldest.min(order)));
            }
        }
        oldest.map(|order| Slot(order as u8))
    }

    /// The transfers of a bank, oldest first.
    fn transfers(&self, number: usize) -> impl Iterator<Item = &Queued> {
        let first = self.banks[number].first.map(|slot| &self.queue[slot.index()]);
        std::iter::successors(first, |queued| queued.next.map(|slot| &self.queue[slot.index()]))
    }

    /// Counts the transfers for a row that was just opened.
    fn count_hits(&mut self, number: usize) {
        let row = self.banks[number].row;
        let mut hits = [0; 2];
        for queued in self.transfers(number) {
            let transfer = &queued.pending.transfer;
            hits[transfer.direction as usize] += (transfer.row == row) as u32;
        }
        self.banks[number].hits = hits;
    }

    /// A bank has changed: finds its candidates.
    fn find_candidates(&mut self, number: usize) {
        let bank = &self.banks[number];
        let mut found = [None; 2];
        if bank.hits == [0; 2] {
            if let Some(first) = bank.first {
                let is_open = bank.row != Bank::CLOSED;
                let kind = if is_open { Kind::PRECHARGE } else { Kind::ACTIVATE };
                let ready = if is_open { bank.precharge_ready } else { bank.activate_ready };
                let ready = When::row(ready.max(self.now));
                found[0] = Some(Candidate { kind, ready, order: self.queue[first.index()].order });
            }
        } else {
            let ready = When::column(bank.column_ready.max(self.now));
            let mut missing = bank.hits.map(|hits| hits > 0);
            for queued in self.transfers(number) {
                let Transfer { row, direction, .. } = queued.pending.transfer;
                if row == bank.row && std::mem::take(&mut missing[direction as usize]) {
                    let kind = Kind::column(bank.group, direction);
                    found[direction as usize] = Some(Candidate { kind, ready, order: queued.order });
                    if missing == [false; 2] {
                        break;
                    }
                }
            }
        }
        for (direction, found) in found.into_iter().enumerate() {
            self.wanted[direction] &= !(1 << number);
            if let Some(found) = found {
                self.wanted[direction] |= 1 << number;
                self.candidates[2 * number + direction] = found;
            }
        }
    }

    /// Finds the best command.
    fn choose(&mut self) {
        if self.passed >= self.pass_limit {
            self.choice = self.oldest_first();
            return;
        }
        let mut best = Choice::NONE;
        for (direction, wanted) in self.wanted.into_iter().enumerate() {
            for number in lanes(wanted) {
                best = best.min(self.choice_of(2 * number + direction));
            }
        }
        self.choice = best;
    }

    #[inline]
    fn choice_of(&self, lane: usize) -> Choice {
        let candidate = &self.candidates[lane];
        Choice::new(candidate.ready.max(self.floors[candidate.kind.index()]), candidate.order)
    }

    /// The best command when the oldest transfer has waited for too long: no other may use its bank, or turn the bus
    /// away from it.
    fn oldest_first(&self) -> Choice {
        let Some(oldest) = self.oldest.map(|slot| &self.queue[slot.index()]) else { return Choice::NONE };
        let Transfer { bank: number, row, direction, .. } = oldest.pending.transfer;
        let bank = &self.banks[number as usize];
        let is_hit = bank.row == row;
        let own_lane = 2 * number as usize + if is_hit { direction as usize } else { 0 };
        let mut best = if is_hit || bank.row == Bank::CLOSED {
            self.choice_of(own_lane)
        } else {
            let ready = When::row(bank.precharge_ready);
            Choice::new(ready.max(self.floors[Kind::PRECHARGE.index()]), oldest.order)
        };
        for (column, wanted) in self.wanted.into_iter().enumerate() {
            for other in lanes(wanted & !(1 << number)) {
                let lane = 2 * other + column;
                let moves_data = self.candidates[lane].kind.index() >= Kind::FIRST_COLUMN;
                let takes_bus = is_hit && moves_data && column != direction as usize;
                if !takes_bus {
                    best = best.min(self.choice_of(lane));
                }
            }
        }
        best
    }
}
