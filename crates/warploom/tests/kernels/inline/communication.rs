//! Votes, matches, reductions and shuffles within a warp. In a wavefront of 64 lanes each half acts as a warp.

use super::{check_threads, kernel};
use crate::support::Random;

/// The lanes of thread i's warp in a CTA of `threads`, as thread numbers in the grid.
fn warp(i: u32, threads: u32) -> impl Iterator<Item = u32> + Clone {
    let (cta, warp) = (i / threads, i % threads / 32);
    (warp * 32..(warp * 32 + 32).min(threads)).map(move |t| cta * threads + t)
}

fn mask(lanes: impl Iterator<Item = u32>, threads: u32) -> u32 {
    lanes.fold(0, |m, i| m | 1 << (i % threads % 32))
}

#[test]
fn votes() {
    let body = "
        ld.global.u32 %r5, [%d3];
        setp.gt.u32 %p1, %r5, 1;
        activemask.b32 %r6;
        vote.sync.ballot.b32 %r7, %p1, %r6;
        vote.sync.ballot.b32 %r8, !%p1, %r6;
        vote.sync.all.pred %p2, %p1, %r6;
        vote.sync.any.pred %p3, %p1, %r6;
        vote.sync.uni.pred %p4, %p1, %r6;
        selp.u32 %r9, 1, 0, %p2;
        selp.u32 %r10, 2, 0, %p3;
        selp.u32 %r11, 4, 0, %p4;
        or.b32 %r9, %r9, %r10;
        or.b32 %r9, %r9, %r11;
        st.global.v4.u32 [%d2], {%r6, %r7, %r8, %r9};";
    // Warps in which the predicate holds for all, none and some lanes.
    let input: Vec<u32> = (0..300).map(|i| [2, 0, i][i as usize / 32 % 3] % 4).collect();
    for (ctas, threads) in [(1, 300), (3, 100)] {
        check_threads(&kernel(4, body), (ctas, threads), &input, |i| {
            let lanes = warp(i, threads);
            let yes = |i: &u32| input[*i as usize] > 1;
            let (all, any) = (lanes.clone().all(|i| yes(&i)), lanes.clone().any(|i| yes(&i)));
            let ballot = mask(lanes.clone().filter(yes), threads);
            let active = mask(lanes, threads);
            let answers = u32::from(all) + 2 * u32::from(any) + 4 * u32::from(all || !any);
            [active, ballot, active & !ballot, answers]
        });
    }
}

/// Votes before Volta have no member mask and mean the active lanes.
#[test]
fn votes_without_a_mask() {
    let text = ".version 6.0
        .target sm_35
        .address_size 64
        .visible .entry k(.param .u64 out, .param .u64 in) {
            .reg .pred %p<4>;
            .reg .b32 %r<10>;
            .reg .b64 %d<4>;
            ld.param.u64 %d0, [out];
            mov.u32 %r0, %tid.x;
            mad.wide.u32 %d1, %r0, 8, %d0;
            rem.u32 %r1, %r0, 5;
            setp.eq.u32 %p1, %r1, 0;
            vote.ballot.b32 %r2, %p1;
            vote.any.pred %p2, %p1;
            selp.u32 %r3, 1, 0, %p2;
            st.global.v2.u32 [%d1], {%r2, %r3};
            ret;
        }";
    check_threads(text, (1, 64), &[0], |i| [mask(warp(i, 64).filter(|i| i % 5 == 0), 64), 1]);
}

/// In a branch only its own lanes are active, and a vote covers only them.
#[test]
fn votes_in_branches() {
    let body = "
        and.b32 %r5, %r1, 3;
        setp.eq.u32 %p1, %r5, 1;
        shr.u32 %r6, %r1, 3;
        and.b32 %r6, %r6, 1;
        setp.eq.u32 %p2, %r6, 1;
        @%p1 bra ONE;
        activemask.b32 %r7;
        vote.sync.ballot.b32 %r8, %p2, 0xdddddddd;
        bra MET;
    ONE:
        activemask.b32 %r7;
        vote.sync.ballot.b32 %r8, %p2, 0x22222222;
    MET:
        st.global.v2.u32 [%d2], {%r7, %r8};";
    check_threads(&kernel(2, body), (2, 64), &[0], |i| {
        let mine = if i % 4 == 1 { 0x2222_2222 } else { 0xdddd_dddd };
        [mine, mine & 0xff00_ff00]
    });
}

#[test]
fn matches() {
    let body = "
        ld.global.u32 %r5, [%d3];
        cvt.u64.u32 %d5, %r5;
        mul.lo.u64 %d5, %d5, 0x100000001;
        and.b64 %d6, %d5, 0xfffffffff0000000;
        mov.b32 %r6, 0xffffffff;
        match.any.sync.b32 %r7, %r5, %r6;
        match.any.sync.b64 %r8, %d5, %r6;
        match.all.sync.b32 %r9|%p1, %r5, %r6;
        match.all.sync.b64 %r10|%p2, %d6, %r6;
        selp.u32 %r11, 1, 0, %p1;
        selp.u32 %r12, 2, 0, %p2;
        or.b32 %r11, %r11, %r12;
        st.global.u32 [%d2], %r7;
        st.global.u32 [%d2+4], %r8;
        st.global.u32 [%d2+8], %r9;
        st.global.u32 [%d2+12], %r10;
        st.global.u32 [%d2+16], %r11;";
    let mut input = Random::new(1).words_below(128, 5);
    input[32..64].fill(3);
    check_threads(&kernel(5, body), (1, 128), &input, |i| {
        let value = |i: u32| input[i as usize];
        let equal = mask(warp(i, 128).filter(|&j| value(j) == value(i)), 128);
        let all = if equal == u32::MAX { u32::MAX } else { 0 };
        // The high words of 64-bit values count for `match.all` too.
        [equal, equal, all, all, if all == 0 { 0 } else { 3 }]
    });
}

#[test]
fn reductions() {
    let ops =
        ["add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"];
    let each: String = ops
        .iter()
        .enumerate()
        .map(|(at, op)| {
            format!("redux.sync.{op} %r6, %r5, 0xffffffff;\nst.global.u32 [%d2+{}], %r6;\n", 4 * at)
        })
        .collect();
    let body = format!("ld.global.u32 %r5, [%d3];\n{each}");
    let input = Random::new(2).words(96);
    check_threads(&kernel(9, &body), (1, 96), &input, |i| {
        let values = || warp(i, 96).map(|i| input[i as usize]);
        let fold = |f: fn(u32, u32) -> u32| values().reduce(f).expect("a warp has lanes");
        let sum = fold(u32::wrapping_add);
        [
            sum,
            sum,
            fold(u32::min),
            fold(|a, b| (a as i32).min(b as i32) as u32),
            fold(u32::max),
            fold(|a, b| (a as i32).max(b as i32) as u32),
            fold(|a, b| a & b),
            fold(|a, b| a | b),
            fold(|a, b| a ^ b),
        ]
    });
}

#[test]
fn a_reduction_among_some() {
    let body = "
        setp.ge.u32 %p1, %r1, 20;
        mov.u32 %r6, 0;
        @%p1 bra DONE;
        redux.sync.add.u32 %r6, %r1, 0x000fffff;
    DONE:
        st.global.u32 [%d2], %r6;";
    check_threads(&kernel(1, body), (2, 64), &[0], |i| [if i % 32 < 20 { 190 } else { 0 }]);
}

/// Tiles of eight lanes, each with its own member mask, execute the same instructions: each is among its own lanes.
#[test]
fn tiles_with_masks_of_their_own() {
    let body = "
        and.b32 %r5, %r1, 24;
        mov.u32 %r6, 0xff;
        shl.b32 %r6, %r6, %r5;
        and.b32 %r7, %r1, 3;
        setp.eq.u32 %p1, %r7, 1;
        vote.sync.ballot.b32 %r8, %p1, %r6;
        shfl.sync.bfly.b32 %r9, %r0, 7, 31, %r6;
        redux.sync.add.u32 %r10, %r1, %r6;
        match.any.sync.b32 %r11, %r7, %r6;
        setp.lt.u32 %p2, %r1, 16;
        vote.sync.all.pred %p3, %p2, %r6;
        selp.u32 %r12, 1, 0, %p3;
        elect.sync %r13|%p4, %r6;
        bar.warp.sync %r6;
        st.global.u32 [%d2], %r8;
        st.global.u32 [%d2+4], %r9;
        st.global.u32 [%d2+8], %r10;
        st.global.u32 [%d2+12], %r11;
        st.global.u32 [%d2+16], %r12;
        st.global.u32 [%d2+20], %r13;";
    check_threads(&kernel(6, body), (2, 96), &[0], |i| {
        let (lane, first) = (i % 32, (i % 32) & 24);
        let sum = (first..first + 8).sum();
        [0x22 << first, i ^ 7, sum, (0x11 << (lane % 4)) << first, u32::from(lane < 16), first]
    });
}

/// Lanes of two tiles come to the same instruction one after the other: a tile waits for its own lanes only.
#[test]
fn tiles_that_arrive_in_parts() {
    let body = "
        and.b32 %r5, %r1, 1;
        mov.u32 %r6, 0x55555555;
        shl.b32 %r6, %r6, %r5;
        setp.ge.u32 %p1, %r1, 12;
        mov.u32 %r7, 0;
        @%p1 bra MEET;
    LATE:
        add.u32 %r7, %r7, 1;
        mad.lo.u32 %r8, %r1, 30, 100;
        setp.lt.u32 %p2, %r7, %r8;
        @%p2 bra LATE;
    MEET:
        redux.sync.max.u32 %r9, %r7, %r6;
        shfl.sync.idx.b32 %r10, %r7, %r5, 31, %r6;
        bar.warp.sync %r6;
        st.global.v2.u32 [%d2], {%r9, %r10};";
    check_threads(&kernel(2, body), (2, 64), &[0], |i| {
        let odd = i % 2;
        [(10 + odd) * 30 + 100, odd * 30 + 100]
    });
}

/// Lanes that end are not waited for, also where several tiles wait.
#[test]
fn tiles_whose_lanes_end() {
    let body = "
        and.b32 %r5, %r1, 16;
        mov.u32 %r6, 0xffff;
        shl.b32 %r6, %r6, %r5;
        setp.eq.u32 %p1, %r1, 3;
        mov.u32 %r7, 0;
        @!%p1 bra MEET;
    LATE:
        add.u32 %r7, %r7, 1;
        setp.lt.u32 %p2, %r7, 200;
        @%p2 bra LATE;
        st.global.u32 [%d2], %r7;
        ret;
    MEET:
        setp.ne.u32 %p3, %r1, 20;
        vote.sync.ballot.b32 %r9, %p3, %r6;
        st.global.u32 [%d2], %r9;";
    check_threads(&kernel(1, body), (1, 32), &[0], |i| match i {
        3 => [200],
        0..16 => [0xfff7],
        _ => [0xffef_0000],
    });
}

#[test]
fn one_is_elected() {
    let body = "
        setp.lt.u32 %p1, %r1, 6;
        mov.u32 %r5, 99;
        mov.u32 %r6, 0;
        @%p1 bra DONE;
        elect.sync %r5|%p2, 0xffffffc0;
        selp.u32 %r6, 1, 0, %p2;
    DONE:
        st.global.v2.u32 [%d2], {%r5, %r6};";
    // The machine may elect any lane; ours elects the first.
    check_threads(&kernel(2, body), (1, 64), &[0], |i| {
        if i % 32 < 6 { [99, 0] } else { [6, u32::from(i % 32 == 6)] }
    });
}

/// The manual's rule for one lane: the source lane, and whether it is in range.
fn source(mode: &str, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (lane, by, clamp, segment) = (lane as i32, (b & 31) as i32, (c & 31) as i32, (c >> 8 & 31) as i32);
    let (max, min) = (lane & segment | clamp & !segment, lane & segment);
    let (from, inside) = match mode {
        "up" => (lane - by, lane - by >= max),
        "down" => (lane + by, lane + by <= max),
        "bfly" => (lane ^ by, lane ^ by <= max),
        _ => (min | by & !segment, (min | by & !segment) <= max),
    };
    if inside { (from as u32, true) } else { (lane as u32, false) }
}

#[test]
fn shuffles() {
    let segments = |width: u32| (32 - width) << 8;
    for mode in ["up", "down", "bfly", "idx"] {
        let last = if mode == "up" { 0 } else { 31 };
        for c in [last, segments(16) | last, segments(8) | last, segments(2) | last, last ^ 5] {
            for b in [0, 1, 3, 7, 16, 31, 33] {
                let body = format!(
                    "ld.global.u32 %r5, [%d3];
                    mov.u32 %r6, {b};
                    mov.u32 %r7, {c};
                    shfl.sync.{mode}.b32 %r8|%p1, %r5, {b}, {c}, 0xffffffff;
                    shfl.sync.{mode}.b32 %r9, %r5, %r6, %r7, 0xffffffff;
                    selp.u32 %r10, 1, 0, %p1;
                    st.global.u32 [%d2], %r8;
                    st.global.u32 [%d2+4], %r9;
                    st.global.u32 [%d2+8], %r10;"
                );
                let input: Vec<u32> = (0..64).map(|i| 1000 + 7 * i).collect();
                check_threads(&kernel(3, &body), (1, 64), &input, |i| {
                    let (from, inside) = source(mode, i % 32, b, c);
                    let value = input[(i / 32 * 32 + from) as usize];
                    [value, value, u32::from(inside)]
                });
            }
        }
    }
}

/// Each lane may name another source lane and width.
#[test]
fn shuffles_by_lane() {
    let body = "
        ld.global.u32 %r5, [%d3];
        mul.lo.u32 %r6, %r1, 11;
        add.u32 %r6, %r6, 5;
        shr.u32 %r7, %r1, 4;
        mul.lo.u32 %r7, %r7, 0x1800;
        or.b32 %r7, %r7, 31;
        shfl.sync.idx.b32 %r8|%p1, %r5, %r6, %r7, 0xffffffff;
        selp.u32 %r9, 1, 0, %p1;
        st.global.v2.u32 [%d2], {%r8, %r9};";
    let input = Random::new(3).words(128);
    check_threads(&kernel(2, body), (1, 128), &input, |i| {
        let lane = i % 32;
        let (from, inside) = source("idx", lane, 11 * lane + 5, ((lane >> 4) * 0x1800) | 31);
        [input[(i / 32 * 32 + from) as usize], u32::from(inside)]
    });
}
