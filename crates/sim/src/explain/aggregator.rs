//! What the aggregator is doing, for the message of a hang.

use crate::exec::memory::store::Memory;
use crate::explain::hang::counted;
use crate::time::aggregator::unit::Unit;

/// Most resources that a message lists.
const SHOWN: usize = 3;

/// What the aggregator is doing, in words.
pub(super) fn describe(unit: &Unit<'_>, memory: &Memory) -> String {
    let dispatcher = &unit.dispatcher;
    let mut parts = Vec::new();
    let word = |address: u64| match memory.name(address) {
        Some((name, offset)) => format!("[{name}+{offset}]"),
        None => format!("[{address:#x}]"),
    };
    let mut loads: Vec<u64> = unit.last_loads.iter().flatten().copied().collect();
    loads.sort_unstable();
    loads.dedup();
    parts.push(if unit.has_ended() {
        "has ended".to_string()
    } else if unit.listens() {
        "waits for a CTA to end or a wavefront to yield".to_string()
    } else if loads.is_empty() {
        "sleeps or computes".to_string()
    } else {
        format!("polls {}", loads.into_iter().map(word).collect::<Vec<_>>().join(", "))
    });
    match dispatcher.waiting() {
        0 => parts.push("has nothing to start".to_string()),
        count => parts.push(format!("{} wait for a place", counted(count, "CTA"))),
    }
    if !dispatcher.away.is_empty() {
        let mut resources: Vec<(u64, u64)> = Vec::new();
        for wavefront in &dispatcher.away {
            match resources.iter_mut().find(|(resource, _)| *resource == wavefront.resource) {
                Some((_, count)) => *count += 1,
                None => resources.push((wavefront.resource, 1)),
            }
        }
        let shown = resources.iter().take(SHOWN);
        let list: Vec<_> =
            shown.map(|&(resource, count)| format!("{count} for {}", word(resource))).collect();
        let more = if resources.len() > SHOWN { ", …" } else { "" };
        let count = counted(dispatcher.away.len() as u64, "wavefront");
        parts.push(format!("{count} yielded and not restarted ({}{more})", list.join(", ")));
    }
    parts.join("; ")
}
