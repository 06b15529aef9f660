//! Livelock of attempts that are undone: words that change for ever between values that they had before.

use std::collections::BTreeMap;

use super::*;
use crate::exec::fault::coordinates;
use crate::exec::locks::holders::Taker;
use crate::exec::locks::written::{WordPlace, WrittenWord};
use crate::explain::hang::code::contains;
use crate::explain::hang::scene::{Nodes, Scene};
use crate::explain::hang::words::{counted, list, signed};

/// Most words that a message lists.
const SHOWN: usize = 4;

/// A word that changes for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoneWord {
    pub word: Word,
    /// The values that it has in turn.
    pub values: Vec<u64>,
    /// Its size.
    pub bytes: u32,
    /// Where it is written, in program order: a thread that does it there, and how often any did.
    pub writers: Vec<(Place, Threads, u64)>,
    /// Threads outside of such a loop that changed the word, and have not changed it back.
    pub keepers: Vec<Keeper>,
}

/// A thread that has changed a word and not changed it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeper {
    pub who: Threads,
    /// Where it changed the word.
    pub place: Place,
    pub by: i64,
    /// It took it as the loop does, whichever the sign.
    pub took: bool,
}

/// The words that change for ever, those that change most often first; only the first few.
pub(super) fn words<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes) -> Vec<UndoneWord> {
    let mut found: BTreeMap<WordPlace, WrittenWord> = BTreeMap::new();
    let mut sms: Vec<u32> = Vec::new();
    for seen in &scene.ctas {
        let watch = seen.sm.as_ref().and_then(|sm| sm.watch);
        let circle = seen.circle.map(|circle| &circle.written);
        let written = watch.and_then(|watch| watch.written()).or(circle);
        let Some(written) = written.filter(|_| !sms.contains(&seen.cta.sm)) else { continue };
        sms.push(seen.cta.sm);
        for (place, word) in written.changing() {
            found.entry(place).and_modify(|known| known.merge(word)).or_insert_with(|| word.clone());
        }
    }
    let times = |word: &WrittenWord| word.writers.iter().map(|(_, count)| count).sum::<u64>();
    let mut found: Vec<(WordPlace, WrittenWord)> = found.into_iter().collect();
    found.sort_by_key(|(place, word)| (std::cmp::Reverse(times(word)), *place));
    found.truncate(SHOWN);
    let told = |((cta, address), word): (WordPlace, WrittenWord)| {
        let threads = |who: &Taker| Threads {
            cta: scene.coordinates_of(who.warp.cta),
            warps: vec![who.warp.warp],
            lanes: LaneMask::of(who.lane as usize),
            all_lanes: false,
        };
        let writers = word.writers_by_place().into_iter();
        let writers = writers.map(|(pc, who, count)| (Place::of(scene.kernel(), pc), threads(&who), count));
        let shares = match cta {
            None => scene.locks.shares(address),
            Some(cta) => {
                let seen = scene.ctas.iter().find(|seen| seen.cta.number == cta);
                seen.map_or(&[][..], |seen| seen.locks.shares((cta, address)))
            }
        };
        let left = shares.iter().filter(|share| !is_in_its_loop(scene, nodes, share.taker));
        let keepers = left.map(|share| Keeper {
            who: threads(&share.taker),
            place: Place::of(scene.kernel(), share.taker.pc),
            by: signed(share.net, word.bytes),
            took: share.waited,
        });
        let keepers = keepers.collect();
        UndoneWord {
            word: scene.word(cta.is_some(), address),
            values: {
                let mut values = word.values.to_vec();
                values.sort_by_key(|&value| signed(value, word.bytes));
                values
            },
            bytes: word.bytes,
            writers: writers.collect(),
            keepers,
        }
    };
    found.into_iter().map(told).collect()
}

/// Whether a thread is still in a loop in which it takes, and so may give back at once.
fn is_in_its_loop<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes, taker: Taker) -> bool {
    let Some(at) = nodes.holder(taker) else { return false };
    let pc = nodes.all[at].pc;
    scene.kernel().loops.iter().any(|l| !l.of_atomic && contains(l, taker.pc) && contains(l, pc))
}

/// What is undone is mostly a count, so values are told as signed numbers.
fn shown(value: u64, bytes: u32) -> String {
    let value = signed(value, bytes);
    if value.unsigned_abs() < 0x1_0000 { value.to_string() } else { format!("{:#x}", value as u64) }
}

impl UndoneWord {
    /// Label and text of its line.
    pub(super) fn line(&self) -> (String, String) {
        let values: Vec<String> = self.values.iter().map(|&value| shown(value, self.bytes)).collect();
        let values = match values.len() {
            0..=4 => list(&values, 4),
            n => format!("{} to {} ({n} values)", values[0], values[n - 1]),
        };
        let writers = self.writers.iter().map(|(place, who, count)| {
            let first = if *count == 1 { "" } else { "first " };
            let (times, lane, warp) = (counted(*count, "time"), who.lanes.lowest(), who.warps[0]);
            let cta = coordinates(who.cta);
            format!("{} ({times}, {first}by lane {lane} of warp {warp} of CTA {cta})", place.short())
        });
        let mut text =
            format!("has the values {values} in turn, written at {}", list(&writers.collect::<Vec<_>>(), 4));
        let keepers = self.keepers.iter().map(|Keeper { who, place, by, took }| {
            let (lane, warp, cta) = (who.lanes.lowest(), who.warps[0], coordinates(who.cta));
            let change =
                if *took { format!("took {}", by.unsigned_abs()) } else { format!("changed it by {by}") };
            format!("lane {lane} of warp {warp} of CTA {cta} {change} at {}", place.short())
        });
        let keepers: Vec<String> = keepers.collect();
        if !keepers.is_empty() {
            text += &format!("; not given back: {}", list(&keepers, 4));
        }
        (self.word.to_string(), text)
    }
}

pub(super) fn help() -> String {
    "undo nothing that others take for success: look with a load before each attempt, take with atomicCAS, or let \
     threads that fail wait for different times; see docs/hangs.md#attempts-that-are-undone"
        .to_string()
}
