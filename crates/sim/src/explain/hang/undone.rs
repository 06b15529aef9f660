//! Livelock of attempts that are undone: words that change for ever between values that they had before, and words at
//! which the attempts fail because someone keeps them.

use std::collections::{BTreeMap, BTreeSet};

use warploom_isa::{Op, Order, Pc};

use super::*;
use crate::exec::fault::coordinates;
use crate::exec::locks::holders::{Share, Taker};
use crate::exec::locks::written::{WordPlace, Written, WrittenWord};
use crate::explain::hang::code::contains;
use crate::explain::hang::scene::{Nodes, Scene, Seen};
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

/// A word at which attempts fail, although nobody changes it: an atomic tries it, someone has taken it or written it
/// last, or it is read as words are that threads communicate with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptWord {
    pub word: Word,
    pub value: u64,
    /// Its size.
    pub bytes: u32,
    /// Where the loops read it, in program order.
    pub places: Vec<Place>,
    pub keepers: Vec<Keeper>,
    /// If nobody has a share of it: who wrote it last, where, and whether it has ended.
    pub writer: Option<(Threads, Place, bool)>,
}

/// The words that change for ever, those that change most often first; only the first few.
pub(super) fn words<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes) -> Vec<UndoneWord> {
    let mut found: BTreeMap<WordPlace, WrittenWord> = BTreeMap::new();
    let mut sms: Vec<u32> = Vec::new();
    for seen in &scene.ctas {
        let Some(written) = seen.written().filter(|_| !sms.contains(&seen.cta.sm)) else { continue };
        sms.push(seen.cta.sm);
        for (place, word) in written.changing() {
            found.entry(place).and_modify(|known| known.merge(word)).or_insert_with(|| word.clone());
        }
    }
    let times = |word: &WrittenWord| word.writers.iter().map(|(_, count)| count).sum::<u64>();
    let mut found: Vec<(WordPlace, WrittenWord)> = found.into_iter().collect();
    found.sort_by_key(|(place, word)| (std::cmp::Reverse(times(word)), *place));
    found.truncate(SHOWN);
    let told = |(at, word): (WordPlace, WrittenWord)| {
        let writers = word.writers_by_place().into_iter();
        let writers =
            writers.map(|(pc, who, count)| (Place::of(scene.kernel(), pc), threads(scene, who), count));
        let keepers = keepers(scene, nodes, at, word.bytes);
        UndoneWord {
            word: scene.word(at.0.is_some(), at.1),
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

/// The words that the loops try, or read although someone keeps them, and that nobody changes; only the first few.
pub(super) fn kept_words<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes) -> Vec<KeptWord> {
    let changing: Vec<WordPlace> =
        scene.ctas.iter().filter_map(Seen::written).flat_map(Written::changing).map(|(at, _)| at).collect();
    let mut found: BTreeMap<WordPlace, (u32, u64, BTreeSet<Pc>)> = BTreeMap::new();
    for seen in &scene.ctas {
        let live = (0..seen.warps.len()).filter(|&warp| !seen.warps[warp].is_done());
        for read in live.flat_map(|warp| scene.read_words(seen, warp)) {
            let at = (read.place.0.then_some(seen.cta.number), read.place.1);
            if !changing.contains(&at) {
                found.entry(at).or_insert((read.bytes, read.held, BTreeSet::new())).2.insert(read.pc);
            }
        }
    }
    let told = |(at, (bytes, value, places)): (WordPlace, (u32, u64, BTreeSet<Pc>))| {
        let keepers = keepers(scene, nodes, at, bytes);
        let writer = scene
            .last_writer(at)
            .map(|who| (threads(scene, who), Place::of(scene.kernel(), who.pc), nodes.holder(who).is_none()));
        let word = scene.word(at.0.is_some(), at.1);
        let ops = || places.iter().map(|pc| scene.kernel().code[pc.index()].op);
        let is_kept = ops().any(|op| matches!(op, Op::Atom(..))) || !keepers.is_empty() || writer.is_some();
        let is_strong = ops().any(|op| matches!(op, Op::Ld { access, .. } if access.order != Order::Weak));
        let places = places.iter().map(|pc| Place::of(scene.kernel(), *pc)).collect();
        let word = KeptWord { word, value, bytes, places, keepers, writer };
        (is_kept || is_strong).then_some((!is_kept, word))
    };
    let mut told: Vec<(bool, KeptWord)> = found.into_iter().filter_map(told).collect();
    // Those that nobody is known to have written come last.
    told.sort_by_key(|(is_unwritten, _)| *is_unwritten);
    told.into_iter().map(|(_, word)| word).take(SHOWN).collect()
}

fn threads<const N: usize>(scene: &Scene<'_, N>, who: Taker) -> Threads {
    Threads {
        cta: scene.coordinates_of(who.warp.cta),
        warps: vec![who.warp.warp],
        lanes: LaneMask::of(who.lane as usize),
        all_lanes: false,
    }
}

/// Threads outside of their loops that changed a word and have not changed it back.
fn keepers<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes, at: WordPlace, bytes: u32) -> Vec<Keeper> {
    let left = scene.shares(at).iter().filter(|share| !is_in_its_loop(scene, nodes, share.taker));
    let keeper = |share: &Share| Keeper {
        who: threads(scene, share.taker),
        place: Place::of(scene.kernel(), share.taker.pc),
        by: signed(share.net, bytes),
        took: share.waited,
    };
    left.map(keeper).collect()
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
        text += &not_given_back(&self.keepers);
        (self.word.to_string(), text)
    }

    /// Where it is written and was taken.
    pub(super) fn places(&self) -> impl Iterator<Item = &Place> {
        let writers = self.writers.iter().map(|(place, ..)| place);
        writers.chain(self.keepers.iter().map(|keeper| &keeper.place))
    }
}

impl KeptWord {
    /// Label and text of its line.
    pub(super) fn line(&self) -> (String, String) {
        let places: Vec<String> = self.places.iter().map(Place::short).collect();
        let mut text = format!("stays {}, read at {}", shown(self.value, self.bytes), list(&places, 4));
        text += &not_given_back(&self.keepers);
        if let Some((who, place, ended)) = &self.writer {
            let ended = if *ended { ", which has ended" } else { "" };
            text += &format!("; last written at {} by {who}{ended}", place.short());
        }
        (self.word.to_string(), text)
    }

    /// Where it is read, and was taken or written.
    pub(super) fn all_places(&self) -> impl Iterator<Item = &Place> {
        let keepers = self.keepers.iter().map(|keeper| &keeper.place);
        self.places.iter().chain(keepers).chain(self.writer.iter().map(|(_, place, _)| place))
    }
}

/// Who keeps a word, at the end of its line.
fn not_given_back(keepers: &[Keeper]) -> String {
    let keepers = keepers.iter().map(|Keeper { who, place, by, took }| {
        let change =
            if *took { format!("took {}", by.unsigned_abs()) } else { format!("changed it by {by}") };
        format!("{who} {change} at {}", place.short())
    });
    match &keepers.collect::<Vec<_>>()[..] {
        [] => String::new(),
        keepers => format!("; not given back: {}", list(keepers, 4)),
    }
}

pub(super) fn help() -> String {
    "undo nothing that others take for success: look with a load before each attempt, take with atomicCAS, or let \
     threads that fail wait for different times; see docs/hangs.md#attempts-that-are-undone"
        .to_string()
}
