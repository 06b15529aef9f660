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
    // 9 threads of 6 warps want each lock. Six tries in 10,000 cycles are enough if each becomes so much shorter.
    profile.longest_back_off_cycles = 10_000;
    let text = "let fewer threads poll (one lane for its warp; `warploom compare` shows what BOWS gains), or use more";
    says(&profile, "contended_locks", text);
    profile.longest_back_off_cycles = 30_000;
    says(&profile, "contended_locks", "let fewer threads poll (one lane for its warp), or use more locks");
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
