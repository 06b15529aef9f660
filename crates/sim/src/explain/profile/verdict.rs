//! What stands out in a profile, in words. Each rule is a function that is silent unless its evidence is clear.

use serde::{Deserialize, Deserializer, Serialize};

use crate::explain::hang::{counted, grouped};
use crate::explain::profile::{Line, Name, Profile, Span, WordProfile};

/// Something that stands out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// The part of warp time, or of the launch's time, that it is about.
    pub share: f64,
    /// The evidence, and what may help.
    pub text: String,
}

impl<'de> Deserialize<'de> for Finding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Finding, D::Error> {
        #[derive(Deserialize)]
        struct Told {
            rule: String,
            share: f64,
            text: String,
        }
        let Told { rule, share, text } = Told::deserialize(deserializer)?;
        let rule = RULES.iter().map(|(name, _)| *name).find(|name| *name == rule).unwrap_or("unknown");
        Ok(Finding { rule, share, text })
    }
}

/// Below this part of the time nothing stands out.
const NOTABLE: f64 = 0.25;

type Rule = fn(&Profile) -> Option<Finding>;

const RULES: [(&str, Rule); 7] = [
    ("contended_locks", contended_locks),
    ("serial_lock", serial_lock),
    ("same_warp", same_warp),
    ("flags", flags),
    ("barrier", barrier),
    ("scattered", scattered),
    ("few_lanes", few_lanes),
];

/// What stands out, the largest part first.
pub(super) fn verdict(profile: &Profile) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|(_, rule)| rule(profile)).collect();
    findings.sort_by(|a, b| b.share.total_cmp(&a.share));
    findings
}

fn share(part: u64, all: u64) -> f64 {
    if all > 0 { part as f64 / all as f64 } else { 0.0 }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Warp time that goes into waiting for other threads by polling, and how much of it the warps sleep between polls.
fn polling(profile: &Profile) -> (f64, f64) {
    let of = |name| share(profile.time.of(name), profile.warp_cycles());
    // Who waits for nothing sleeps for reasons of its own.
    let waits = profile.words.iter().any(|word| word.waited() > 0);
    let sleeping = if waits { of("sleeping") } else { 0.0 };
    (of("spinning") + of("backed_off") + of("lock_queue") + sleeping, sleeping)
}

/// What warps do that wait: "polls", or "sleeps and polls".
fn verb((polling, sleeping): (f64, f64)) -> &'static str {
    if sleeping * 2.0 >= polling { "sleeps and polls" } else { "polls" }
}

fn locks(profile: &Profile) -> impl Iterator<Item = &WordProfile> {
    profile.words.iter().filter(|word| word.acquired > 0)
}

fn flag_cycles(profile: &Profile) -> u64 {
    profile.words.iter().map(|word| word.satisfied.cycles).sum()
}

fn lock_cycles(profile: &Profile) -> u64 {
    profile.words.iter().map(|word| word.wait.cycles).sum()
}

/// Warps spin for locks.
fn contended_locks(profile: &Profile) -> Option<Finding> {
    let polling = polling(profile);
    let waited = lock_cycles(profile);
    if polling.0 < NOTABLE || waited < flag_cycles(profile) {
        return None;
    }
    let count = locks(profile).count();
    let mut covered = 0;
    let hot = locks(profile).take_while(|word| {
        let more = covered * 5 < waited * 4;
        covered += word.wait.cycles;
        more
    });
    let hot: Vec<&WordProfile> = hot.collect();
    let first = hot.first()?;
    let on = match (hot.len(), count) {
        (1, _) => format!("for {}", first.word),
        (hot, all) if hot * 2 <= all => {
            format!("for {hot} of {} ({})", counted(all as u64, "lock"), first.memory)
        }
        (_, all) => format!("for {} ({})", counted(all as u64, "lock"), first.memory),
    };
    let sum = |of: fn(&WordProfile) -> u64| hot.iter().map(|word| of(word)).sum::<u64>();
    let mean = |of: fn(&WordProfile) -> Span| {
        let cycles: u64 = hot.iter().map(|word| of(word).cycles).sum();
        cycles.checked_div(hot.iter().map(|word| of(word).count).sum())
    };
    // What a try takes that nothing is in the way of.
    let alone = hot.iter().map(|word| word.shortest_trip_cycles).min().unwrap_or(0);
    let mut text = format!("{} of warp time {} {on}", percent(polling.0), verb(polling));
    if let Some(hand_off) = mean(|word| word.hand_off) {
        text += &format!("; a hand-off takes {}", counted(hand_off, "cycle"));
        let trip = sum(|word| word.hand_off_trip_cycles) / sum(|word| word.hand_off.count);
        if trip >= 2 * alone.max(1) && alone > 0 {
            text += &format!(", of which {} behind other tries", grouped(trip - alone));
        }
    }
    let (failed, tries) = (sum(WordProfile::failed), sum(|word| word.acquired + word.failed()));
    text += &format!("; {} of {} tries fail", grouped(failed), grouped(tries));
    let fewer = fewer_pollers(profile, &hot);
    text += &match mean(|word| word.trip) {
        // They stand in each other's way, and in the holder's.
        Some(trip) if 2 * trip >= 3 * alone => {
            let fewer = fewer(trip - alone);
            format!(", and a try takes {}, {} alone: {fewer}", counted(trip, "cycle"), grouped(alone))
        }
        Some(trip) => {
            let held = mean(|word| word.hold).map(|hold| format!(" ({} now)", counted(hold, "cycle")));
            format!(
                ", but hardly delay each other (a try takes {}, {} alone), so fewer pollers gain little: hold it \
                 shorter{}, or use more locks",
                counted(trip, "cycle"),
                grouped(alone),
                held.unwrap_or_default(),
            )
        }
        None => format!(": {}", fewer(0)),
    };
    Some(Finding { rule: "contended_locks", share: polling.0, text })
}

/// How fewer threads could poll the locks of `hot`, if that saves a try so many cycles.
fn fewer_pollers<'a>(profile: &'a Profile, hot: &[&WordProfile]) -> impl Fn(u64) -> String + 'a {
    let cycles = profile.cycles.max(1);
    let polling_warps = (polling(profile).0 * profile.warp_cycles() as f64) as u64 / cycles;
    let waited: u64 = hot.iter().map(|word| word.wait.cycles).sum();
    let waiting_threads = waited / cycles / hot.len().max(1) as u64;
    move |saved_cycles| {
        let mut ways = Vec::new();
        // More threads than warps want the same lock.
        if waiting_threads > polling_warps {
            ways.push("one lane for its warp");
        }
        // A warp that backs off tries once in so many cycles, so a lock that is free waits for the next try: the
        // longer, the fewer warps want it. Where it waits longer than tries now delay each other, BOWS loses.
        let warps = waiting_threads.min(polling_warps);
        if profile.longest_back_off_cycles > 0 && warps * saved_cycles > profile.longest_back_off_cycles {
            ways.push("`warploom compare` shows what BOWS gains");
        }
        let ways = if ways.is_empty() { String::new() } else { format!(" ({})", ways.join("; ")) };
        format!("let fewer threads poll{ways}, or use more locks")
    }
}

/// One lock is held, or on its way to the next holder, most of the time.
fn serial_lock(profile: &Profile) -> Option<Finding> {
    let busy = |word: &&WordProfile| word.hold.cycles + word.hand_off.cycles;
    // In shared memory every CTA has its own.
    let lock = locks(profile).filter(|word| word.memories == 1).max_by_key(busy)?;
    let part = share(busy(&lock), profile.cycles).min(1.0);
    if part < 2.0 * NOTABLE || lock.hand_off.count == 0 {
        return None;
    }
    let line = |lines: &[(Name, u64)]| lines.first().map_or("?".into(), |(line, _)| line.clone());
    let text = format!(
        "{} is held or handed over {} of the time, once for each of {}: held {} from {} to {}, handed over in {}; \
         shorten what it guards, or split it",
        lock.word,
        percent(part),
        counted(lock.acquired, "acquisition"),
        counted(lock.hold.mean(), "cycle"),
        line(&lock.taken_at),
        line(&lock.released_at),
        counted(lock.hand_off.mean(), "cycle"),
    );
    Some(Finding { rule: "serial_lock", share: part, text })
}

/// Lanes of one warp compete for a lock.
fn same_warp(profile: &Profile) -> Option<Finding> {
    let sum = |of: fn(&WordProfile) -> u64| locks(profile).map(of).sum::<u64>();
    let (intra, tries) = (sum(|word| word.failed_intra), sum(|word| word.acquired + word.failed()));
    let part = share(intra, tries);
    let polling = polling(profile).0;
    if part < NOTABLE || polling < NOTABLE {
        return None;
    }
    let text = format!(
        "{} of the tries at locks fail on a lane of their own warp: let one lane take the lock for its warp, or give \
         neighbouring lanes different locks",
        percent(part)
    );
    Some(Finding { rule: "same_warp", share: part * polling, text })
}

/// Warps wait for a word that others write.
fn flags(profile: &Profile) -> Option<Finding> {
    let polling = polling(profile);
    if polling.0 < NOTABLE || flag_cycles(profile) <= lock_cycles(profile) {
        return None;
    }
    let wait = profile.waits.first()?;
    let writer = match &wait.written_at {
        Some(line) if *line == wait.waits_at => "the same line of another thread writes".to_string(),
        Some(line) => format!("{line} writes"),
        None => "something else than the kernel writes".to_string(),
    };
    let mut text = format!(
        "{} of warp time {}; most of it waits at {} until {writer} {}: {}, {} each on average, {} at most",
        percent(polling.0),
        verb(polling),
        wait.waits_at,
        wait.memory,
        counted(wait.wait.count, "wait"),
        counted(wait.wait.mean(), "cycle"),
        grouped(wait.wait.longest_cycles),
    );
    // The word of that memory that costs the most waiting.
    if let Some(word) =
        profile.words.iter().find(|word| word.memory == wait.memory && word.satisfied.count > 0)
    {
        text += &turns(word, profile.cycles);
    }
    Some(Finding { rule: "flags", share: polling.0, text })
}

/// How the waits for a word end, if many threads wait for it: one after the other, or many at a time.
fn turns(word: &WordProfile, cycles: u64) -> String {
    let (waits, writes) = (word.satisfied.count, word.writes.max(1));
    let waiting = word.satisfied.cycles / cycles.max(1);
    match () {
        _ if waits >= 8 * writes => format!(
            "; a write ends {} at a time: balance the work before it, or let one thread of a CTA wait and the others \
             at a barrier",
            counted(waits / writes, "wait")
        ),
        _ if waits >= 8 && waiting >= 4 && writes <= 2 * waits => format!(
            "; {waiting} threads wait for {} at a time, and one of them goes on every {}: shorten what a thread does \
             between its wait and its write, or divide the threads among several words",
            word.word,
            counted(cycles / writes, "cycle"),
        ),
        _ => String::new(),
    }
}

/// Warps wait at barriers.
fn barrier(profile: &Profile) -> Option<Finding> {
    let part = share(profile.time.of("barrier"), profile.warp_cycles());
    if part < NOTABLE {
        return None;
    }
    let line = profile.lines.iter().max_by_key(|line| line.counts.time.of("barrier"))?;
    let mut text = format!("{} of warp time waits at barriers, most at {}", percent(part), line.line);
    if let Some(barrier) = profile.barriers.iter().find(|barrier| barrier.line == line.line) {
        text += &format!(
            ": the last warp arrives {} after the first on average, {} at most; balance the work before it, or let \
             fewer warps meet",
            counted(barrier.skew.mean(), "cycle"),
            grouped(barrier.skew.longest_cycles),
        );
    }
    Some(Finding { rule: "barrier", share: part, text })
}

/// Accesses of a warp go to many lines of memory.
fn scattered(profile: &Profile) -> Option<Finding> {
    let stalled = ["long_scoreboard", "short_scoreboard", "pipe_throttle", "membar"];
    let cycles = stalled.iter().map(|name| profile.time.of(name)).sum();
    let part = share(cycles, profile.warp_cycles());
    let all: u64 = profile.lines.iter().map(|line| line.counts.transactions).sum();
    let line = profile.lines.iter().max_by_key(|line| line.counts.transactions)?;
    let each = share(line.counts.transactions, line.counts.latency.count);
    let most = share(line.counts.transactions, all) >= NOTABLE;
    if part < NOTABLE || !most || each < 8.0 || line.counts.polls > 0 {
        return None;
    }
    let text = format!(
        "{} of warp time waits for memory, and an access at {} goes to {each:.1} lines of it: let neighbouring lanes \
         access neighbouring words",
        percent(part),
        line.line,
    );
    Some(Finding { rule: "scattered", share: part, text })
}

/// Most lanes are idle where most of the time goes.
fn few_lanes(profile: &Profile) -> Option<Finding> {
    // In the others warps do nothing, whatever lanes are active.
    let works = ["issued", "not_selected", "pipe_throttle", "execution_dependency", "long_scoreboard"];
    let busy = |line: &&Line| works.iter().map(|name| line.counts.time.of(name)).sum::<u64>();
    let executions: u64 = profile.lines.iter().map(|line| line.counts.executions).sum();
    let lanes: u64 = profile.lines.iter().map(|line| line.counts.thread_executions).sum();
    let active = share(lanes, executions);
    let idle = 1.0 - active / f64::from(profile.warp_lanes.max(1));
    if idle < 3.0 * NOTABLE || polling(profile).0 >= NOTABLE || executions == 0 {
        return None;
    }
    let few = |line: &&Line| {
        let most = line.counts.executions * u64::from(profile.warp_lanes);
        line.counts.thread_executions * 4 < most
    };
    let line = profile.lines.iter().filter(few).max_by_key(busy)?;
    let part: u64 = profile.lines.iter().filter(few).map(|line| busy(&line)).sum();
    if share(part, profile.warp_cycles()) < NOTABLE {
        return None;
    }
    let text = format!(
        "{active:.1} of {} lanes are active on average, {:.1} at {}: let the lanes of a warp take the same branches",
        profile.warp_lanes,
        share(line.counts.thread_executions, line.counts.executions),
        line.line,
    );
    Some(Finding { rule: "few_lanes", share: idle * share(busy(&line), profile.warp_cycles()), text })
}

#[cfg(test)]
mod tests;
