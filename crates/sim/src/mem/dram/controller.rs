//! Which command comes next: first ready, first come (FR-FCFS).
//!
//! In each clock, the oldest transfer in the queue whose row is open and whose column command can be given; else the
//! oldest whose bank can be activated or precharged. A row stays open while the queue has transfers for it, and
//! after that until another row of its bank is wanted. The bus keeps its direction as long as there are such
//! transfers for it, as they are ready sooner than those that turn it.
//!
//! A queued transfer knows its next command and when its bank can take it; what other banks, the group and the bus
//! demand is kept once for each kind of command. So the next command and its clock are found in one pass over the
//! queue after each command, and nothing is done in the clocks between.

use super::bank::{Bank, Delays};
use super::clock::NEVER;
use super::{Direction, DramStats, Pending, Transfer};
use crate::chip::timing::DramSpec;

/// A command that can be given, or the first clock for one. Less is better: sooner, then column commands, then older
/// transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Choice(u64);

impl Choice {
    const INDEX_BITS: u32 = 8;
    const NONE: Choice = Choice::row(NEVER);

    const fn column(clock: u64) -> Choice {
        Choice(clock << (Choice::INDEX_BITS + 1))
    }

    /// Activate or precharge.
    const fn row(clock: u64) -> Choice {
        Choice((clock << 1 | 1) << Choice::INDEX_BITS)
    }

    /// The same for the transfer at an index of the queue.
    #[inline]
    fn of(self, index: usize) -> Choice {
        Choice(self.0 | index as u64)
    }

    fn index(self) -> usize {
        self.0 as usize & ((1 << Choice::INDEX_BITS) - 1)
    }

    #[inline]
    fn clock(self) -> u64 {
        self.0 >> (Choice::INDEX_BITS + 1)
    }
}

/// A kind of command, as an index: activate, precharge, and then read and write for each bank group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind(u8);

impl Kind {
    const ACTIVATE: Kind = Kind(0);
    const PRECHARGE: Kind = Kind(1);
    const FIRST_COLUMN: u8 = 2;
    const LIMIT: usize = 64;

    fn column(group: u8, direction: Direction) -> Kind {
        Kind(Kind::FIRST_COLUMN + 2 * group + direction as u8)
    }

    fn moves_data(self) -> bool {
        self.0 >= Kind::FIRST_COLUMN
    }

    #[inline]
    fn index(self) -> usize {
        self.0 as usize % Kind::LIMIT
    }
}

/// A transfer in the queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    /// When its bank can take its next command.
    ready: Choice,
    kind: Kind,
    pending: Pending,
}

/// The controller, its queue and its banks.
#[derive(Clone, Debug)]
pub(super) struct Controller {
    delays: Delays,
    burst_bytes: u64,
    queue_limit: usize,
    pass_limit: u32,

    /// What it chooses from, oldest first.
    queue: Vec<Queued>,
    banks: Vec<Bank>,
    /// By kind of command: the first clock for it, because of all that is not its bank.
    floors: [Choice; Kind::LIMIT],
    groups: usize,
    /// The first clock without a command.
    now: u64,
    /// The best command for the queue as it is.
    choice: Choice,
    /// Bursts of others since the oldest transfer became the oldest.
    passed: u32,
    pub stats: DramStats,
    #[cfg(test)]
    pub commands: Vec<super::tests::Given>,
}

impl Controller {
    pub fn new(spec: &DramSpec) -> Controller {
        let burst_bytes = spec.bus_bytes * spec.burst;
        let queue_limit = spec.queue_requests as usize;
        let groups = spec.bank_groups as usize;
        assert!((1..=1 << Choice::INDEX_BITS).contains(&queue_limit), "dram.queue_requests = {queue_limit}");
        assert!((1..Kind::LIMIT / 2).contains(&groups), "dram.bank_groups = {groups}");
        Controller {
            delays: Delays::new(spec),
            burst_bytes: burst_bytes as u64,
            queue_limit,
            // A transfer that has let a whole row's worth of bursts pass waits no longer: by then, closing a row or
            // turning the bus costs little.
            pass_limit: (spec.row_bytes / burst_bytes).max(1),
            queue: Vec::with_capacity(queue_limit),
            banks: (0..spec.banks).map(|number| Bank::new(number, spec.bank_groups)).collect(),
            floors: [Choice(0); Kind::LIMIT],
            groups,
            now: 0,
            choice: Choice::NONE,
            passed: 0,
            stats: DramStats::default(),
            #[cfg(test)]
            commands: Vec::new(),
        }
    }

    /// The clock of the next command for what is in the queue.
    #[inline]
    pub fn next_command(&self) -> u64 {
        self.choice.clock()
    }

    /// The first clock in which the queue can take a transfer, as far as is known.
    #[inline]
    pub fn next_taking(&self) -> u64 {
        if self.queue.len() < self.queue_limit { self.now } else { NEVER }
    }

    /// Takes a transfer into the queue, in a clock before which no command can be given.
    pub fn take(&mut self, clock: u64, pending: Pending) {
        self.now = clock;
        let bank = &mut self.banks[pending.transfer.bank as usize];
        let is_hit = bank.row == pending.transfer.row;
        bank.hits += is_hit as u32;
        let is_first_hit = is_hit && bank.hits == 1;
        let (kind, ready) = self.next_command_of(&pending.transfer);
        let index = self.queue.len();
        self.queue.push(Queued { ready, kind, pending });
        if is_first_hit {
            // The others wait with closing the row.
            self.update(pending.transfer.bank);
            self.choose();
        } else {
            let choice = if self.is_overdue() { self.oldest_first(index) } else { self.first_ready(index) };
            self.choice = self.choice.min(choice);
        }
    }

    /// Gives the chosen command, and chooses the next. Returns the end of its data and the tag, if that was the last
    /// burst of a read.
    pub fn give_command(&mut self) -> Option<(u64, u32)> {
        let (clock, index) = (self.choice.clock(), self.choice.index());
        debug_assert!(clock >= self.now, "one command a clock");
        let transfer = self.queue[index].pending.transfer;
        let bank = &mut self.banks[transfer.bank as usize];
        #[cfg(test)]
        self.commands.push(super::tests::Given::new(clock, bank.row, &transfer));
        self.now = clock + 1;
        let mut done = None;
        if bank.row == transfer.row {
            done = self.move_burst(clock, index);
        } else if bank.row == Bank::CLOSED {
            bank.activate(clock, transfer.row, &self.delays);
            let same_row = |queued: &&Queued| {
                let other = &queued.pending.transfer;
                other.bank == transfer.bank && other.row == transfer.row
            };
            bank.hits = self.queue.iter().filter(same_row).count() as u32;
            self.floors[Kind::ACTIVATE.index()] = Choice::row(clock + self.delays.activate_to_other);
            self.stats.row_misses += 1;
            self.update(transfer.bank);
        } else {
            bank.precharge(clock, &self.delays);
            bank.hits = 0;
            self.stats.precharges += 1;
            self.update(transfer.bank);
        }
        // A row command that was ready may have been passed over for this one. A column command was not.
        for kind in [Kind::ACTIVATE, Kind::PRECHARGE] {
            let floor = &mut self.floors[kind.index()];
            *floor = (*floor).max(Choice::row(self.now));
        }
        self.choose();
        done
    }

    /// A column command for a queued transfer.
    fn move_burst(&mut self, clock: u64, index: usize) -> Option<(u64, u32)> {
        let Pending { transfer, arrival } = self.queue[index].pending;
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
        let (columns, _) = self.floors[Kind::FIRST_COLUMN as usize..].as_chunks_mut();
        for [read, write] in &mut columns[..self.groups] {
            *read = (*read).max(Choice::column(clock + to_read));
            *write = (*write).max(Choice::column(clock + to_write));
        }
        for floor in &mut columns[bank.group as usize] {
            *floor = (*floor).max(Choice::column(clock + delays.same_group));
        }
        stats.busy_clocks += delays.data;
        stats.bytes += self.burst_bytes;
        self.passed += (index > 0) as u32;
        if transfer.bursts > 1 {
            self.queue[index].pending.transfer.bursts -= 1;
            return None;
        }
        let data_end = clock + delays.read_to_end;
        stats.wait_clocks += clock - arrival;
        self.queue.remove(index);
        if index == 0 {
            self.passed = 0;
        }
        bank.hits -= 1;
        if bank.hits == 0 {
            self.update(transfer.bank);
        }
        (transfer.direction == Direction::Read).then_some((data_end, transfer.tag))
    }

    /// A transfer's next command, and the first clock for it, because of its bank.
    #[inline]
    fn next_command_of(&self, transfer: &Transfer) -> (Kind, Choice) {
        let bank = &self.banks[transfer.bank as usize];
        if bank.row == transfer.row {
            (Kind::column(bank.group, transfer.direction), Choice::column(bank.column_ready.max(self.now)))
        } else if bank.row == Bank::CLOSED {
            (Kind::ACTIVATE, Choice::row(bank.activate_ready.max(self.now)))
        } else if bank.hits > 0 {
            (Kind::PRECHARGE, Choice::NONE)
        } else {
            (Kind::PRECHARGE, Choice::row(bank.precharge_ready.max(self.now)))
        }
    }

    /// A bank changed: its transfers may want other commands.
    fn update(&mut self, bank: u16) {
        for index in 0..self.queue.len() {
            let transfer = self.queue[index].pending.transfer;
            if transfer.bank == bank {
                let (kind, ready) = self.next_command_of(&transfer);
                let queued = &mut self.queue[index];
                (queued.kind, queued.ready) = (kind, ready);
            }
        }
    }

    /// Finds the best command for the queue.
    fn choose(&mut self) {
        let mut best = Choice::NONE;
        if self.is_overdue() {
            for index in 0..self.queue.len() {
                best = best.min(self.oldest_first(index));
            }
        } else {
            for (index, queued) in self.queue.iter().enumerate() {
                best = best.min(queued.ready.max(self.floors[queued.kind.index()]).of(index));
            }
        }
        self.choice = best;
    }

    /// The next command for a queued transfer.
    #[inline]
    fn first_ready(&self, index: usize) -> Choice {
        let queued = &self.queue[index];
        queued.ready.max(self.floors[queued.kind.index()]).of(index)
    }

    fn is_overdue(&self) -> bool {
        self.passed >= self.pass_limit
    }

    /// The next command for a queued transfer when the oldest waits for too long: the others may not keep its bank or
    /// the bus from it.
    fn oldest_first(&self, index: usize) -> Choice {
        let (queued, oldest) = (&self.queue[index], &self.queue[0]);
        let (transfer, first) = (&queued.pending.transfer, &oldest.pending.transfer);
        if index == 0 && queued.kind == Kind::PRECHARGE {
            let ready = Choice::row(self.banks[first.bank as usize].precharge_ready);
            return ready.max(self.floors[Kind::PRECHARGE.index()]);
        }
        let takes_bank = index > 0 && transfer.bank == first.bank;
        let move_data = queued.kind.moves_data() && oldest.kind.moves_data();
        let takes_bus = move_data && transfer.direction != first.direction;
        if takes_bank || takes_bus { Choice::NONE } else { self.first_ready(index) }
    }
}
