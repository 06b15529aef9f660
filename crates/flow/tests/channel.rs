//! The channel step by step: each transition of the paper's Figure 4, wrap-around, overflow.

use std::sync::atomic::AtomicU32;

use warploom_flow::{Arena, Channel, DESCRIPTOR_BYTES, Drain, Layout, Shape};

type Memory = Arena<AtomicU32>;

fn channel(shape: Shape) -> (Memory, Channel) {
    let memory = Memory::new(0x1000, DESCRIPTOR_BYTES + shape.array_bytes());
    let channel = Channel::at(shape, 0x1000, 0x1000 + DESCRIPTOR_BYTES);
    channel.describe(&memory, 1);
    (memory, channel)
}

/// The four counters: head, tail, ready, reserve.
fn counts(memory: &Memory, channel: &Channel) -> [u32; 4] {
    [channel.head(), channel.tail(), channel.ready(), channel.reserve()].map(|at| memory.load(at))
}

#[test]
fn figure_4() {
    let (memory, channel) = channel(Shape { group: 4, ..Shape::new(8, 1) });
    let mut drain = Drain::default();
    assert_eq!(counts(&memory, &channel), [0, 0, 0, 0], "t0");
    let zero = channel.talloc(&memory, 4).unwrap();
    assert_eq!((zero, counts(&memory, &channel)), (0, [0, 4, 0, 0]), "t1: available to reserved");
    let one = channel.talloc(&memory, 4).unwrap();
    assert_eq!((one, counts(&memory, &channel)), (4, [0, 8, 0, 0]), "t2");
    (0..4).for_each(|i| memory.store(channel.word(one + i, 0), 100 + i));
    assert_eq!(drain.ready(&channel, &memory), 0, "t3: what is reserved is hidden");
    channel.enq(&memory, one, 4);
    assert_eq!(
        counts(&memory, &channel),
        [0, 8, 4, 4],
        "t4 to t6: reserved to ready, before those reserved first"
    );
    let (first, count) = drain.dispatch(&channel, &memory, 64);
    assert_eq!((first, count, drain.ready(&channel, &memory)), (0, 4, 0), "t7: ready to dispatched");
    let taken: Vec<u32> = (0..4).map(|i| channel.deq(&memory, first + i)).collect();
    assert_eq!(taken, [4, 5, 6, 7]);
    channel.enq(&memory, zero, 4);
    let (second, count) = drain.dispatch(&channel, &memory, 64);
    assert_eq!((second, count), (4, 4), "t8, t9");
    taken.iter().for_each(|&position| channel.tfree(&memory, position));
    assert_eq!(drain.free(&channel, &memory), 0, "t9: done, but reserved after those that are not");
    assert_eq!(counts(&memory, &channel)[0], 0);
    assert_eq!(channel.talloc(&memory, 1), None, "all eight are taken");
    (0..4).for_each(|i| channel.tfree(&memory, channel.deq(&memory, second + i)));
    assert_eq!(drain.free(&channel, &memory), 8, "t10, t11: done to available, in the order of reservation");
    assert_eq!(counts(&memory, &channel), [8, 8, 8, 8]);
}

#[test]
fn a_group_that_nobody_fills_is_closed() {
    let (memory, channel) = channel(Shape { group: 8, ..Shape::new(8, 1) });
    let mut drain = Drain::default();
    let at = channel.talloc(&memory, 7).unwrap();
    assert_eq!(channel.talloc(&memory, 2), None);
    channel.enq(&memory, at, 7);
    let (first, count) = drain.dispatch(&channel, &memory, 8);
    (0..count - 1).for_each(|i| channel.tfree(&memory, channel.deq(&memory, first + i)));
    assert_eq!((drain.free(&channel, &memory), drain.close(&channel, &memory)), (0, 0));
    channel.tfree(&memory, channel.deq(&memory, first + 6));
    assert_eq!((drain.free(&channel, &memory), drain.close(&channel, &memory)), (0, 7));
    assert_eq!((counts(&memory, &channel), drain.outstanding(&channel, &memory)), ([8, 8, 7, 7], 0));
    assert_eq!(channel.talloc(&memory, 2), Some(8));
}

#[test]
fn around_many_times() {
    for layout in [Layout::Structures, Layout::Padded, Layout::Arrays] {
        let (memory, channel) = channel(Shape { group: 2, layout, ..Shape::new(8, 3) });
        let mut drain = Drain::default();
        let mut expected = std::collections::VecDeque::new();
        let mut value = 0;
        for round in 0..1000u32 {
            let count = 1 + round % 5;
            while let Some(at) = channel.talloc(&memory, count) {
                for i in 0..count {
                    (0..3).for_each(|w| memory.store(channel.word(at + i, w), value + w));
                    expected.push_back(value);
                    value += 10;
                }
                channel.enq(&memory, at, count);
            }
            let (first, count) = drain.dispatch(&channel, &memory, 1 + round % 7);
            for i in 0..count {
                let at = channel.deq(&memory, first.wrapping_add(i));
                let words = [0, 1, 2].map(|w| memory.load(channel.word(at, w)));
                let value = expected.pop_front().unwrap();
                assert_eq!(words, [value, value + 1, value + 2]);
                channel.tfree(&memory, at);
            }
            drain.free(&channel, &memory);
            drain.close(&channel, &memory);
        }
        assert!(memory.load(channel.tail()) > 100 * 8);
    }
}

#[test]
fn layouts_do_not_overlap() {
    for layout in [Layout::Structures, Layout::Padded, Layout::Arrays] {
        let (_, channel) = channel(Shape { layout, ..Shape::new(64, 5) });
        let mut words: Vec<u64> =
            (0..64).flat_map(|at| (0..5).map(move |w| (at, w))).map(|(at, w)| channel.word(at, w)).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 320);
        assert!(words[319] < channel.done(0), "{layout:?}");
    }
}
