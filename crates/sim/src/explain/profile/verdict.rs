//! What stands out in a profile, in words. Each rule is a function that is silent unless its evidence is clear.

use serde::Serialize;

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

/// Below this part of the time nothing stands out.
const NOTABLE: f64 = 0.25;

/// What stands out, the largest part first.
pub(super) fn verdict(profile: &Profile) -> Vec<Finding> {
    let rules = [contended_locks, serial_lock, same_warp, flags, barrier, scattered, few_lanes];
    let mut findings: Vec<Finding> = rules.iter().filter_map(|rule| rule(profile)).collect();
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
    let fewer = "let fewer threads poll (back off, `nanosleep`; `warploom compare` shows what BOWS gains), or use \
                 more locks";
    text += &match mean(|word| word.trip) {
        // They stand in each other's way, and in the holder's.
        Some(trip) if trip >= 2 * alone => {
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
        None => format!(": {fewer}"),
    };
    Some(Finding { rule: "contended_locks", share: polling.0, text })
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
mod tests {
    use super::*;
    use crate::explain::profile::{Barrier, Counts, Time, Wait};

    fn span(count: u64, mean: u64) -> Span {
        Span { count, cycles: count * mean, longest_cycles: 2 * mean }
    }

    /// A profile of 1,000 cycles and 10,000 warp cycles, of which so many are in one category.
    fn with(name: &'static str, cycles: u64) -> Profile {
        let time = Time::from_iter([(name, cycles), ("issued", 10_000 - cycles)]);
        Profile { cycles: 1_000, warp_lanes: 32, time, ..Profile::default() }
    }

    fn lock(word: &str, acquired: u64, wait: u64) -> WordProfile {
        WordProfile {
            word: word.to_string(),
            memory: "locks".into(),
            memories: 1,
            acquired,
            failed_inter: 9 * acquired,
            wait: span(acquired, wait),
            ..WordProfile::default()
        }
    }

    fn line(place: &str, time: &[(&'static str, u64)], counts: Counts) -> Line {
        let time: Time = time.iter().copied().collect();
        let counts = Counts { warp_cycles: time.sum(), time, ..counts };
        let (line, at): (Name, Name) = (place.into(), place.into());
        Line { kernel: "k".into(), line, text: "".into(), at, inlined: [].into(), counts }
    }

    #[track_caller]
    fn says(profile: &Profile, rule: &str, text: &str) {
        let findings = verdict(profile);
        let found = findings.iter().find(|finding| finding.rule == rule);
        assert!(found.is_some_and(|finding| finding.text.contains(text)), "{findings:#?}");
    }

    #[track_caller]
    fn is_silent(profile: &Profile, rule: &str) {
        let findings = verdict(profile);
        assert!(findings.iter().all(|finding| finding.rule != rule), "{findings:#?}");
    }

    #[test]
    fn contended_locks_are_counted_and_their_hand_offs_told() {
        let mut profile = with("spinning", 6_300);
        profile.words = vec![lock("locks+0", 10, 900), lock("locks+4", 10, 10), lock("locks+8", 10, 10)];
        let hot = &mut profile.words[0];
        (hot.hand_off, hot.hand_off_trip_cycles, hot.shortest_trip_cycles) = (span(9, 1_570), 9 * 1_300, 400);
        let text = "63 % of warp time polls for locks+0; a hand-off takes 1,570 cycles, of which 900 behind other \
                    tries; 90 of 100 tries fail";
        says(&profile, "contended_locks", text);
        profile.words[1].wait = span(10, 900);
        profile.words.push(lock("locks+12", 10, 10));
        says(&profile, "contended_locks", "polls for 2 of 4 locks (locks)");
        // `hashtable keys=5_000 buckets=32` under LRR: BOWS makes it 2.1 times as fast.
        profile.words.iter_mut().for_each(|word| {
            (word.trip, word.hold, word.shortest_trip_cycles) = (span(100, 3_627), span(10, 3_601), 132);
        });
        let text = "tries fail, and a try takes 3,627 cycles, 132 alone: let fewer threads poll";
        says(&profile, "contended_locks", text);
        // Bank transfers under one lock on the h200: with BOWS they take 1.4 times as long.
        profile.words.iter_mut().for_each(|word| {
            (word.trip, word.hold, word.shortest_trip_cycles) = (span(100, 300), span(10, 1_871), 269);
        });
        let text = "tries fail, but hardly delay each other (a try takes 300 cycles, 269 alone), so fewer pollers \
                    gain little: hold it shorter (1,871 cycles now), or use more locks";
        says(&profile, "contended_locks", text);
        // Without waiting behind others there is nothing to say of it.
        profile.words.iter_mut().for_each(|word| {
            (word.hand_off_trip_cycles, word.shortest_trip_cycles) = (word.hand_off.count * 500, 400);
        });
        says(&profile, "contended_locks", "a hand-off takes 1,570 cycles; ");
        profile.time = with("spinning", 2_000).time;
        is_silent(&profile, "contended_locks");
    }

    #[test]
    fn a_lock_that_is_always_held_is_told() {
        let mut profile = with("issued", 10_000);
        let mut lock = lock("locks+0", 8, 100);
        (lock.hold, lock.hand_off) = (span(8, 60), span(7, 40));
        (lock.taken_at, lock.released_at) = (vec![("k.cu:5".into(), 8)], vec![("k.cu:9".into(), 8)]);
        profile.words = vec![lock];
        let text = "locks+0 is held or handed over 76 % of the time, once for each of 8 acquisitions: held 60 cycles \
                    from k.cu:5 to k.cu:9, handed over in 40 cycles";
        says(&profile, "serial_lock", text);
        profile.cycles = 2_000;
        is_silent(&profile, "serial_lock");
    }

    #[test]
    fn lanes_that_compete_with_their_own_warp_are_told() {
        let mut profile = with("spinning", 5_000);
        profile.words = vec![WordProfile { failed_intra: 60, failed_inter: 20, ..lock("locks+0", 20, 100) }];
        says(&profile, "same_warp", "60 % of the tries at locks fail on a lane of their own warp");
        profile.words[0].failed_intra = 5;
        is_silent(&profile, "same_warp");
    }

    #[test]
    fn waits_for_flags_name_both_lines() {
        let mut profile = with("spinning", 5_000);
        profile.words = vec![WordProfile { satisfied: span(4, 1_000), ..WordProfile::default() }];
        profile.waits = vec![Wait {
            memory: "flags".into(),
            waits_at: "k.cu:5".into(),
            written_at: Some("k.cu:9".into()),
            words: 1,
            wait: span(4, 1_000),
        }];
        let text = "50 % of warp time polls; most of it waits at k.cu:5 until k.cu:9 writes flags: 4 waits, 1,000 \
                    cycles each on average, 2,000 at most";
        says(&profile, "flags", text);
        is_silent(&profile, "contended_locks");
        // A ticket lock: 100 threads wait, 10 cycles for each that is in front.
        let word = &mut profile.words[0];
        (word.word, word.memory) = ("flags+0".to_string(), "flags".into());
        (word.satisfied, word.writes) = (span(100, 500), 100);
        let text = "; 50 threads wait for flags+0 at a time, and one of them goes on every 10 cycles: shorten what a \
                    thread does between its wait and its write, or divide the threads among several words";
        says(&profile, "flags", text);
        // A barrier in memory.
        profile.words[0].writes = 2;
        says(&profile, "flags", "; a write ends 50 waits at a time: balance the work before it");
        // Asleep is waiting, too.
        profile.time = with("sleeping", 6_000).time;
        says(&profile, "flags", "60 % of warp time sleeps and polls; most of it waits at k.cu:5");
        profile.words.clear();
        is_silent(&profile, "flags");
        profile.time = with("spinning", 1_000).time;
        is_silent(&profile, "flags");
    }

    #[test]
    fn barriers_tell_their_skew() {
        let mut profile = with("barrier", 4_000);
        profile.lines = vec![line("k.cu:7", &[("barrier", 4_000)], Counts::default())];
        profile.barriers = vec![Barrier { line: "k.cu:7".into(), skew: span(2, 300) }];
        let text = "40 % of warp time waits at barriers, most at k.cu:7: the last warp arrives 300 cycles after the \
                    first on average, 600 at most";
        says(&profile, "barrier", text);
        profile.time = with("barrier", 1_000).time;
        is_silent(&profile, "barrier");
    }

    #[test]
    fn scattered_accesses_are_told() {
        let mut profile = with("long_scoreboard", 6_000);
        let counts = Counts { transactions: 320, latency: span(10, 500), ..Counts::default() };
        profile.lines = vec![line("k.cu:3", &[("long_scoreboard", 6_000)], counts)];
        says(&profile, "scattered", "an access at k.cu:3 goes to 32.0 lines");
        profile.lines[0].counts.transactions = 10;
        is_silent(&profile, "scattered");
    }

    #[test]
    fn idle_lanes_are_told() {
        let mut profile = with("issued", 10_000);
        let counts = Counts { executions: 100, thread_executions: 400, ..Counts::default() };
        profile.lines = vec![line("k.cu:3", &[("issued", 10_000)], counts)];
        says(&profile, "few_lanes", "4.0 of 32 lanes are active on average, 4.0 at k.cu:3");
        // Asleep, it does not matter who is active.
        let mut asleep = profile.clone();
        asleep.lines[0].counts.time = with("sleeping", 9_000).time;
        asleep.time = asleep.lines[0].counts.time;
        is_silent(&asleep, "few_lanes");
        profile.lines[0].counts.thread_executions = 3_000;
        is_silent(&profile, "few_lanes");
    }

    #[test]
    fn nothing_stands_out_of_nothing() {
        assert_eq!(verdict(&Profile::default()), []);
        assert_eq!(verdict(&with("issued", 10_000)), []);
    }
}
