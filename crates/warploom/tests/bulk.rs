//! Bulk copies on the h200, on both models: bytes and boxes of tensors, to and from shared memory, with swizzles,
//! fills, sums and multicast, and what goes wrong with them.

use warploom::{Arg, Chip, Device, Error, Launch, Report, SimModel, SimOptions, Swizzle, TensorMap, args};

const HEAD: &str = ".version 8.6\n.target sm_90a\n.address_size 64\n";

/// Thread 0 sets up an mbarrier for one arrival; all wait for phase 0 of it after `copy`, and then do `after`.
fn kernel(params: &str, copy: &str, after: &str) -> String {
    format!(
        "{HEAD}.visible .entry k({params}) {{
            .reg .b32 %r<24>; .reg .b64 %d<12>; .reg .pred %p<4>; .reg .b16 %h<2>;
            .shared .align 1024 .b8 tile[8192];
            .shared .align 8 .b8 bar[8];
            ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
            mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mov.u32 %r2, bar;
            setp.eq.u32 %p0, %r0, 0;
            @%p0 mbarrier.init.shared::cta.b64 [%r2], 1;
            fence.proxy.async.shared::cta;
            bar.sync 0;
            {copy}
        WAIT:
            mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
            @!%p1 bra WAIT;
            {after}
            ret;
        }}"
    )
}

/// `out[tid] = tile[tid]`, in words, by 256 threads and eight words each.
const STORE: &str = "
    mov.u32 %r10, 0;
  NEXT:
    shl.b32 %r11, %r10, 8; add.u32 %r11, %r11, %r0; shl.b32 %r11, %r11, 2;
    add.u32 %r12, %r1, %r11; ld.shared.u32 %r13, [%r12];
    cvt.u64.u32 %d10, %r11; add.u64 %d10, %d1, %d10; st.global.u32 [%d10], %r13;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 8;
    @%p3 bra NEXT;";

fn device(model: SimModel) -> Device {
    let chip = Chip::load("h200", &["sm.count=4".into()]).unwrap();
    Device::sim_with(chip, SimOptions { model, ..SimOptions::default() })
}

const MODELS: [SimModel; 2] = [SimModel::Functional, SimModel::Timing];

/// Runs on one CTA of 256 threads. `input` goes to the first buffer, `map` to a third parameter.
fn run(
    text: &str,
    model: SimModel,
    input: &[u32],
    map: Option<&dyn Fn(u64) -> TensorMap>,
) -> Result<(Vec<u32>, Vec<u32>, Report), Error> {
    let mut gpu = device(model);
    let kernel = gpu.load_ptx_named("k.ptx", text)?.kernel("k")?;
    let (x, out) = (gpu.buffer(input)?, gpu.zeros::<u32>(2048)?);
    let launch = Launch::grid(1).block(256);
    let report = match map {
        Some(map) => {
            let bytes = map(x.address()).encode();
            gpu.launch(&kernel, launch, args![&x, &out, Arg::bytes(&bytes)])?
        }
        None => gpu.launch(&kernel, launch, args![&x, &out])?,
    };
    Ok((x.read(&gpu)?, out.read(&gpu)?, report))
}

const PARAMS: &str = ".param .u64 in, .param .u64 out";
const WITH_MAP: &str = ".param .u64 in, .param .u64 out, .param .align 64 .b8 map[128]";

/// The address of the map in %d4.
const MAP: &str = "mov.b64 %d3, map; cvta.param.u64 %d4, %d3;";

fn numbers(count: u32) -> Vec<u32> {
    (0..count).map(|at| at * 7 + 1).collect()
}

#[test]
fn bytes_come_and_go() {
    let copy = "
        @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 4096;
        @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d0], 4096, [%r2];";
    // Back from shared memory to the output: 4,096 bytes in two groups.
    let after = "
        @!%p0 bra END;
        cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 2048;
        cp.async.bulk.commit_group;
        add.u32 %r1, %r1, 2048;
        cp.async.bulk.global.shared::cta.bulk_group [%d1+2048], [%r1], 2048;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group.read 1;
        cp.async.bulk.wait_group 0;
      END:";
    let input = numbers(1024);
    let mut cycles = 0;
    for model in MODELS {
        let (_, out, report) = run(&kernel(PARAMS, copy, after), model, &input, None).unwrap();
        assert_eq!(out[..1024], input[..], "{model:?}");
        assert!(out[1024..].iter().all(|&word| word == 0));
        cycles = report.cycles;
    }
    assert!((800..6000).contains(&cycles), "{cycles}");
}

/// A tensor of 20 columns, 10 rows and 3 planes of words; rows are 96 bytes apart.
fn tensor(address: u64, box_sizes: [u32; 5], swizzle: Swizzle) -> TensorMap {
    TensorMap {
        address,
        element_type: 2,
        rank: 3,
        sizes: [20, 10, 3, 0, 0],
        strides: [96, 960, 0, 0],
        box_sizes,
        steps: [1; 5],
        swizzle,
        fills_nan: false,
    }
}

fn load_box(x: i32, y: i32, z: i32, bytes: u32) -> String {
    format!(
        "{MAP} mov.u32 %r3, {x}; mov.u32 %r4, {y}; mov.u32 %r5, {z};
        @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {bytes};
        @%p0 cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
            [%r1], [%d4, {{%r3, %r4, %r5}}], [%r2];"
    )
}

/// What a box of [`tensor`] has in shared memory, in words.
fn expected(input: &[u32], (x, y, z): (i32, i32, i32), [w, h, d]: [i32; 3], swizzle: Swizzle) -> Vec<u32> {
    let mut words = vec![0; 2048];
    let mut at = 0u32;
    for (dz, dy, dx) in (0..d).flat_map(|dz| (0..h).flat_map(move |dy| (0..w).map(move |dx| (dz, dy, dx)))) {
        let (x, y, z) = (x + dx, y + dy, z + dz);
        let inside = (0..20).contains(&x) && (0..10).contains(&y) && (0..3).contains(&z);
        let place = match swizzle {
            Swizzle::None => at,
            Swizzle::Within(span) => at ^ (((at / 128) % (span / 16)) * 16),
        };
        words[place as usize / 4] = if inside { input[(z * 240 + y * 24 + x) as usize] } else { 0 };
        at += 4;
    }
    words
}

#[test]
fn boxes_of_tensors_in_every_swizzle_and_at_every_edge() {
    let input = numbers(720);
    for (corner, size, swizzle) in [
        ((0, 0, 0), [8, 4, 2], Swizzle::None),
        ((0, 0, 0), [8, 8, 3], Swizzle::Within(32)),
        ((4, 1, 0), [16, 6, 2], Swizzle::Within(64)),
        ((0, 0, 1), [32, 8, 2], Swizzle::Within(128)),
        ((-3, -1, 0), [8, 4, 2], Swizzle::None),
        ((13, 7, 2), [16, 5, 2], Swizzle::Within(64)),
        ((5, 2, 1), [12, 3, 1], Swizzle::None),
        ((40, 0, 0), [8, 4, 1], Swizzle::None),
    ] {
        let bytes = size.iter().product::<i32>() as u32 * 4;
        let (x, y, z) = corner;
        let [w, h, d] = size.map(|size| size as u32);
        let map = move |address| tensor(address, [w, h, d, 0, 0], swizzle);
        let text = kernel(WITH_MAP, &load_box(x, y, z, bytes), STORE);
        for model in MODELS {
            let (_, out, _) = run(&text, model, &input, Some(&map)).unwrap();
            assert_eq!(
                out,
                expected(&input, corner, size, swizzle),
                "{corner:?} {size:?} {swizzle:?} {model:?}"
            );
        }
    }
}

#[test]
fn boxes_go_back_and_add_up() {
    let input = numbers(720);
    let (corner, size) = ((14, 8, 1), [8, 4, 2]);
    let copy = load_box(14, 8, 1, 256);
    let map = |address| tensor(address, [8, 4, 2, 0, 0], Swizzle::None);
    for (reduce, factor) in [("cp.async.bulk", 1), ("cp.reduce.async.bulk", 2)] {
        let op = if factor == 2 { ".add" } else { "" };
        // Words that are outside of the tensor stay where they are.
        let after = format!(
            "@!%p0 bra END;
             {reduce}.tensor.3d.global.shared::cta{op}.tile.bulk_group [%d4, {{%r3, %r4, %r5}}], [%r1];
             cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
           END:"
        );
        for model in MODELS {
            let (x, ..) = run(&kernel(WITH_MAP, &copy, &after), model, &input, Some(&map)).unwrap();
            let mut wanted = input.clone();
            for (z, y, x) in (1..3).flat_map(|z| (8..10).flat_map(move |y| (14..20).map(move |x| (z, y, x))))
            {
                wanted[z * 240 + y * 24 + x] *= factor;
            }
            assert_eq!(x, wanted, "{reduce} {model:?} {corner:?} {size:?}");
        }
    }
}

#[test]
fn a_tile_goes_to_all_ctas_of_a_cluster() {
    // Each CTA waits for 1,024 bytes; rank 0 sends them to ranks 0 and 2, rank 1 to itself and 3 from shared memory.
    let text = format!(
        "{HEAD}.visible .entry k({PARAMS}) {{
            .reg .b32 %r<24>; .reg .b64 %d<12>; .reg .pred %p<6>; .reg .b16 %h<2>;
            .shared .align 128 .b8 tile[1024];
            .shared .align 128 .b8 other[1024];
            .shared .align 8 .b8 bar[8];
            ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
            mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r9, other;
            mov.u32 %r3, %cluster_ctarank;
            shl.b32 %r4, %r0, 2; add.u32 %r5, %r9, %r4; add.u32 %r6, %r4, 5; st.shared.u32 [%r5], %r6;
            setp.eq.u32 %p0, %r0, 0;
            @%p0 mbarrier.init.shared::cta.b64 [%r2], 1;
            @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;
            fence.proxy.async;
            barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
            setp.eq.and.u32 %p2, %r3, 0, %p0;
            mov.b16 %h0, 5;
            @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
                [%r1], [%d0], 1024, [%r2], %h0;
            setp.eq.and.u32 %p3, %r3, 1, %p0;
            @!%p3 bra WAIT;
            mapa.shared::cluster.u32 %r7, %r1, 3; mapa.shared::cluster.u32 %r8, %r2, 3;
            cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [%r9], 1024, [%r8];
            cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r9], 1024, [%r2];
        WAIT:
            mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
            @!%p1 bra WAIT;
            mad.lo.u32 %r10, %r3, 1024, %r4; cvt.u64.u32 %d5, %r10; add.u64 %d5, %d1, %d5;
            add.u32 %r11, %r1, %r4; ld.shared.u32 %r12, [%r11]; st.global.u32 [%d5], %r12;
            barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
            ret;
        }}"
    );
    let input = numbers(256);
    for model in MODELS {
        let mut gpu = device(model);
        let kernel = gpu.load_ptx(&text).unwrap().kernel("k").unwrap();
        let (x, out) = (gpu.buffer(&input).unwrap(), gpu.zeros::<u32>(1024).unwrap());
        gpu.launch(&kernel, Launch::grid(4).block(256).cluster(4), args![&x, &out]).unwrap();
        let out = out.read(&gpu).unwrap();
        let own: Vec<u32> = (0..256).map(|at| 4 * at + 5).collect();
        for (rank, part) in out.chunks(256).enumerate() {
            assert_eq!(part, if rank % 2 == 0 { &input } else { &own }, "rank {rank} {model:?}");
        }
    }
}

#[test]
fn misuse_is_told() {
    let fault = |copy: &str, what: &str| {
        for model in MODELS {
            let map = |address| tensor(address, [8, 4, 2, 0, 0], Swizzle::None);
            let said = run(&kernel(WITH_MAP, copy, STORE), model, &numbers(720), Some(&map))
                .unwrap_err()
                .to_string();
            assert!(said.contains(what), "{said}");
        }
    };
    let bytes = |size: u32, offset: u32| {
        format!(
            "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
                [%r1+{offset}], [%d0], {size}, [%r2];"
        )
    };
    fault(&bytes(20, 0), "copies multiples of 16 bytes");
    let held = bytes(16, 0).replace(", 16,", ", %r3,");
    fault(&format!("mov.u32 %r3, 20; {held}"), "not a multiple of 16");
    fault(&bytes(32, 8), "not a multiple of 16");
    fault(&bytes(4096, 0), "past the end");
    fault(&bytes(1 << 20, 0), "shared memory");
    fault(&load_box(0, 0, 0, 256).replace("[%r1], [%d4", "[%r1+64], [%d4"), "not a multiple of 128");
    fault(&load_box(0, 0, 0, 256).replace(MAP, "cvta.to.global.u64 %d4, %d0;"), "no tensor map");
    let two = load_box(0, 0, 0, 256).replace("tensor.3d", "tensor.2d").replace(", %r5}", "}");
    fault(&two, "has 3 dimensions");
}

#[test]
fn bytes_that_never_come_are_explained() {
    // 1,024 bytes are expected and 512 come.
    let copy = "
        @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;
        @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d0], 512, [%r2];";
    for model in MODELS {
        let said = run(&kernel(PARAMS, copy, STORE), model, &numbers(256), None).unwrap_err().to_string();
        assert!(said.contains("512"), "{said}");
    }
}

#[test]
fn what_is_not_modelled_is_refused_by_name() {
    let refused = |from: &str, to: &str| {
        let text = kernel(WITH_MAP, &load_box(0, 0, 0, 256), STORE);
        assert!(text.contains(from));
        device(SimModel::Functional).load_ptx(&text.replace(from, to)).unwrap_err().to_string()
    };
    let im2col = refused("global.tile.mbarrier", "global.im2col.mbarrier");
    assert!(im2col.contains("`.im2col`") && im2col.contains("not modelled"), "{im2col}");
    let count = refused("{%r3, %r4, %r5}", "{%r3, %r4}");
    assert!(count.contains("3 coordinates"), "{count}");
    let mut other = Device::sim("gtx480").unwrap();
    let kernel = other.load_ptx(&kernel(PARAMS, &load_box(0, 0, 0, 256).replace(MAP, ""), "")).unwrap();
    let kernel = kernel.kernel("k").unwrap();
    let (x, out) = (other.zeros::<u32>(1).unwrap(), other.zeros::<u32>(1).unwrap());
    let said = other.launch(&kernel, Launch::grid(1).block(32), args![&x, &out]).unwrap_err().to_string();
    assert!(said.contains("copy engine"), "{said}");
}

#[test]
fn maps_are_changed_in_memory() {
    // The map is copied to shared memory, gets another address, and goes to global memory, from where it is used.
    let copy = format!(
        "{MAP} mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 0; mov.u32 %r6, tile; add.u32 %r6, %r6, 4096;
        setp.ge.u32 %p2, %r0, 32;
        @%p2 bra SKIP;
        shl.b32 %r7, %r0, 2; cvt.u64.u32 %d5, %r7; add.u64 %d5, %d4, %d5; ld.u32 %r8, [%d5];
        add.u32 %r9, %r6, %r7; st.shared.u32 [%r9], %r8;
        bar.warp.sync -1;
        add.u64 %d6, %d0, 960;
        @%p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r6], %d6;
        @%p0 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r6], 2, 1;
        bar.warp.sync -1;
        add.u64 %d7, %d1, 4096;
        tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d7], [%r6], 128;
        fence.proxy.tensormap::generic.acquire.gpu [%d7], 128;
        bar.warp.sync -1;
        @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
        @%p0 cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
            [%r1], [%d7, {{%r3, %r4, %r5}}], [%r2];
      SKIP:"
    );
    // Only the first 1,024 words are stored, as the map lies behind them.
    let after = STORE.replace("%r10, 8;", "%r10, 4;");
    let input = numbers(720);
    for model in MODELS {
        let map = |address| tensor(address, [8, 4, 2, 0, 0], Swizzle::None);
        let (_, out, _) = run(&kernel(WITH_MAP, &copy, &after), model, &input, Some(&map)).unwrap();
        let wanted = expected(&input, (0, 0, 1), [8, 4, 1], Swizzle::None);
        assert_eq!(out[..32], wanted[..32], "{model:?}");
    }
}
