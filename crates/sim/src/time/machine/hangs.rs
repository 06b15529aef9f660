//! Launches that do not end: when the machine stops them.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashSet, FxHasher};

use super::*;
use crate::time::sm::Resident;

/// How many periods of `hang.watch_cycles` the counts of attempts at locks go back.
const TRIES_REMEMBERED: usize = 20;

/// The search for a launch that changes memory for ever without getting anywhere: attempts that are undone.
///
/// It begins when no warp has ended or started for half of `hang.suspect_cycles`, and all seem to wait; or after all of
/// `hang.suspect_cycles`, as attempts may be undone without a wait. From then on the values that are written are
/// remembered. If for another half no word gets a value that it has not had, no warp can leave its loop by itself, and
/// all words that change have *together* only states that they have had, the launch goes round in a circle. So threads
/// that count, in whatever words and together with whomever, are never suspected: each count is a state that was not
/// there before.
///
/// Many threads that undo their attempts may come in so many orders that all words together are rarely as they were.
/// For them it is enough, after twice that time, that each thread comes back again and again to what it had changed
/// before, and changes nothing in a new way.
///
/// Neither is a proof: the order in which warps reach memory might change some day.
#[derive(Debug)]
pub(super) struct LivelockSearch {
    looked: Cycle,
    /// CTAs started and warps alive, and since when.
    population: (u64, u64),
    since: Cycle,
    /// Since when values are remembered.
    began: Option<Cycle>,
    /// Since when no word got a value that it had not had, or since when warps are compared with their states then.
    from: Cycle,
    /// The states so far of all words that were written, as hashes, and since when there was no new one.
    states: FxHashSet<u64>,
    same_states_from: Cycle,
    /// Since when no thread has changed its words in a new way.
    same_changes_from: Cycle,
    compares: bool,
    /// It began although some warp does not seem to wait. So a new value ends it.
    is_trial: bool,
    /// After how many cycles of the same population a trial begins.
    trial_after: u64,
    /// By kernel and instruction.
    ways_out: Option<Vec<Vec<bool>>>,
}

impl LivelockSearch {
    pub(super) fn new(start: Cycle) -> Self {
        LivelockSearch {
            looked: start,
            population: (0, 0),
            since: start,
            began: None,
            from: start,
            states: FxHashSet::default(),
            same_states_from: start,
            same_changes_from: start,
            compares: false,
            is_trial: false,
            trial_after: 0,
            ways_out: None,
        }
    }

    fn begin(&mut self, now: Cycle, is_trial: bool) {
        self.is_trial = is_trial;
        (self.began, self.same_states_from, self.same_changes_from) = (Some(now), now, now);
        self.states.clear();
        self.restart(now);
    }

    /// No word may get a new value from now on.
    fn restart(&mut self, now: Cycle) {
        (self.from, self.compares) = (now, false);
    }
}

/// After this many times `hang.suspect_cycles` with new values the search begins later again: it costs host time.
const LONGEST_SEARCH: u64 = 4;

/// Threads that back off write rarely. Once the search has begun, silence ends it only after this part of
/// `hang.suspect_cycles`.
const LONGEST_SILENCE: u64 = 8;

/// Attempts at locks in the last cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockPace {
    /// The cycles that the counts cover.
    pub cycles: u64,
    pub taken: u64,
    pub failed: u64,
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Ends a launch that goes on at cycle `now`, if that is beyond its limit.
    pub(crate) fn check_limit(&self, now: Cycle) -> Result<(), Stop> {
        let began = match &self.plan {
            // Copies take their time, too.
            Some(plan) => plan.oldest_start().unwrap_or(now),
            None => self.start,
        };
        match self.context.launch.limits.max_cycles {
            Some(limit) if now - began + self.leapt_cycles() >= limit => {
                Err(Stop::Hang(HangReason::CycleLimit(limit)))
            }
            _ => Ok(()),
        }
    }

    /// Ends a launch in which nothing changes any more: with certainty, if every warp repeats itself; on suspicion,
    /// after a long time.
    pub(crate) fn look_for_hang(&mut self, now: Cycle) -> Result<(), Stop> {
        self.remember_tries(now);
        if let Err(limit) = self.check_limit(now) {
            // It may have ended in this window.
            return if self.is_done() { Ok(()) } else { Err(limit) };
        }
        let hang = &self.context.launch.chip.hang;
        if self.firmware_computes_until() > now + hang.watch_cycles || self.next_start().is_some() {
            // Firmware may compute for as long as it likes, and a CTA that has not started may change something.
            self.quiet_since = now;
        }
        let quiet = now - self.quiet_since;
        let silence = match self.livelock.began {
            Some(_) => hang.watch_cycles.max(hang.suspect_cycles / LONGEST_SILENCE),
            None => hang.watch_cycles,
        };
        if self.watching && quiet < hang.watch_cycles {
            self.watching = false;
            self.sms.iter_mut().for_each(|sm| sm.watch = None);
        } else if !self.watching && quiet >= silence {
            (self.watching, self.livelock.began) = (true, None);
            self.begin_watch();
        } else if self.watching {
            if self.is_done() {
                // The last access of firmware has ended in this window.
                return Ok(());
            }
            if !self.firmware_runs(now) && self.sms.iter().all(|sm| sm.never_changes()) {
                let memory = self.memory.read().expect(NO_PANIC);
                let same = self.sms.iter().all(|sm| sm.reads_the_same(&self.context, &memory));
                drop(memory);
                if same && !self.wake_sleeper(now) {
                    return Err(Stop::Hang(HangReason::Repeats));
                }
                // Some warp may have read what its L1 no longer holds.
                self.begin_watch();
            } else if self.sms.iter().all(|sm| sm.never_changes_by_itself()) {
                self.sms.iter_mut().for_each(|sm| sm.run_held_back());
            }
            let patience = hang.suspect_cycles;
            if patience > 0 && quiet >= patience && self.sms.iter().all(|sm| sm.only_waits(now, patience)) {
                return Err(Stop::Hang(HangReason::Quiet(quiet)));
            }
        } else if hang.suspect_cycles > 0 && now - self.livelock.looked >= hang.watch_cycles {
            self.look_for_livelock(now)?;
        }
        Ok(())
    }

    /// What was seen of warps says nothing any more.
    pub(super) fn stop_watching(&mut self) {
        (self.watching, self.livelock.began) = (false, None);
        self.sms.iter_mut().for_each(|sm| {
            sm.watch = None;
            sm.forget_spins();
        });
    }

    fn begin_watch(&mut self) {
        let memory = self.memory.read().expect(NO_PANIC);
        self.sms.iter_mut().for_each(|sm| sm.begin_watch(&memory, self.quiet_since));
    }

    fn look_for_livelock(&mut self, now: Cycle) -> Result<(), Stop> {
        let half = self.context.launch.chip.hang.suspect_cycles.div_ceil(2);
        let live = self.sms.iter().flat_map(|sm| sm.residents()).map(|r| u64::from(r.cta.live_warps)).sum();
        let search = &mut self.livelock;
        search.looked = now;
        let started = self.plan.as_ref().map_or(self.next_cta, |plan| plan.started());
        let population = (started, live);
        if search.population != population {
            (search.population, search.since) = (population, now);
            search.trial_after = 2 * half;
            self.sms.iter_mut().for_each(|sm| sm.forget_spins());
        }
        let settled = now - search.since >= half;
        if now - search.since >= 2 * half && self.aggregator.is_none() {
            let contexts = || std::iter::once(&self.context).chain(self.context.others);
            let ways_out = search
                .ways_out
                .get_or_insert_with(|| contexts().map(|context| context.launch.kernel.ways_out()).collect());
            let is_caught = |resident: &Resident<N>| {
                let out = &ways_out[usize::from(resident.kernel)];
                let mut paths = resident.warps.iter().flat_map(|warp| warp.control.paths());
                paths.any(|(path, _)| !out[path.pc.index()])
            };
            if self.sms.iter().flat_map(|sm| sm.residents()).any(is_caught) {
                return Err(Stop::Hang(HangReason::NoWayOut));
            }
        }
        let Some(began) = search.began else {
            if !settled || self.aggregator.is_some() {
                return Ok(());
            }
            let seem_to_wait = self.sms.iter().all(|sm| sm.seems_to_wait());
            let is_due = now - search.since >= search.trial_after && self.builder.waits();
            if seem_to_wait || is_due {
                search.begin(now, !seem_to_wait);
                self.sms.iter_mut().for_each(|sm| sm.watch_writes());
            }
            return Ok(());
        };
        let (mut new_value, mut new_change) = (false, false);
        for written in self.sms.iter_mut().filter_map(|sm| sm.written_mut()) {
            new_value |= written.take_new();
            new_change |= written.take_new_balance();
        }
        let state = self.state_of_written_words();
        let search = &mut self.livelock;
        if search.states.insert(state) {
            search.same_states_from = now;
        }
        if new_change {
            search.same_changes_from = now;
        }
        let quiet = now - search.from;
        let same_states = now - search.same_states_from >= half;
        let same_changes = now - search.same_changes_from >= 2 * half;
        // The first values are all new.
        let failed = search.is_trial && new_value && now - began > half / 8;
        if !settled || failed || now - began > LONGEST_SEARCH * 2 * half {
            search.began = None;
            if failed {
                search.trial_after = 2 * (now - search.since);
            } else {
                search.since = now;
            }
            self.sms.iter_mut().for_each(|sm| {
                sm.watch = None;
                sm.forget_spins();
            });
        } else if new_value || quiet >= 4 * half {
            search.restart(now);
            self.sms.iter_mut().for_each(|sm| sm.save_states());
        } else if quiet >= half && !search.compares {
            search.compares = true;
            self.sms.iter_mut().for_each(|sm| sm.compare_states());
        } else if search.compares
            && (same_states || same_changes && self.sms.iter().all(|sm| sm.comes_back()))
            && self.sms.iter().all(|sm| sm.only_waits(now, half))
        {
            return Err(Stop::Hang(HangReason::Undone(quiet)));
        }
        Ok(())
    }

    /// What all words that were written hold now, as a hash. All others are as they were when the search began, so two
    /// states are the same only if all of memory is. A word that was written but once counts, too: it may be the next
    /// digit of a counter.
    fn state_of_written_words(&mut self) -> u64 {
        self.show_host();
        let memory = self.memory.read().expect(NO_PANIC);
        let words: BTreeMap<_, _> = self.sms.iter().flat_map(|sm| sm.written_words(&memory)).collect();
        let mut hasher = FxHasher::default();
        words.hash(&mut hasher);
        hasher.finish()
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
