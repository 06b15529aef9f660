//! The paper's Figure 7, register by register, and what it leaves out.

use super::*;
use crate::chip::Chip;

fn detector(set: &[&str]) -> Ddos {
    let set: Vec<_> = set.iter().map(|s| s.to_string()).collect();
    let mut ddos = Ddos::new(&Chip::load("gtx480", &set).unwrap().issue.ddos, 48);
    (0..4).for_each(|slot| ddos.started(WarpSlot(slot)));
    ddos
}

/// As the figure has it: 4 bits of everything, the lowest ones.
fn figure_7() -> Ddos {
    detector(&["issue.ddos.hash=modulo", "issue.ddos.path_bits=4", "issue.ddos.value_bits=4"])
}

const W: WarpSlot = WarpSlot(0);

/// A comparison of warp 0 at a byte address, 8 to an instruction, by four active lanes.
fn setp(ddos: &mut Ddos, address: u32, values: [u32; 2]) {
    assert_eq!(ddos.profiled(Cycle(0), W, LaneMask(0b1111)), Some(0));
    ddos.compared(W, Pc(address / 8), values);
}

fn bra(ddos: &mut Ddos, address: u32) -> bool {
    ddos.branched(W, Pc(address / 8), true)
}

/// Path history, value history, match pointer, phase.
type Registers = (Vec<u32>, Vec<[u32; 2]>, u32, Phase);

fn registers(ddos: &Ddos) -> Registers {
    ddos.warps[0].history.registers()
}

fn table(ddos: &Ddos) -> Vec<(u32, u32)> {
    ddos.table.entries().iter().map(|entry| (entry.pc.0 * 8, entry.confidence)).collect()
}

#[test]
fn figure_7_the_busy_wait_loop() {
    let mut ddos = figure_7();
    // (1) 0x38 / 8 = 7. The lock is taken: %r15 is 1, compared with 0.
    setp(&mut ddos, 0x38, [1, 0]);
    assert_eq!(registers(&ddos), (vec![7], vec![[1, 0]], 1, Phase::Searching));
    // (2) 0x90 / 8 = 0x12, of which 4 bits are 2. It is not 7. %r21 is still 0.
    setp(&mut ddos, 0x90, [0, 0]);
    assert_eq!(registers(&ddos), (vec![2, 7], vec![[0, 0], [1, 0]], 2, Phase::Searching));
    assert!(!bra(&mut ddos, 0x98));
    assert_eq!(table(&ddos), []);
    // (3) The same as the entry at the match pointer, which stays at 2 now; 2 − 1 matches remain.
    setp(&mut ddos, 0x38, [1, 0]);
    let values = vec![[1, 0], [0, 0], [1, 0]];
    assert_eq!(registers(&ddos), (vec![7, 2, 7], values, 2, Phase::Matching(1)));
    // (4) None remains: the warp spins.
    setp(&mut ddos, 0x90, [0, 0]);
    let values = vec![[0, 0], [1, 0], [0, 0], [1, 0]];
    assert_eq!(registers(&ddos), (vec![2, 7, 2, 7], values, 2, Phase::Spinning));
    assert!(!bra(&mut ddos, 0x98));
    assert_eq!(table(&ddos), [(0x98, 1)]);
    // Three more iterations, and the branch is confirmed.
    for (confirmed, confidence) in [(false, 2), (false, 3), (true, 4)] {
        setp(&mut ddos, 0x38, [1, 0]);
        setp(&mut ddos, 0x90, [0, 0]);
        assert_eq!(registers(&ddos).3, Phase::Spinning);
        assert_eq!(bra(&mut ddos, 0x98), confirmed);
        assert_eq!(table(&ddos), [(0x98, confidence)]);
    }
    // The registers are full by now.
    assert_eq!(registers(&ddos).0, [2, 7, 2, 7, 2, 7, 2, 7]);
    // (5) The lock is free: %r15 is 0, and the warp no longer spins.
    setp(&mut ddos, 0x38, [0, 0]);
    assert_eq!(registers(&ddos), (vec![7], vec![[0, 0]], 1, Phase::Searching));
    setp(&mut ddos, 0x90, [1, 0]);
    assert_eq!(registers(&ddos), (vec![2, 7], vec![[1, 0], [0, 0]], 2, Phase::Searching));
    // Other lanes iterate; the branch stays confirmed.
    assert!(bra(&mut ddos, 0x98));
    assert_eq!(table(&ddos), [(0x98, 4)]);
}

#[test]
fn figure_7_the_regular_loop() {
    // (6) to (8): the counter %r20 differs in every iteration. (The figure has 2 for the path of 0x58; it is 0xb.)
    let mut ddos = figure_7();
    for count in 1..=15 {
        setp(&mut ddos, 0x58, [count, 15]);
        let (paths, values, ..) = registers(&ddos);
        assert_eq!((paths[0], values[0]), (0xb, [count, 15]));
        assert_eq!(registers(&ddos).3, Phase::Searching);
        assert!(!bra(&mut ddos, 0x60));
        assert_eq!(table(&ddos), []);
    }
    // The first iterations in full.
    let mut ddos = figure_7();
    setp(&mut ddos, 0x58, [1, 15]);
    assert_eq!(registers(&ddos), (vec![0xb], vec![[1, 15]], 1, Phase::Searching));
    setp(&mut ddos, 0x58, [2, 15]);
    assert_eq!(registers(&ddos), (vec![0xb; 2], vec![[2, 15], [1, 15]], 2, Phase::Searching));
    setp(&mut ddos, 0x58, [3, 15]);
    let values = vec![[3, 15], [2, 15], [1, 15]];
    assert_eq!(registers(&ddos), (vec![0xb; 3], values, 3, Phase::Searching));
}

#[test]
fn a_counter_with_large_steps_fools_the_lowest_bits_only() {
    for (hash, found) in [("modulo", true), ("xor", false)] {
        let mut ddos = detector(&[&format!("issue.ddos.hash={hash}")]);
        let mut confirmed = false;
        for count in 0..100 {
            setp(&mut ddos, 0x58, [count * 256, 25_600]);
            confirmed |= bra(&mut ddos, 0x60);
        }
        assert_eq!(confirmed, found, "{hash}");
    }
}

#[test]
fn another_lane_takes_over_without_a_history() {
    let mut ddos = figure_7();
    let mut compare = |lanes| {
        let lane = ddos.profiled(Cycle(0), W, LaneMask(lanes));
        ddos.compared(W, Pc(7), [1, 0]);
        (lane, ddos.warps[0].history.phase())
    };
    assert_eq!(compare(0b1100), (Some(2), Phase::Searching));
    // The profiled lane stays although a lower lane is active.
    assert_eq!(compare(0b1111), (Some(2), Phase::Spinning));
    assert_eq!(compare(0b1000), (Some(3), Phase::Searching));
    assert_eq!(compare(0b1111), (Some(3), Phase::Spinning));
    assert_eq!(ddos.profiled(Cycle(0), W, LaneMask::NONE), None);
}

#[test]
fn the_table_is_cleared_with_the_last_warp() {
    let mut ddos = figure_7();
    for _ in 0..2 {
        setp(&mut ddos, 0x38, [1, 0]);
    }
    bra(&mut ddos, 0x98);
    for slot in 0..3 {
        ddos.ended(WarpSlot(slot));
    }
    assert_eq!(table(&ddos), [(0x98, 1)]);
    ddos.ended(WarpSlot(3));
    assert_eq!(table(&ddos), []);
}

#[test]
fn shared_registers_go_from_warp_to_warp() {
    let mut ddos = detector(&["issue.ddos.time_sharing=true", "issue.ddos.epoch_cycles=100"]);
    let mut compare = |now, slot| {
        let slot = WarpSlot(slot);
        let lane = ddos.profiled(Cycle(now), slot, LaneMask(1));
        lane.is_some().then(|| {
            ddos.compared(slot, Pc(7), [1, 0]);
            ddos.warps[slot.index()].history.registers().0.len()
        })
    };
    // The first warp to compare has them for an epoch.
    assert_eq!(compare(10, 2), Some(1));
    assert_eq!(compare(20, 0), None);
    assert_eq!(compare(109, 0), None);
    assert_eq!(compare(109, 2), Some(2));
    // Then the first other warp to compare, whichever it is. Its epoch begins there.
    assert_eq!(compare(150, 2), Some(3));
    assert_eq!(compare(160, 1), Some(1));
    assert_eq!(compare(170, 2), None);
    assert_eq!(compare(259, 3), None);
    assert_eq!(compare(260, 3), Some(1));
    // Warp 2 was found spinning in its epoch, and has not had the registers since.
    assert!(ddos.warps[2].spinning && !ddos.warps[3].spinning);
    assert!(!ddos.branched(WarpSlot(2), Pc(9), true));
    assert_eq!(table(&ddos), [(72, 1)]);
    // An owner that ends leaves the registers to the next warp that compares.
    ddos.ended(WarpSlot(3));
    assert_eq!(ddos.profiled(Cycle(261), WarpSlot(1), LaneMask(1)), Some(0));
}
