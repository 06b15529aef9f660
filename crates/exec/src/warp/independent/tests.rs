use super::*;

fn kernel() -> Activation {
    Activation { function: 0, registers: 0, predicates: 0, frame: 0, depth: 0, caller: None }
}

fn splits() -> Splits {
    Splits::new(Pc(0), LaneMask(0b1111), kernel())
}

fn go(pc: u32, mask: u64) -> Group {
    Group { pc: Pc(pc), mask: LaneMask(mask) }
}

#[test]
fn paths_of_an_if_meet_again() {
    let mut splits = splits();
    splits.branch(&[go(10, 0b0011), go(1, 0b1100)], Pc(12));
    assert_eq!(splits.current(), Some(go(1, 0b1100)));
    splits.branch(&[go(12, 0b1100)], Pc(12));
    assert_eq!(splits.current(), Some(go(10, 0b0011)));
    splits.advance();
    splits.advance();
    assert_eq!(splits.current(), Some(go(12, 0b1111)));
}

/// A lock that is released in the loop that takes it: the other lanes wait where the critical section ends, not
/// in the loop.
#[test]
fn paths_wait_where_they_meet() {
    let mut splits = splits();
    splits.branch(&[go(10, 0b0001), go(5, 0b1110)], Pc(5));
    assert_eq!(
        splits.current(),
        Some(go(10, 0b0001)),
        "the others have reached the reconvergence point, though it is lower"
    );
    splits.branch(&[go(5, 0b0001)], Pc(5));
    assert_eq!(splits.current(), Some(go(5, 0b1111)));
    splits.branch(&[go(0, 0b1110), go(6, 0b0001)], Pc(6));
    splits.branch(&[go(6, 0b1110)], Pc(6));
    assert_eq!(splits.current(), Some(go(6, 0b1111)));
    assert!(splits.splits[0].reconvergences.is_empty());
}

#[test]
fn a_spinning_path_does_not_starve_the_other() {
    let mut splits = splits();
    splits.branch(&[go(0, 0b1110), go(1, 0b0001)], Pc(1));
    let mut ran = 0;
    for _ in 0..100 * PATIENCE {
        match splits.current().unwrap() {
            Group { pc: Pc(0), mask } => splits.branch(&[go(0, mask.0)], Pc(1)),
            _ => {
                ran += 1;
                splits.advance();
            }
        }
    }
    assert!(ran > 1000, "the other path ran {ran} times");
}

/// Lanes that leave a long loop early wait for the others, however long they compute.
#[test]
fn paths_wait_for_a_loop_that_does_not_yield() {
    let mut splits = splits();
    splits.branch(&[go(0, 0b1110), go(1, 0b0001)], Pc(1));
    for _ in 0..PATIENCE / 2 {
        assert_eq!(splits.current(), Some(go(0, 0b1110)));
        splits.branch(&[go(0, 0b1110)], Pc(1));
    }
    splits.branch(&[go(1, 0b1110)], Pc(1));
    assert_eq!(splits.current(), Some(go(1, 0b1111)));
}

#[test]
fn a_stretch_is_as_many_single_steps() {
    for spread in [10, 40, 300] {
        let [mut steps, mut stretches] = [(); 2].map(|()| splits());
        for splits in [&mut steps, &mut stretches] {
            // Three paths that meet one by one.
            splits.branch(&[go(1, 0b1110), go(2 + spread, 0b0001)], Pc(5 * spread));
            splits.branch(&[go(3, 0b0110), go(2 + 2 * spread, 0b1000)], Pc(4 * spread));
        }
        let mut longest = 0;
        while stretches.is_parted() {
            let pc = stretches.current().unwrap().pc;
            let room = |stretch: &Stretch| u64::from(stretch.within.end.0 - pc.0).min(stretch.most).min(90);
            let ran = stretches.straight().as_ref().map_or(0, room);
            longest = longest.max(ran);
            match ran {
                0 => _ = stretches.advance(),
                ran => stretches.arrive(Pc(pc.0 + ran as u32), ran),
            }
            (0..ran.max(1)).for_each(|_| _ = steps.advance());
            assert!(steps.is_as(&stretches), "{steps:?} is not {stretches:?}");
        }
        assert_eq!(stretches.current().unwrap().mask, LaneMask(0b1111));
        assert!(longest >= u64::from(spread.min(80)) - 2, "{longest}");
    }
}

/// After a change of one split, what follows for all of them is as after a look at all of them.
#[test]
fn a_look_at_what_has_moved_is_enough() {
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut most, mut quick, mut left) = (0, 0, 0);
    for _ in 0..300 {
        let [mut moved, mut all] = [(); 2].map(|()| Splits::new(Pc(0), LaneMask(0xffff), kernel()));
        for _ in 0..400 {
            let Some(Group { pc, mask }) = moved.current() else {
                moved.wake();
                all.wake();
                moved.release_barrier(LaneMask(0xffff));
                all.release_barrier(LaneMask(0xffff));
                if moved.current().is_none() {
                    break;
                }
                continue;
            };
            let part = LaneMask(mask.0 & random(1 << 16));
            let rest = mask & !part;
            let target = (pc.0 + random(40) as u32).saturating_sub(8);
            let meet = Pc(pc.0 + 1 + random(60) as u32);
            let groups = [go(target, part.0), go(pc.0 + 1, rest.0)];
            let groups: Vec<_> = groups.into_iter().filter(|group| !group.mask.is_empty()).collect();
            let ran = random(4).max(1);
            let what = random(40);
            for (splits, is_moved) in [(&mut moved, true), (&mut all, false)] {
                if is_moved {
                    quick += u32::from(!splits.unsettled && splits.is_parted());
                } else {
                    splits.unsettled = true;
                }
                match what {
                    0 => splits.wait(Wait::Barrier),
                    1 => splits.wait(Wait::Lanes { members: mask, anywhere: false }),
                    2 if !part.is_empty() && !rest.is_empty() => {
                        splits.wait_apart(&[(part, Wait::Lanes { members: part, anywhere: true })]);
                        splits.advance();
                    }
                    3 => {
                        splits.sleep();
                        splits.advance();
                    }
                    4 => splits.yield_path(),
                    5 if !part.is_empty() => splits.exit(part),
                    6..20 => {
                        let before = splits.splits.len();
                        splits.branch(&groups, meet);
                        left += u32::from(is_moved && groups.len() > 1 && splits.splits.len() == before);
                    }
                    20..24 => splits.arrive(Pc(pc.0 + ran as u32), ran),
                    _ => _ = splits.advance(),
                }
            }
            assert!(moved.is_as(&all), "{moved:?} is not {all:?}");
            assert_eq!(moved.held_back(), all.held_back());
            most = most.max(moved.splits.len());
        }
    }
    let enough = most > 8 && quick > 10_000 && left > 1_000;
    assert!(enough, "{most} splits, {quick} times, and {left} times lanes left for where others were");
}

#[test]
fn a_path_that_waits_for_others_lets_them_run() {
    let mut splits = splits();
    splits.branch(&[go(0, 0b1110), go(1, 0b0001)], Pc(1));
    assert_eq!(splits.current(), Some(go(0, 0b1110)));
    splits.yield_path();
    assert_eq!(splits.current(), Some(go(1, 0b0001)));
    splits.advance();
    assert_eq!(splits.current(), Some(go(2, 0b0001)), "for more than one instruction");
    splits.yield_path();
    assert_eq!(splits.current(), Some(go(0, 0b1110)));
}

#[test]
fn other_paths_run_while_one_sleeps() {
    let mut splits = splits();
    splits.branch(&[go(10, 0b0011), go(1, 0b1100)], Pc(12));
    splits.sleep();
    splits.advance();
    assert_eq!(splits.current(), Some(go(10, 0b0011)));
    splits.branch(&[go(12, 0b0011)], Pc(12));
    assert_eq!(splits.current(), None, "it waits where they meet");
    splits.wake();
    assert_eq!(splits.current(), Some(go(2, 0b1100)));
}

/// A lane that holds a lock and has not run yet must not be taken for one that never continues.
#[test]
fn a_path_that_did_not_run_repeats_nothing() {
    let mut splits = splits();
    splits.branch(&[go(0, 0b1110), go(1, 0b0001)], Pc(1));
    let before = splits.clone();
    splits.branch(&[go(0, 0b1110)], Pc(1));
    let since = |ran, crossed| Since { ran, crossed };
    assert!(!splits.repeats(&before, since(LaneMask(0b1110), false)));
    assert!(splits.repeats(&before, since(LaneMask(0b1111), false)));
    assert!(!splits.repeats(&before, since(LaneMask(0b1111), true)), "the other split is picked sooner");
}

#[test]
fn named_lanes_wait_for_each_other() {
    let mut splits = splits();
    splits.branch(&[go(5, 0b0011), go(1, 0b1100)], Pc(9));
    let wait = Wait::Lanes { members: LaneMask(0b1111), anywhere: false };
    splits.branch(&[go(5, 0b1100)], Pc(9));
    assert_eq!(splits.current(), Some(go(5, 0b1111)), "they met before anyone had to wait");
    splits.branch(&[go(7, 0b0011), go(6, 0b1100)], Pc(9));
    splits.advance();
    assert_eq!(splits.current(), Some(go(7, 0b1111)));
    splits.branch(&[go(8, 0b0011), go(20, 0b1100)], Pc(30));
    splits.wait(wait);
    assert_eq!(splits.current(), Some(go(20, 0b1100)));
    splits.exit(LaneMask(0b1100));
    assert_eq!(splits.current(), Some(go(8, 0b0011)), "lanes that ended are not waited for");
}

#[test]
fn a_warp_barrier_may_be_met_at_two_places() {
    let mut splits = splits();
    splits.branch(&[go(10, 0b0011), go(20, 0b1100)], Pc(30));
    let wait = Wait::Lanes { members: LaneMask(0b1111), anywhere: true };
    splits.wait(wait);
    assert_eq!(splits.current(), Some(go(20, 0b1100)));
    splits.wait(wait);
    assert_eq!(splits.current(), Some(go(11, 0b0011)));
}

#[test]
fn lanes_return_to_where_they_were_called() {
    let mut splits = splits();
    let caller = crate::warp::control::Caller { site: 0, frame: 0, resume: Pc(1) };
    let activation = Activation { function: 1, depth: 1, caller: Some(caller), ..kernel() };
    splits.call(&[Entry { start: Pc(100), mask: LaneMask(0b0011), activation }]);
    assert_eq!((splits.current(), splits.activation()), (Some(go(100, 0b0011)), activation));
    splits.ret(LaneMask(0b0001));
    assert_eq!(splits.current(), Some(go(101, 0b0010)), "the deeper path runs first");
    splits.ret(LaneMask(0b0010));
    assert_eq!(splits.current(), Some(go(1, 0b1111)));
}

#[test]
fn barrier_waits_end_together() {
    let mut splits = splits();
    splits.branch(&[go(5, 0b0011), go(1, 0b1100)], Pc(9));
    splits.wait(Wait::Barrier);
    splits.wait(Wait::Barrier);
    assert_eq!(splits.current(), None);
    splits.release_barrier(LaneMask(0b1111));
    assert_eq!(splits.current(), Some(go(2, 0b1100)));
}

/// One that is woken at its reconvergence point is settled with the next instruction, though another one executes it.
#[test]
fn woken_paths_are_settled_while_others_run() {
    let mut splits = splits();
    splits.branch(&[go(5, 0b1100), go(2, 0b0011)], Pc(30));
    assert_eq!(splits.current(), Some(go(2, 0b0011)));
    splits.branch(&[go(8, 0b0001), go(9, 0b0010)], Pc(10));
    // The quantum of a path that starved ends as it begins to wait.
    splits.current = splits.splits.iter().position(|split| split.pc == Pc(8)).unwrap();
    splits.quantum = 1;
    splits.advance();
    assert_eq!(splits.current(), Some(go(9, 0b0011)));
    splits.wait(Wait::Lanes { members: LaneMask(0b0011), anywhere: true });
    assert_eq!(splits.current(), Some(go(5, 0b1100)));
    splits.advance();
    let woken = splits.splits.iter().find(|split| split.pc == Pc(10)).unwrap();
    assert_eq!(woken.reconvergences.len(), 1, "all lanes have reached the inner one");
}
