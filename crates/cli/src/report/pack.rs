//! Long data as bytes: numbers as variable-length integers, 7 bits per byte, the last byte without the high bit.
//! `unpack.js` reads it.

use warploom::profile::OverTime;
use warploom::trace::{SlotSpans, Spans, WordSpan};

#[derive(Default)]
struct Packer {
    bytes: Vec<u8>,
}

impl Packer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn numbers<const N: usize>(&mut self, numbers: [u64; N]) {
        numbers.into_iter().for_each(|number| self.number(number));
    }
}

/// Number of SMs; for each the number of intervals, and all numbers of each interval.
pub(super) fn over_time(over_time: &OverTime) -> Vec<u8> {
    let mut packer = Packer::default();
    packer.number(over_time.sms.len() as u64);
    for intervals in &over_time.sms {
        packer.number(intervals.len() as u64);
        intervals.iter().flatten().for_each(|&cycles| packer.number(cycles));
    }
    packer.bytes
}

/// Number of SMs; for each its number, its slots, and for each slot four lists. Then the hand-offs. A list is its
/// length and its entries.
pub(super) fn timeline(spans: &Spans) -> Vec<u8> {
    let mut packer = Packer::default();
    packer.number(spans.sms.len() as u64);
    for sm in &spans.sms {
        packer.numbers([sm.sm.into(), sm.slots.len() as u64]);
        sm.slots.iter().for_each(|slot| pack_slot(&mut packer, slot, spans.cycles.start));
    }
    packer.number(spans.hand_offs.len() as u64);
    let mut last = spans.cycles.start;
    for hand_off in &spans.hand_offs {
        let (released, taken) = (hand_off.released, hand_off.taken);
        packer.numbers([taken.cycle - last, taken.cycle - released.cycle, hand_off.word as u64]);
        for end in [released, taken] {
            packer.numbers([end.sm.into(), end.slot.into()]);
        }
        last = taken.cycle;
    }
    packer.bytes
}

/// Spans begin some cycles after the begin of the last one, and have a length.
fn pack_slot(packer: &mut Packer, slot: &SlotSpans, start: u64) {
    packer.number(slot.warps.len() as u64);
    let mut last = start;
    for warp in &slot.warps {
        packer.numbers([warp.cycles.start - last, warp.cycles.end - warp.cycles.start, warp.warp.into()]);
        packer.numbers(warp.cta.map(u64::from));
        last = warp.cycles.start;
    }
    packer.number(slot.states.len() as u64);
    let mut last = start;
    for span in &slot.states {
        let pc = span.pc.map_or(0, |pc| u64::from(pc) + 1);
        packer.numbers([
            span.cycles.start - last,
            span.cycles.end - span.cycles.start,
            span.state as u64,
            pc,
        ]);
        last = span.cycles.start;
    }
    for words in [&slot.spins, &slot.holds] {
        pack_words(packer, words, start);
    }
}

fn pack_words(packer: &mut Packer, spans: &[WordSpan], start: u64) {
    packer.number(spans.len() as u64);
    let mut last = start;
    for span in spans {
        packer.numbers([span.cycles.start - last, span.cycles.end - span.cycles.start, span.word as u64]);
        packer.number(span.lane.unwrap_or(0).into());
        last = span.cycles.start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_seven_bits_a_byte() {
        let mut packer = Packer::default();
        packer.numbers([0, 127, 128, 300]);
        assert_eq!(packer.bytes, [0, 0x7f, 0x80, 1, 0xac, 2]);
    }
}
