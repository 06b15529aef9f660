//! Leaps of the fast model: in the middle of a launch, what comes next of its CTAs is executed functionally.
//!
//! They are for launches of few waves, whose CTAs are long. The rate of instructions is looked at in short intervals.
//! When it is steady, warps stop issuing, what they have begun ends, and all resident CTAs are executed for as many
//! instructions as they had in the time in which the rate was steady; for more after each leap behind which the rate
//! is about as it was. If it differs much on average, leaps say little, and end. Each warp has as large a share of them
//! as it had in the time since the last leap: schedulers prefer some, and how far warps are apart decides what they
//! find in caches. A leap ends early when CTAs end and no others follow: with fewer CTAs the rate is another one. While
//! caches and pipelines fill again, the rate is not looked at.

use super::*;
use crate::chip::timing::SECTOR_BYTES;
use crate::exec::functional::{self, Resident, Touch};
use crate::exec::launch::Limits;
use crate::time::machine::sampling::{ALIKE, FILLING, Mark, Steady, steady};
use crate::time::sm::leap::Place;

/// From one look at the rate to the next pass so many cycles, and every warp executes so many instructions, on average.
/// In the first interval after the start and after each leap the rate says nothing.
const INTERVAL: u64 = 2048;
const INSTRUCTIONS_OF_WARP: u64 = 32;

/// Most times as many instructions as in the time in which the rate was steady.
const LONGEST: u64 = 32;

/// A launch in which nothing changes may have got into an endless loop. To see that, the search for hangs needs a whole
/// iteration without a leap. So as long as nothing changes, one more interval passes after each leap before the rate is
/// looked at, up to so many.
const LONGEST_QUIET: u64 = 16;

/// If the rates before and behind a leap differ by more than this share, the next one is short again.
const ROUGHLY_ALIKE: f64 = 0.1;

/// If after so many leaps the rates before and behind them differ by more than this share on average, there are no
/// more.
const ENOUGH_LEAPS: u64 = 8;
const TOO_UNLIKE: f64 = 0.05;

/// What was executed in leaps.
#[derive(Default)]
pub(crate) struct Leapt {
    pub instructions: u64,
    /// What the CTAs did in each of them. Those that started there are among the machine's.
    pub parts: Vec<functional::Finished>,
    /// What the launch takes longer than the machine's cycles say.
    pub cycles: f64,
    /// How far that may be off, going by how much the rates before and after leaps differ.
    pub error: f64,
}

/// A leap, and the cycles around it in which the rate was not that of the launch.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// When warps stopped issuing.
    from: Cycle,
    /// Warp instructions of the timed machine by then.
    before: u64,
    leapt: u64,
    /// When they issued again.
    resumed: Cycle,
    /// Cycles per warp instruction, before it.
    rate: f64,
}

/// Warp instructions of a gap, and cycles of the machine.
type Extent = (f64, f64);

/// When to leap, and how far.
pub(super) struct Leaps {
    /// Since the last leap.
    marks: Vec<Mark>,
    start: Cycle,
    /// The next look is not before this cycle, nor before so many warp instructions were executed.
    next_look: (Cycle, u64),
    /// Warp instructions of an interval, at least.
    interval: u64,
    /// The last leap, until it is known what the rate is behind it; its extent, if the gap has ended.
    gap: Option<(Gap, Option<Extent>)>,
    /// So many times the instructions of the steady time.
    factor: u64,
    /// Leaps so far, and the sum of the shares by which the rates before and behind them differ.
    leaps: u64,
    unlike: f64,
    /// Leaps since something has changed.
    quiet: u64,
    /// Lines of the L2 that the launch had used, at the last look.
    held: u64,
    pub leapt: Leapt,
}

impl Leaps {
    /// For a launch that begins at a cycle, and has so many warps resident at once.
    pub(super) fn new(start: Cycle, warps: u64) -> Leaps {
        let interval = warps * INSTRUCTIONS_OF_WARP;
        Leaps {
            marks: Vec::new(),
            start,
            next_look: (start + INTERVAL, interval),
            interval,
            gap: None,
            factor: 1,
            leaps: 0,
            unlike: 0.0,
            quiet: 0,
            held: 0,
            leapt: Leapt::default(),
        }
    }

    /// Whether this is the first look since the last leap, or since the L2 was full.
    pub(super) fn begins(&self) -> bool {
        self.marks.len() == 1
    }

    /// Whether a look may be due, unless too few instructions were executed ([`Leaps::is_due`]).
    pub(super) fn may_be_due(&self, now: Cycle) -> bool {
        now >= self.next_look.0
    }

    /// Whether a look is due, after so many instructions; the first one after as many as `first`, or as many cycles. If
    /// not, it is put off.
    pub(super) fn is_due(&mut self, now: Cycle, executed: u64, first: u64) -> bool {
        let due = executed >= self.next_look.1 && executed.max(now - self.start) >= first;
        if !due {
            self.next_look.0 = now + INTERVAL / 4;
        }
        due
    }

    pub(super) fn any(&self) -> bool {
        self.leapt.instructions > 0
    }

    /// Looks at the rate, at `executed` warp instructions, with so many of the L2's lines used by the launch. Returns
    /// how many instructions can be leaped over now.
    pub(super) fn look(&mut self, now: Cycle, executed: u64, (held, lines): (u64, u64)) -> Option<u64> {
        self.next_look = (now + INTERVAL, executed + self.interval);
        if let Some((gap, extent @ None)) = &mut self.gap {
            let instructions = gap.leapt + executed - gap.before;
            *extent = Some((instructions as f64, (now - gap.from) as f64));
        }
        let added = held.saturating_sub(std::mem::replace(&mut self.held, held));
        if added as f64 > FILLING * lines as f64 {
            self.marks.clear();
        }
        self.marks.push(Mark { at: now, instructions: executed });
        let steady = steady(&self.marks)?;
        if let Some((gap, Some(extent))) = self.gap.take() {
            let surprise = self.close(gap, extent, Some(steady.rate));
            self.factor = match surprise {
                _ if surprise <= ALIKE => (2 * self.factor).min(LONGEST),
                _ if surprise <= ROUGHLY_ALIKE => self.factor,
                _ => 1,
            };
            self.leaps += 1;
            self.unlike += surprise;
            if self.leaps >= ENOUGH_LEAPS && self.unlike > TOO_UNLIKE * self.leaps as f64 {
                self.next_look.0 = Cycle::NEVER;
                return None;
            }
        }
        let instructions = self.factor * steady.instructions;
        let Steady { rate, .. } = steady;
        self.gap = Some((Gap { from: now, before: executed, leapt: 0, resumed: now, rate }, None));
        Some(instructions)
    }

    /// So many instructions were leaped over, and warps issue again from a cycle on. Nothing has changed for a while if
    /// it is `quiet`.
    fn add(&mut self, instructions: u64, now: Cycle, quiet: bool) {
        self.quiet = if quiet { (self.quiet + 1).min(LONGEST_QUIET) } else { 0 };
        if let Some((gap, _)) = &mut self.gap {
            (gap.leapt, gap.resumed) = (instructions, now);
            self.next_look = (now + (1 + self.quiet) * INTERVAL, gap.before + self.interval);
        }
        self.leapt.instructions += instructions;
        self.marks.clear();
    }

    /// The instructions of a gap take as long as those before and behind it. Returns how much these rates differ.
    fn close(&mut self, gap: Gap, (instructions, cycles): Extent, behind: Option<f64>) -> f64 {
        let behind = behind.unwrap_or(gap.rate);
        let surprise = (behind - gap.rate).abs() / behind;
        let rate = (gap.rate + behind) / 2.0;
        self.leapt.cycles += rate * instructions - cycles;
        self.leapt.error += surprise * rate * gap.leapt as f64;
        surprise
    }

    /// The launch has ended.
    pub(super) fn finish(mut self) -> Option<Leapt> {
        if let Some((gap, extent)) = self.gap.take() {
            // If it has ended while the rate said nothing, the cycles since the leap are the launch's last ones.
            let alone = (gap.leapt as f64, (gap.resumed - gap.from) as f64);
            self.close(gap, extent.unwrap_or(alone), None);
        }
        self.any().then_some(self.leapt)
    }
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Executes so many warp instructions of the resident CTAs, and of those that follow them, functionally. Returns
    /// the cycle in which warps issue again.
    pub(super) fn leap(&mut self, instructions: u64) -> Result<Cycle, Stop> {
        self.settle();
        let now = self.exchanged;
        let mut left: Vec<(Place, Resident<N>)> =
            self.sms.iter_mut().flat_map(|sm| sm.send_off(now)).collect();
        // In the order in which they started, which is their order of age when they come back.
        left.sort_by_key(|(_, resident)| resident.cta.number);
        let (places, residents): (Vec<_>, Vec<_>) = left.into_iter().unzip();
        let issued = |place: &Place| {
            let by_slot = &self.sms[place.sm].probe.0.by_slot.0;
            place.slots().map(|slot| u64::from(by_slot[slot.index()])).collect::<Vec<_>>()
        };
        let mut shares: Vec<Vec<u64>> = places.iter().map(issued).collect();
        let all = shares.iter().flatten().sum::<u64>().max(1);
        shares.iter_mut().flatten().for_each(|share| *share = *share * instructions / all);
        // Cycles count here, not there.
        let limits = Limits { max_cycles: None, ..self.context.launch.limits.clone() };
        let launch = Launch { limits: &limits, ..*self.context.launch };
        let mut memory = self.memory.write().expect(NO_PANIC);
        let l2 = &launch.chip.l2;
        let most_touches = l2.lines() * u64::from(l2.cache.line_bytes / SECTOR_BYTES);
        let part = functional::run_part(
            &launch,
            &mut memory,
            residents,
            self.next_cta,
            shares,
            most_touches as usize,
        );
        self.sms.iter_mut().for_each(|sm| sm.memory.l1.forget_changed(&memory));
        drop(memory);
        self.touch_l2(part.touches);
        for (place, resident) in places.into_iter().zip(part.residents) {
            let sm = &mut self.sms[place.sm];
            sm.take_back(&self.context, (place, resident), now);
            self.noticed.room |= sm.has_room();
        }
        (self.next_cta, self.noticed.wake) = (part.next_cta, now);
        // Whoever was watched is elsewhere.
        self.stop_watching();
        let quiet = now - self.quiet_since >= self.context.launch.chip.hang.watch_cycles;
        if let Some(sampling) = &mut self.sampling {
            sampling.leaps.add(part.did.warp_instructions, now, quiet);
            sampling.leaps.leapt.parts.push(part.did);
        }
        part.end.map(|()| now)
    }

    /// The L2 gets what it would hold after these accesses. L1s fill within an interval, but an L2 takes longer, and as
    /// long as it does the rate would be too low.
    fn touch_l2(&mut self, touches: impl IntoIterator<Item = Touch>) {
        let line_bytes = self.side.line_bytes;
        for Touch { address, writes } in touches {
            let line = LineAddress::of(address, line_bytes);
            let (partition, slice) = self.side.routes.map.slice_of(line);
            let sector = (address - line.0) / u64::from(SECTOR_BYTES);
            self.partitions[partition as usize].touch(slice, line, 1 << sector, writes);
        }
    }

    /// Lets what warps have begun come to its end.
    fn settle(&mut self) {
        self.deliver_all();
        self.apart = false;
        let context = self.context;
        self.run_out(|sm| sm.settles_at(), |sm, window| sm.settle(&context, window.start, window.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Warp instructions before the first look.
    const FIRST: u64 = 1 << 21;

    /// A launch at a rate, looked at as long as it says nothing of a leap. Returns the leap.
    fn run(leaps: &mut Leaps, now: &mut u64, executed: &mut u64, ipc: u64) -> u64 {
        loop {
            *now += INTERVAL;
            *executed += ipc * INTERVAL;
            assert!(leaps.is_due(Cycle(*now), *executed, FIRST));
            if let Some(instructions) = leaps.look(Cycle(*now), *executed, (0, 100)) {
                return instructions;
            }
        }
    }

    #[test]
    fn short_launches_have_no_leaps() {
        let mut leaps = Leaps::new(Cycle(0), 10);
        for look in 1..100 {
            assert!(!leaps.is_due(Cycle(INTERVAL * look), FIRST / 100 * look, FIRST));
        }
        assert!(leaps.is_due(Cycle(INTERVAL * 100), FIRST, FIRST));
    }

    #[test]
    fn leaps_become_longer_while_the_rate_stays() {
        let (mut leaps, mut now, mut executed) = (Leaps::new(Cycle(0), 10), 0, FIRST);
        let mut all = Vec::new();
        for ipc in [2, 2, 2, 4, 4] {
            let leap = run(&mut leaps, &mut now, &mut executed, ipc);
            // Draining takes a while.
            now += 100;
            leaps.add(leap, Cycle(now), false);
            all.push(leap / (2 * INTERVAL));
        }
        assert_eq!(all, [2, 4, 8, 4, 8]);
        let leapt = leaps.finish().expect("there were leaps");
        // At half a cycle per instruction, then between that and a quarter, then a quarter.
        let expected = (2 + 4) as f64 / 2.0 + 8.0 * 3.0 / 8.0 + (4 + 8) as f64 / 4.0;
        let said = leapt.cycles / (2 * INTERVAL) as f64;
        assert!((said - expected).abs() < 0.5, "{said} {expected}");
        assert!(leapt.error > 0.0);
    }

    #[test]
    fn leaps_end_where_the_rate_is_another_one_behind_each() {
        let (mut leaps, mut now, mut executed) = (Leaps::new(Cycle(0), 10), 0, FIRST);
        for ipc in 1..=ENOUGH_LEAPS {
            let leap = run(&mut leaps, &mut now, &mut executed, ipc);
            leaps.add(leap, Cycle(now), false);
        }
        for _ in 0..3 {
            now += INTERVAL;
            executed += INTERVAL;
            assert_eq!(leaps.look(Cycle(now), executed, (0, 100)), None);
        }
        assert!(!leaps.may_be_due(Cycle(1 << 40)) && leaps.leaps == ENOUGH_LEAPS);
    }

    #[test]
    fn a_rate_that_changes_and_an_l2_that_fills_up_say_nothing() {
        let mut leaps = Leaps::new(Cycle(0), 10);
        for look in 1..20 {
            let (now, instructions) = (Cycle(INTERVAL * look), FIRST + look * look * 1000);
            assert_eq!(leaps.look(now, instructions, (0, 100)), None);
        }
        let mut leaps = Leaps::new(Cycle(0), 10);
        for look in 1..20 {
            let (now, instructions) = (Cycle(INTERVAL * look), FIRST + look * 1000);
            assert_eq!(leaps.look(now, instructions, (look, 100)), None);
        }
        assert!(leaps.finish().is_none());
    }
}
