//! Instructions on whole wavefronts, in both models and for warps of either size.

use warploom::{Chip, Device, Launch, SimModel, SimOptions, args};

use crate::support::load;

/// Every thread stores its lane, the wavefront's size, masks and values from other lanes. Lanes that are 1
/// modulo 3 do so in a branch of their own.
const WAVE: &str = "
    .visible .entry wave(.param .u64 out) {
        .reg .b32 %r<8>;
        .reg .b64 %rd<8>;
        .reg .pred %p<4>;
        ld.param.u64 %rd0, [out];
        mov.u32 %r0, %tid.x;
        mul.wide.u32 %rd1, %r0, 48;
        add.u64 %rd0, %rd0, %rd1;
        mov.u32 %r1, %wl_laneid;
        mov.u32 %r2, %wl_lanes;
        st.global.v2.u32 [%rd0], {%r1, %r2};
        rem.u32 %r3, %r0, 3;
        setp.eq.u32 %p0, %r3, 1;
        setp.gt.u32 %p1, %r0, 20;
        @%p0 bra apart;
        wl.activemask.b64 %rd2;
        wl.ballot.b64 %rd3, %p1;
        wl.ballot.b64 %rd4, !%p1;
        bra store;
    apart:
        wl.activemask.b64 %rd2;
        wl.ballot.b64 %rd3, %p1;
        wl.ballot.b64 %rd4, !%p1;
    store:
        st.global.v2.u64 [%rd0+16], {%rd2, %rd3};
        st.global.u64 [%rd0+32], %rd4;
        xor.b32 %r4, %r1, 33;
        wl.shfl.idx.b32 %r5, %r0, %r4;
        cvt.u64.u32 %rd5, %r0;
        shl.b64 %rd5, %rd5, 40;
        wl.shfl.idx.b64 %rd6, %rd5, 5;
        shr.u64 %rd6, %rd6, 40;
        cvt.u32.u64 %r6, %rd6;
        st.global.v2.u32 [%rd0+8], {%r5, %r6};
        ret;
    }";

#[test]
fn masks_and_values_of_whole_wavefronts() {
    for (chip, lanes) in [("apu", 64usize), ("gtx480", 32), ("h200", 32)] {
        for model in [SimModel::Functional, SimModel::Timing] {
            let options = SimOptions { model, ..SimOptions::default() };
            let mut gpu = Device::sim_with(Chip::load(chip, &[]).unwrap(), options);
            let kernel = load(&mut gpu, WAVE).kernel("wave").unwrap();
            let threads = 2 * lanes;
            let out = gpu.zeros::<u64>(6 * threads).unwrap();
            gpu.launch(&kernel, Launch::grid(1).block(threads), args![&out]).unwrap();
            let found = out.read(&gpu).unwrap();
            let mask = |first: usize, of: &dyn Fn(usize) -> bool| {
                (0..lanes).filter(|&lane| of(first + lane)).fold(0u64, |mask, lane| mask | 1 << lane)
            };
            for (thread, row) in found.chunks(6).enumerate() {
                let (lane, first) = (thread % lanes, thread / lanes * lanes);
                let words = |word: u64| (word as u32 as usize, (word >> 32) as usize);
                assert_eq!(words(row[0]), (lane, lanes));
                let other = if (lane ^ 33) < lanes { first + (lane ^ 33) } else { thread };
                assert_eq!(words(row[1]), (other, first + 5), "{chip} {model:?} {thread}");
                let apart = |t: usize| t % 3 == 1;
                let with = |t: usize| apart(t) == apart(thread);
                let expected = [
                    mask(first, &with),
                    mask(first, &|t| with(t) && t > 20),
                    mask(first, &|t| with(t) && t <= 20),
                ];
                assert_eq!(row[2..5], expected, "{chip} {model:?} {thread}");
            }
        }
    }
}
