//! CTAs of a grid start on SMs that have room: one on each in turn, no faster than the chip can start them.

use super::*;

/// Parts of a cycle, so that the time between two starts need not be whole cycles.
const PARTS: u64 = 256;

/// How fast CTAs start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Starts {
    /// Parts of a cycle from one start to the next, on all SMs together; 0: any number start at a time.
    interval: u64,
    /// When the next CTA can start, in parts of a cycle.
    next: u64,
    /// How many turns SMs have had.
    turn: usize,
    /// SMs at one port into the network.
    at_a_port: usize,
}

impl Starts {
    pub(super) fn new(chip: &Chip, start: Cycle) -> Starts {
        let interval = (chip.launch.cta_cycles * PARTS as f64).round() as u64;
        let at_a_port = chip.interconnect.port.as_ref().map_or(1, |port| port.sms as usize);
        Starts { interval, next: start.0 * PARTS, turn: 0, at_a_port }
    }

    /// The SM whose turn it is: first one of each port.
    pub(super) fn sm(&self, count: usize) -> usize {
        let ports = count.div_ceil(self.at_a_port);
        let (round, port) = (self.turn / ports, self.turn % ports);
        port * self.at_a_port + round
    }

    pub(super) fn next_turn(&mut self, count: usize) {
        let turns = count.next_multiple_of(self.at_a_port);
        self.turn = (self.turn + 1) % turns;
    }

    /// All SMs have their turns, and none has room.
    pub(super) fn pass_all(&mut self, count: usize) {
        let turns = count.next_multiple_of(self.at_a_port);
        self.turn = (self.turn + self.turns(count)) % turns;
    }

    /// After so many turns all SMs have had theirs: a few more than SMs, where ports are not full.
    pub(super) fn turns(&self, count: usize) -> usize {
        count + self.at_a_port
    }

    /// No more CTAs start now. Where any number can start at a time, the next ones begin with the first SM again.
    pub(super) fn end_round(&mut self) {
        if self.interval == 0 {
            self.turn = 0;
        }
    }

    /// Another CTA starts together with the one that started last.
    pub(super) fn take_another(&mut self) {
        self.next += self.interval;
    }

    /// Takes the next start, if it lies before a cycle.
    pub(super) fn take(&mut self, now: Cycle, before: Cycle) -> bool {
        if self.interval == 0 {
            return true;
        }
        self.next = self.next.max(now.0 * PARTS);
        let in_time = self.next < before.0 * PARTS;
        self.next += if in_time { self.interval } else { 0 };
        in_time
    }
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Gives waiting CTAs to SMs that have room, one to each in turn. Those whose time comes during a window start with
    /// it.
    pub(super) fn dispatch(&mut self, now: Cycle) {
        self.obey(now);
        if self.plan.is_some() {
            return self.dispatch_plan(now);
        }
        if let Some(mut clusters) = self.clusters.take_if(|clusters| clusters.starts_together()) {
            self.dispatch_clusters(&mut clusters, now);
            self.clusters = Some(clusters);
            return;
        }
        let until = now + self.window;
        let count = self.sms.len();
        if self.next_cta < self.total && self.is_full() {
            self.starts.pass_all(count);
            return self.starts.end_round();
        }
        let mut without_room = 0;
        let turns = self.starts.turns(count);
        while without_room < turns && self.next_cta < self.total {
            let sm = self.starts.sm(count);
            if sm < count && self.has_room(sm) {
                if !self.starts.take(now, until) {
                    return;
                }
                let (context, number) = (self.context, self.next_cta);
                self.sm(sm, now).start_cta(&context, number, now);
                self.next_cta += 1;
                without_room = 0;
            } else {
                without_room += 1;
            }
            self.starts.next_turn(count);
        }
        self.starts.end_round();
    }

    /// Whether no SM has had room at the end of the last window: it need not be asked one by one.
    fn is_full(&self) -> bool {
        self.sms.count() == self.sms.len() && !self.noticed.room
    }

    /// When the next CTA starts, if there is one and an SM has room; with a plan, when its next piece begins or ends.
    pub(super) fn next_start(&self) -> Option<Cycle> {
        if let Some(plan) = &self.plan {
            let waits = self.starts.interval > 0 && plan.something_fits();
            let start = waits.then_some(Cycle(self.starts.next / PARTS));
            return start.into_iter().chain(plan.next_event()).min();
        }
        let waits = self.starts.interval > 0 && self.next_cta < self.total;
        let together = self.clusters.as_ref().is_some_and(|clusters| clusters.starts_together());
        let fits = || match together {
            true => self.cluster_fits(),
            false => !self.is_full() && (0..self.sms.len()).any(|sm| self.has_room(sm)),
        };
        let waits = waits && fits();
        waits.then_some(Cycle(self.starts.next / PARTS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_keep_their_distance() {
        let mut chip = Chip::load("gtx480", &[]).unwrap();
        chip.launch.cta_cycles = 1.25;
        let mut starts = Starts::new(&chip, Cycle(100));
        let in_window = |starts: &mut Starts, now: u64| {
            std::iter::from_fn(|| starts.take(Cycle(now), Cycle(now + 10)).then_some(())).count()
        };
        assert_eq!([100, 110, 120, 130].map(|now| in_window(&mut starts, now)), [8; 4]);
        // Time in which none could start is lost.
        assert_eq!(in_window(&mut starts, 1000), 8);
    }
}
