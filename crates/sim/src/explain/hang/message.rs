//! The message of a hang.

use std::fmt;

use warploom_isa::Cmp;

use super::*;
use crate::exec::fault::coordinates;
use crate::exec::stop::HangReason;
use crate::explain::hang::rows::words;
use crate::explain::hang::words::{counted, list};
use crate::kit::lane_mask::LaneMask;

impl HangKind {
    /// The name in the first line of the message.
    pub fn name(self) -> &'static str {
        match self {
            HangKind::Alias => "lock alias",
            HangKind::SimdDeadlock => "SIMD deadlock",
            HangKind::LockCycle => "lock cycle",
            HangKind::WaitCycle => "circular wait",
            HangKind::Barrier => "barrier deadlock",
            HangKind::Stale => "stale copy",
            HangKind::LostToken => "lost token",
            HangKind::NotResident => "CTAs that cannot start",
            HangKind::Starved => "nothing to start",
            HangKind::Endless => "endless loop",
            HangKind::Livelock => "livelock",
            HangKind::Unknown => "no known kind",
        }
    }
}

/// What a group does, without offsets in buffers: groups that differ only in those are alike.
pub(super) fn shape(group: &WaitingGroup) -> String {
    let plain = |word: &Word| Word { offset: 0, ..word.clone() };
    let mut group = group.clone();
    group.holds = group.holds.iter().map(|(word, place)| (plain(word), place.clone())).collect();
    group.holds.dedup();
    match &mut group.waits {
        Waits::Spin(spin) => {
            spin.words = vec![plain(&spin.words[0])];
            let bits = matches!(spin.until, Until::Free(_));
            if bits {
                spin.until = Until::Free(0);
            }
            if let Writer::Taker(holder) = &mut spin.writer {
                holder.alias = holder.alias.iter().take(1).map(plain).collect();
                // Each lane waits for the same lane of another warp.
                if bits && holder.who.lanes == group.threads.lanes {
                    holder.who.lanes = LaneMask::NONE;
                }
                if let Instead::Spin(word) | Instead::Queue(word) = &mut holder.now {
                    *word = plain(word);
                }
            }
        }
        Waits::Barrier { missing, .. } | Waits::ClusterBarrier { missing, .. } => {
            for (_, now) in missing {
                if let Instead::Spin(word) | Instead::Queue(word) = now {
                    *word = plain(word);
                }
            }
        }
        _ => {}
    }
    text(&group, true)
}

/// What a group does, as the predicate of a sentence about it.
fn text(group: &WaitingGroup, proof: bool) -> String {
    let who = &group.threads;
    let mut text = String::new();
    for (word, place) in group.holds.iter().take(1) {
        text += &format!("took {word} at {}", place.short());
        if group.holds.len() > 1 {
            text += &format!(" (and {} more)", group.holds.len() - 1);
        }
        text += " and ";
    }
    let at = group.place.short();
    text += &match &group.waits {
        Waits::Barrier { id, arrived, expected, missing } => {
            let missing = match missing[..] {
                [] => "the CTA has no more".to_string(),
                _ => {
                    list(&missing.iter().map(|(other, now)| instead(other, now, who)).collect::<Vec<_>>(), 3)
                }
            };
            format!(
                "{} at barrier {id} ({at}): {arrived} of {expected} threads have come; {missing}",
                who.verb("wait")
            )
        }
        Waits::ClusterBarrier { arrived, expected, missing } => {
            let late: Vec<_> = missing.iter().map(|(other, now)| instead(other, now, who)).collect();
            format!(
                "{} at the barrier of the cluster ({at}): {arrived} of {expected} CTAs have come; {}",
                who.verb("wait"),
                list(&late, 3)
            )
        }
        Waits::Mbarrier { word, phase, announced } => {
            let parity = match phase.parity {
                Some(parity) if phase.is_new() => format!(" of parity {parity}"),
                _ => String::new(),
            };
            format!(
                "{} at {at} until the phase{parity} of mbarrier {word} ends: {}",
                who.verb("spin"),
                missing_of(phase, announced)
            )
        }
        Waits::Reconverge { lanes, loop_ends } => {
            let meet = if *loop_ends { "the loop ends" } else { "their paths meet" };
            format!("{} for {} where {meet} ({at})", who.verb("wait"), lane_ranges(*lanes))
        }
        Waits::OtherPath { lanes, reconverge } => {
            let meet = reconverge.as_ref().map_or("the end".to_string(), Place::short);
            format!("{} to go on at {at} until {} come to {meet}", who.verb("wait"), lane_ranges(*lanes))
        }
        Waits::Lanes(lanes) => format!("{} at {at} for {}", who.verb("wait"), lane_ranges(*lanes)),
        Waits::Spin(spin) if spin.queued => {
            format!("{} in a lock queue at {at} until {}", who.verb("wait"), awaited(spin, who, proof))
        }
        Waits::Spin(spin) => format!("{} at {at} until {}", who.verb("spin"), awaited(spin, who, proof)),
        Waits::Loop => format!("{} round a loop at {at}", who.verb("go")),
        Waits::Run => format!("{} at {at}", who.verb("run")),
    };
    if group.changes && matches!(group.waits, Waits::Spin(_) | Waits::Mbarrier { .. }) {
        let it = if who.is_one() { "it" } else { "they" };
        text += &format!("; {it} may still count or compute");
    }
    text
}

/// What the phase of an mbarrier misses.
fn missing_of(phase: &Phase, announced: &[Place]) -> String {
    let Phase { pending, expected, bytes, .. } = phase;
    if phase.misses_bytes() {
        let places: Vec<_> = announced.iter().map(Place::short).collect();
        let at = if places.is_empty() { String::new() } else { format!(" at {}", list(&places, 3)) };
        let count = counted(bytes.unsigned_abs(), "byte");
        return match bytes {
            0.. => format!(
                "all arrivals have come; {count} of those announced{at} are missing, and no copy brings them"
            ),
            _ => format!("all arrivals have come; {count} more have come than were announced{at}"),
        };
    }
    let bytes = if *bytes == 0 { String::new() } else { format!(", and {bytes} bytes") };
    format!("{pending} of {expected} arrivals are missing{bytes}")
}

/// The lock bit that lanes wait for, and who took it.
fn awaited_bit(spin: &Spin, bit: u32, who: &Threads) -> String {
    let words = words(&spin.words);
    let (bits, it) = match spin.words.len() {
        1 => (format!("lock bit {bit} of {words} is free"), "it"),
        _ => (format!("the lock bits of {words} are free"), "them"),
    };
    let Writer::Taker(holder) = &spin.writer else { return bits };
    let taker = holder.who.beside(who);
    let alias = match &holder.alias[..] {
        [] => String::new(),
        taken => format!(" for {}", self::words(taken)),
    };
    let took = format!("took {it}{alias} at {}", holder.place.short());
    let beside = holder.who.cta == who.cta && holder.who.warps == who.warps;
    match &holder.now {
        Instead::Ended => format!("{bits}; {taker} {took} and ended"),
        _ if beside && holder.who.lanes == who.lanes => {
            let (they, themselves) = if who.is_one() { ("it", "itself") } else { ("they", "themselves") };
            format!("{bits}; {they} {took} {themselves}")
        }
        _ if beside => format!("{bits}; {taker} {took}"),
        now => format!("{bits}; {taker} {took} and {}", doing(&holder.who, now)),
    }
}

fn awaited(spin: &Spin, who: &Threads, proof: bool) -> String {
    if let Until::Free(bit) = spin.until {
        return awaited_bit(spin, bit, who);
    }
    let several = spin.words.len() > 1;
    let mut text = words(&spin.words);
    let (is, it) = if several { ("are", "they are") } else { ("is", "it is") };
    if let Some(condition) = &spin.condition {
        return format!("{condition}{}", writer(spin, who, proof, ""));
    }
    text += &match spin.until {
        Until::Changes | Until::Free(_) if several => " change".to_string(),
        Until::Changes | Until::Free(_) => " changes".to_string(),
        Until::Is(cmp, value) => {
            let relation = match cmp {
                Cmp::Ne => "not ",
                Cmp::Lt => "below ",
                Cmp::Le => "at most ",
                Cmp::Gt => "above ",
                Cmp::Ge => "at least ",
                _ => "",
            };
            format!(" {is} {relation}{}", number(value))
        }
    };
    text + &writer(spin, who, proof, &format!("; {it} {}", number(spin.value)))
}

/// Who could end a wait for a value, after the text about the value.
fn writer(spin: &Spin, who: &Threads, proof: bool, is: &str) -> String {
    let value = number(spin.value);
    match &spin.writer {
        Writer::Memory { holds, sm } => {
            let sees = who.verb("see");
            let one = if who.is_one() { "it" } else { "they" };
            format!("; {one} {sees} {value} in the L1 of SM {sm}, but memory holds {}", number(*holds))
        }
        Writer::Taker(holder) => {
            let taker = holder.who.beside(who);
            let beside = holder.who.cta == who.cta && holder.who.warps == who.warps;
            let place = holder.place.short();
            let taken = match (holder.changed_by, &holder.now) {
                (Some(by), now) => {
                    let now = match now {
                        Instead::Ended => "ended".to_string(),
                        now => doing(&holder.who, now),
                    };
                    format!("{is}: {taker} changed it by {} at {place} and {now}", signed_number(by))
                }
                (_, Instead::Ended) => format!("{is}: {taker} took it at {place} and ended"),
                (_, Instead::Spin(word)) if beside && spin.words.contains(word) => {
                    format!("{is}, taken by {taker} itself")
                }
                _ if beside => format!("{is}, taken by {taker}"),
                (_, now) => format!("{is}, taken by {taker}, which {}", doing(&holder.who, now)),
            };
            let others: Vec<String> = holder.others.iter().map(|other| other.beside(who)).collect();
            match &others[..] {
                [] => taken,
                others => {
                    let took = if holder.changed_by.is_some() { "changed" } else { "took" };
                    format!("{taken}; {} {took} it, too", list(others, 3))
                }
            }
        }
        Writer::BlockedLanes(others, place) => {
            let (them, waits) = (if who.is_one() { "it" } else { "them" }, others.verb("wait"));
            let change = match place {
                Some(place) => format!("{} it at {}", others.verb("write"), place.short()),
                None => "may change it".to_string(),
            };
            format!("{is}, and {}, which {change}, {waits} for {them}", others.beside(who))
        }
        Writer::Waiting(other) => {
            let (verb, place) = (other.who.verb("write"), other.place.short());
            let now = doing(&other.who, &other.now);
            format!("{is}; {} {verb} it at {place}, but {now}", other.who.beside(who))
        }
        Writer::Wrote(other) => {
            let now = match &other.now {
                Instead::Ended => "has ended".to_string(),
                now => doing(&other.who, now),
            };
            let place = other.place.short();
            format!("{is}, last written at {place} by {}, which {now}", other.who.beside(who))
        }
        Writer::Nobody if proof => format!("{is}, and no thread that can run changes it"),
        Writer::Nobody => is.to_string(),
    }
}

/// Other threads and what they do, in a sentence about `who`: "warp 3 waits at barrier 1".
fn instead(other: &Threads, now: &Instead, who: &Threads) -> String {
    format!("{} {}", other.beside(who), doing(other, now))
}

/// What threads do, as the predicate of a sentence.
fn doing(who: &Threads, now: &Instead) -> String {
    match now {
        Instead::Ended => format!("{} ended", who.verb("have")),
        Instead::Barrier(id) => format!("{} at barrier {id}", who.verb("wait")),
        Instead::ClusterBarrier => format!("{} at the barrier of the cluster", who.verb("wait")),
        Instead::Lanes(lanes) => format!("{} for {}", who.verb("wait"), lane_ranges(*lanes)),
        Instead::Spin(word) => format!("{} on {word}", who.verb("spin")),
        Instead::Queue(word) => format!("{} in the queue of {word}", who.verb("wait")),
        Instead::Mbarrier(word) => format!("{} on mbarrier {word}", who.verb("spin")),
        Instead::Run(place) => format!("{} at {}", who.verb("run"), place.short()),
    }
}

/// A value: small ones in decimal, others in hexadecimal.
pub(super) fn number(value: u64) -> String {
    if value < 0x1_0000 { value.to_string() } else { format!("{value:#x}") }
}

/// A difference: small ones in decimal, others in hexadecimal.
fn signed_number(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", number(value.unsigned_abs()))
}

impl Hang {
    fn title(&self) -> String {
        let article = match self.kind {
            HangKind::NotResident | HangKind::Starved => "",
            HangKind::Endless => "an ",
            _ => "a ",
        };
        let kind = match (self.kind, &self.subject[..]) {
            (HangKind::Unknown, _) => String::new(),
            (kind, "") => kind.name().to_string(),
            (kind, subject) => format!("{} {subject}", kind.name()),
        };
        let cycles = grouped(self.cycles);
        let chip = if self.chip.is_empty() { String::new() } else { format!(" on {}", self.chip) };
        let kernel = match &self.kernel[..] {
            "" => format!("firmware{chip}"),
            kernel => format!("kernel `{kernel}`{chip}"),
        };
        match self.reason {
            HangReason::Blocked if kind.is_empty() => {
                format!("{kernel} hangs: no warp can go on, after {cycles} cycles")
            }
            HangReason::Repeats if kind.is_empty() => {
                format!("{kernel} hangs: every warp repeats itself, after {cycles} cycles")
            }
            HangReason::Blocked | HangReason::Repeats | HangReason::NoWayOut => {
                format!("{kernel} hangs: {kind} after {cycles} cycles")
            }
            HangReason::Quiet(quiet) => {
                let kind = if kind.is_empty() { kind } else { format!(", perhaps {article}{kind}") };
                let quiet = grouped(quiet);
                format!("{kernel} seems to hang{kind}: nothing has changed for {quiet} of {cycles} cycles")
            }
            HangReason::Undone(cycles_same) => {
                let same = grouped(cycles_same);
                let what = "seems to hang, perhaps a livelock: the same values come again and again";
                format!("{kernel} {what} for {same} of {cycles} cycles")
            }
            HangReason::CycleLimit(limit) => {
                let running = counted(self.live_warps, "warp");
                let kind = if kind.is_empty() { kind } else { format!("; it looks like {article}{kind}") };
                format!("{kernel} did not end within {} cycles: {running} left{kind}", grouped(limit))
            }
            HangReason::Interrupted => {
                let running = counted(self.live_warps, "warp");
                let kind = if kind.is_empty() { kind } else { format!("; it looks like {article}{kind}") };
                format!("{kernel} was stopped after {cycles} cycles: {running} left{kind}")
            }
        }
    }

    /// Lines of the rows that are in inlined functions: from the innermost function's to the kernel's.
    fn inlined(&self, ctas: &[WaitingCta]) -> Vec<(String, String)> {
        let groups = ctas.iter().flat_map(|cta| &cta.groups);
        let places =
            groups.flat_map(|group| group.holds.iter().take(1).map(|(_, at)| at).chain([&group.place]));
        let undone = self.undone.iter().flat_map(UndoneWord::places);
        let places = places.chain(undone).chain(self.kept.iter().flat_map(KeptWord::all_places));
        let mut lines: Vec<(String, String)> = Vec::new();
        for place in places.filter(|place| !place.inlined.is_empty()) {
            let line = ("inlined".to_string(), format!("{} is {}", place.short(), place.inlined.join(" < ")));
            if !lines.contains(&line) && lines.len() < 4 {
                lines.push(line);
            }
        }
        lines
    }

    /// Label and text of the line that says how certain the hang is.
    fn proof(&self) -> (&'static str, String) {
        match self.reason {
            HangReason::Blocked => {
                ("proof", "every warp waits, and nothing is on its way that could wake one".to_string())
            }
            HangReason::Repeats if !self.undone.is_empty() => (
                "proof",
                "all warps and all of memory came back to a state that they had been in".to_string(),
            ),
            HangReason::Repeats => {
                let copies =
                    if self.kind == HangKind::Stale { ", and no line of that L1 came or went" } else { "" };
                let proof = "every warp that runs came back to a state it had been in, while nothing in memory changed";
                ("proof", format!("{proof}{copies}"))
            }
            HangReason::NoWayOut => (
                "proof",
                "no branch leads from there to the kernel's end; only a fault could end it".to_string(),
            ),
            HangReason::Quiet(_) => (
                "suspicion",
                "not every warp came back to an earlier state, so it may only be slow; \
                 --set hang.suspect_cycles=N waits longer, 0 for ever"
                    .to_string(),
            ),
            HangReason::Undone(_) => (
                "suspicion",
                "no warp has ended, and no word got a value that it had not had before; \
                 --set hang.suspect_cycles=N waits longer, 0 for ever"
                    .to_string(),
            ),
            HangReason::CycleLimit(_) => (
                "limit",
                "the launch was ended by its limit on cycles; --max-cycles N sets another".to_string(),
            ),
            HangReason::Interrupted => {
                ("stopped", "by the user; nothing is known about whether it would have ended".to_string())
            }
        }
    }
}

impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Label and text; a line without text is a heading.
        let mut lines: Vec<(String, String)> = Vec::new();
        if let Some(livelock) = &self.livelock {
            lines.extend(livelock.lines(self.live_warps));
        }
        lines.extend(self.undone.iter().map(UndoneWord::line));
        lines.extend(self.kept.iter().map(KeptWord::line));
        let ctas = if self.livelock.is_some() || !self.undone.is_empty() { &[][..] } else { &self.ctas[..] };
        let only = self.ctas.len() == 1
            && self.ctas[0].alike == 0
            && self.more_ctas == 0
            && self.unstarted_ctas == 0;
        let in_title = |cta: &WaitingCta| self.subject.ends_with(&format!("CTA {}", coordinates(cta.id)));
        for cta in ctas {
            let more = if cta.alike == 0 {
                String::new()
            } else {
                format!(" and {} alike", counted(cta.alike, "other"))
            };
            if !only || !in_title(cta) && self.grid_ctas > 1 {
                lines.push((format!("CTA {}{more}:", coordinates(cta.id)), String::new()));
            }
            let warp = &cta.groups[0].threads.warps;
            let named = self.subject.starts_with("in warp");
            let one_warp =
                only && named && warp.len() == 1 && cta.groups.iter().all(|g| g.threads.warps == *warp);
            for group in &cta.groups {
                let label = if one_warp && !group.threads.all_lanes {
                    lane_ranges(group.threads.lanes)
                } else {
                    group.threads.label()
                };
                lines.push((label, text(group, self.reason.is_proof())));
            }
            if cta.more_groups > 0 {
                lines.push((
                    format!("and {} of its lanes", counted(cta.more_groups, "more group")),
                    String::new(),
                ));
            }
        }
        if !self.undone.is_empty() {
            let text = format!("{} round such a loop", if self.live_warps == 1 { "goes" } else { "go" });
            lines.push((counted(self.live_warps, "warp"), text));
        }
        if self.more_ctas > 0 && self.livelock.is_none() && self.undone.is_empty() {
            lines.push((format!("and {}", counted(self.more_ctas, "more CTA")), String::new()));
        }
        lines.extend(self.inlined(ctas));
        if self.unstarted_ctas > 0 {
            let start = if self.unstarted_ctas == 1 {
                "has not started; it starts"
            } else {
                "have not started; they start"
            };
            lines.push((
                "queue".to_string(),
                format!("{} {start} when others end", counted(self.unstarted_ctas, "CTA")),
            ));
        }
        if let Some(aggregator) = &self.aggregator {
            lines.push(("aggregator".to_string(), aggregator.clone()));
        }
        let (label, proof) = self.proof();
        lines.push((label.to_string(), proof));
        lines.push(("help".to_string(), self.help.clone()));

        let width = lines
            .iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(label, _)| label.len())
            .max()
            .unwrap_or(0);
        f.write_str(&self.title())?;
        for (label, text) in lines {
            match &text[..] {
                "" => write!(f, "\n  {label}")?,
                text => write!(f, "\n  {label:width$}   {text}")?,
            }
        }
        Ok(())
    }
}
