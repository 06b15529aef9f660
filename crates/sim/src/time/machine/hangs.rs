//! Launches that do not end: when the machine stops them.

use super::*;

/// How many periods of `hang.watch_cycles` the counts of attempts at locks go back.
const TRIES_REMEMBERED: usize = 20;

/// In cycles: long enough for every warp of a full SM to poll, even if memory is busy.
const SHORTEST_TRIAL: u64 = 10_000;

/// Attempts at locks in the last cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockPace {
    /// The cycles that the counts cover.
    pub cycles: u64,
    pub taken: u64,
    pub failed: u64,
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Ends a launch in which nothing changes any more: with certainty, if every warp repeats itself; on suspicion,
    /// after a long time.
    pub(crate) fn look_for_hang(&mut self, now: Cycle) -> Result<(), Stop> {
        self.remember_tries(now);
        if let Some(limit) = self.context.launch.limits.max_cycles
            && now - self.start >= limit
        {
            return Err(Stop::Hang(HangReason::CycleLimit(limit)));
        }
        let hang = &self.context.launch.chip.hang;
        if self.firmware_computes_until() > now + hang.watch_cycles {
            // Firmware may compute for as long as it likes.
            self.quiet_since = now;
        }
        let quiet = now - self.quiet_since;
        if self.watching && quiet < hang.watch_cycles {
            (self.watching, self.trial_ends) = (false, None);
            self.sms.iter_mut().for_each(|sm| sm.watch = None);
        } else if !self.watching && quiet >= hang.watch_cycles {
            self.watching = true;
            self.begin_watch();
        } else if self.watching {
            if !self.firmware_runs(now) && self.sms.iter().all(|sm| sm.never_changes()) {
                let (kernel, memory) = (self.context.launch.kernel, self.memory.read().expect(NO_PANIC));
                let same = self.sms.iter().all(|sm| sm.reads_the_same(kernel, &memory));
                drop(memory);
                if same && !self.wake_sleeper(now) {
                    return Err(Stop::Hang(HangReason::Repeats));
                }
                // Some warp may have read what its L1 no longer holds.
                self.begin_watch();
            }
            if hang.suspect_cycles > 0 {
                self.try_suspicion(now, quiet)?;
            }
        }
        Ok(())
    }

    fn begin_watch(&mut self) {
        self.trial_ends = None;
        let memory = self.memory.read().expect(NO_PANIC);
        self.sms.iter_mut().for_each(|sm| sm.begin_watch(&memory, self.quiet_since));
    }

    /// After a long time without a change, ends the launch if all warps do nothing but wait. That they seem to is put
    /// to trial before: a warp that has left its loop, or works in it, may take as long as it likes.
    fn try_suspicion(&mut self, now: Cycle, quiet: u64) -> Result<(), Stop> {
        let hang = &self.context.launch.chip.hang;
        if self.aggregator.is_some() {
            // The loops in which wavefronts wait for room in a channel do too much between two polls for a trial.
            let patience = hang.suspect_cycles.saturating_add(2 * self.longest_delay);
            let waits = quiet >= patience && self.sms.iter().all(|sm| sm.seems_to_wait());
            return if waits { Err(Stop::Hang(HangReason::Quiet(quiet))) } else { Ok(()) };
        }
        let trial = hang.watch_cycles.max(SHORTEST_TRIAL) + 2 * self.longest_delay;
        match self.trial_ends {
            Some(end) if now >= end => {
                if self.sms.iter().all(|sm| sm.only_waited()) {
                    return Err(Stop::Hang(HangReason::Quiet(quiet)));
                }
                self.trial_ends = None;
            }
            None if quiet.saturating_add(trial) >= hang.suspect_cycles
                && self.sms.iter().all(|sm| sm.seems_to_wait()) =>
            {
                self.trial_ends = Some(now + trial);
                self.sms.iter_mut().for_each(|sm| sm.begin_trial());
            }
            _ => {}
        }
        Ok(())
    }

    /// Locks taken, and attempts that failed.
    fn count_tries(&self) -> [u64; 2] {
        let of_sms = self.sms.iter().flat_map(|sm| {
            let unit = sm.effects().lock_units.of(sm.id());
            std::iter::once(&sm.locks.stats).chain(unit.map(|unit| &unit.stats))
        });
        std::iter::once(&self.locks.stats).chain(of_sms).fold([0; 2], |[taken, failed], stats| {
            [taken + stats.acquired, failed + stats.failed_intra + stats.failed_inter]
        })
    }

    fn remember_tries(&mut self, now: Cycle) {
        let every = self.context.launch.chip.hang.watch_cycles;
        if self.tries.back().is_none_or(|&(at, _)| now - at >= every) {
            let tries = self.count_tries();
            self.tries.push_back((now, tries));
            if self.tries.len() > TRIES_REMEMBERED {
                self.tries.pop_front();
            }
        }
    }

    pub(crate) fn pace(&self, now: Cycle) -> LockPace {
        let [taken, failed] = self.count_tries();
        let &(from, before) = self.tries.front().unwrap_or(&(self.start, [0; 2]));
        LockPace { cycles: now.saturating_sub(from), taken: taken - before[0], failed: failed - before[1] }
    }
}
