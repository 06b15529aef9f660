//! SASS listings on the simulated chip: the paper's, wrapped in kernels, and small ones that check one feature
//! each.

use warploom::{Device, Error, Launch, Report, args};

/// Runs the only kernel of a listing with one output buffer as its argument.
fn run(text: &str, block: impl Into<warploom::Dim>, words: usize) -> Result<(Vec<u32>, Report), Error> {
    // The paper's GPU.
    let mut gpu = Device::sim("gtx570")?;
    let module = gpu.load_sass_named("k.sass", text)?;
    let kernel = module.kernel(&module.kernel_names()[0])?;
    let out = gpu.zeros::<u32>(words)?;
    let report = gpu.launch(&kernel, Launch::grid(1).block(block).max_cycles(2_000_000), args![&out])?;
    Ok((out.read(&gpu)?, report))
}

#[track_caller]
fn result(text: &str, block: impl Into<warploom::Dim>, words: usize) -> Vec<u32> {
    run(text, block, words).unwrap_or_else(|error| panic!("{error}")).0
}

/// A kernel with the address of this thread's output word in `R2` and its index in `R0`.
fn kernel(body: &str) -> String {
    format!(
        ".kernel k
    .param out u64
    .shared memory 0x1000
    S2R R0, SR_Tid_X;
    MOV R2, c[0x0][0x20];
    MOV R3, c[0x0][0x24];
    IMAD.WIDE.U32 R2, R0, 0x4, R2;
{body}
    STG.E [R2], R4;
    EXIT;
"
    )
}

#[test]
fn arithmetic_and_predicates() {
    let text = kernel(
        "    ISETP.LT.AND P0, PT, R0, 0x10, PT;
    SEL R4, R0, 0x64, P0;
    @!P0 IADD R4, R4, -R0;
    ISCADD R4, R4, R0, 0x1;
    IMNMX R4, R4, 0x80, PT;",
    );
    let expected: Vec<u32> = (0..32).map(|i| if i < 16 { 3 * i } else { (200 - i).min(0x80) }).collect();
    assert_eq!(result(&text, 32, 32), expected);
}

#[test]
fn shared_memory_and_barriers() {
    let text = kernel(
        "    SHL R5, R0, 0x2;
    STS [R5], R0;
    BAR.SYNC 0x0;
    LOP.XOR R6, R5, 0xfc;
    LDS R4, [R6];
    BAR.RED.POPC R7, RZ;
    IADD R4, R4, R7;",
    );
    assert_eq!(result(&text, 64, 64), (0..64).map(|i| 63 - i + 64).collect::<Vec<_>>());
}

#[test]
fn sizes_of_the_launch_as_fermi_reads_them() {
    let text = kernel("    MOV R4, c[0x0][0x8];\n    MOV R5, c[0x0][0x14];\n    IMAD R4, R4, 0x64, R5;");
    assert_eq!(result(&text, 32, 32), vec![3201; 32]);
}

/// Even lanes leave the loop at once, odd lanes later. Where they reconverge decides how often the code after
/// the first exit runs.
#[test]
fn ssy_decides_where_paths_meet() {
    let text = |ssy: &str| {
        kernel(&format!(
            "    LOP.AND R5, R0, 0x1;
    ISETP.NE.AND P0, PT, R5, RZ, PT;
    MOV R4, RZ;
    {ssy}
    @P0 BRA odd;
    IADD R4, R4, 0x1;
    BRA join;
odd:
    IADD R4, R4, 0x2;
join:
    IADD R4, R4, 0x10;
    IADD R4, R4, 0x10;
late:
    IADD R4, R4, 0x10;"
        ))
    };
    let early = run(&text("SSY join;"), 32, 32).unwrap();
    let late = run(&text("SSY late;"), 32, 32).unwrap();
    let unsaid = run(&text("NOP;"), 32, 32).unwrap();
    assert_eq!(early.0, late.0);
    assert_eq!((early.1.warp_insts, early.1.cycles), (unsaid.1.warp_insts, unsaid.1.cycles));
    // The two instructions before `late` run once per side.
    assert_eq!(late.1.warp_insts, early.1.warp_insts + 2);
    // A stated reconvergence point does the same without the `SSY` instruction.
    let stated = text("").replace("@P0 BRA odd;", "@P0 BRA odd (MEET late);");
    assert_eq!(run(&stated, 32, 32).unwrap().1.warp_insts, late.1.warp_insts - 1);
}

#[test]
fn faults_point_at_the_listing() {
    let error = run(&kernel("    LDG.E R4, [R2+0x100000];"), 32, 32).unwrap_err().to_string();
    assert!(error.contains("k.sass:8"), "{error}");
}

#[test]
fn errors_point_at_the_listing() {
    let error = run(".kernel k\n    MOV R63, 0x1;\n    EXIT;", 32, 32).unwrap_err().to_string();
    assert!(error.contains("k.sass:2:9") && error.contains("^^^"), "{error}");
}

/// The paper's listings, as printed, wrapped in kernels.
mod paper {
    use super::*;

    const COUNTER: &str = warploom_kernels::text!("listings/counter.sass");
    const CHAIN: &str = warploom_kernels::text!("listings/chain.sass");
    const PRIMITIVES: &str = warploom_kernels::text!("listings/primitives.sass");

    #[test]
    fn primitives_pass_words_from_warp_to_warp() {
        assert_eq!(result(PRIMITIVES, 64, 32), (1..=32).collect::<Vec<u32>>());
    }

    #[test]
    fn listing_1_counts_every_thread() {
        assert_eq!(result(COUNTER, 256, 1), [256]);
    }

    /// As printed, its unlock stores 1, the value of a taken mutex. So each thread has a private mutex here.
    #[test]
    fn listing_3_takes_and_leaves_a_mutex() {
        let text = kernel(
            "    SHL R10, R0, 0x2;
    STS [R10], RZ;
    MOV R9, R2;
    MOV R0, R10;
// ===== Lock =====
/*0060*/ SSY 0x98; //set convergence point
/*0068*/ LDSLK P0, R2, [R0];
/*0070*/ @P0 ISETP.EQ.U32.AND P1, pt, R2, RZ, pt;
/*0078*/ @P0 SEL R3, R2, 0x1, !P1;
/*0080*/ @P0 STSUL [R0], R3;
/*0088*/ @!P0 BRA 0x68; //atomicCAS loop
/*0090*/ ISETP.EQ.AND.S P2, pt, R2, RZ, pt;
/*0098*/ @!P2 BRA 0x60; //while loop
//converge to proceed lockstep execution
/*00a0*/ LDS R4, [R0];
// ===== Unlock =====
/*00b0*/ LDSLK P0, RZ, [R0];
/*00b8*/ @P0 MOV32I R2, 0x1;
/*00c0*/ @P0 STSUL [R0], R2;
/*00c8*/ @!P0 BRA 0xb0;
    MOV R2, c[0x0][0x20];
    MOV R3, c[0x0][0x24];
    S2R R0, SR_Tid_X;
    IMAD.WIDE.U32 R2, R0, 0x4, R2;",
        );
        assert_eq!(result(&text, 64, 64), vec![1; 64]);
    }

    /// Warp 0 locks, the others wait. Each hands the word to the next by unlocking it.
    #[test]
    fn listing_4_orders_warps() {
        let text = kernel(
            "    ISETP.NE.AND P2, PT, R0, RZ, PT;
    LOP.AND R5, R0, 0x1f;
    ISETP.NE.AND P3, PT, R5, RZ, PT;
    @P3 EXIT;
    MOV R10, R0;
    MOV R0, &memory;
    @P2 BRA waits;
// ===== Lock =====
/*0000*/ LDSLK P0, RZ, [R0];
    BAR.SYNC 0x0;
    STS [R0+0x800], R10;
    BRA unlock;
waits:
    BAR.SYNC 0x0;
// ===== Waitlock =====
/*0010*/ LDSLK P0, RZ, [R0];
/*0018*/ @!P0 BRA 0x10;
    LDS R4, [R0+0x800];
    IADD R4, R4, 0x1;
    STS [R0+0x800], R4;
// ===== Unlock =====
unlock:
/*0020*/ STSUL [R0], RZ;
    LDS R4, [R0+0x800];",
        );
        let out = result(&text, 128, 128);
        let mut last: Vec<u32> = out.iter().step_by(32).copied().collect();
        last.sort_unstable();
        assert_eq!(last[3], 3, "{last:?}");
    }

    #[test]
    fn listing_6_hands_a_word_to_another_warp() {
        let text = kernel(
            "    SHR.U32 R6, R0, 0x5;
    LOP.AND R5, R0, 0x1f;
    SHL R10, R5, 0x2;
    ISETP.NE.AND P2, PT, R6, RZ, PT;
    IADD R4, R0, 0x7;
    MOV R8, R2;
    MOV R9, R3;
    MOV R0, R10;
    @P2 BRA consumer;
// ===== producer =====
/*0000*/ LDSLK P0, RZ, [R0]; //initialize
    BAR.SYNC 0x0;
/*0010*/ STSUL [R0], R4; //store to channel and
//unlock
    EXIT;
// ===== consumer =====
consumer:
    BAR.SYNC 0x0;
/*0100*/ LDSLK P0, R2, [R0]; //wait and load from
//channel
/*0108*/ @!P0 BRA 0x100; //spinning
/*0200*/ STSUL [R0], R2; //finalize
    MOV R4, R2;
    MOV R2, R8;
    MOV R3, R9;",
        );
        let out = result(&text, 64, 64);
        assert_eq!(out[32..], (0..32).map(|i| i + 7).collect::<Vec<u32>>()[..]);
    }

    /// All threads of a warp add to one word in a critical section of arbitrary length.
    #[test]
    fn listing_8_critical_section_within_a_warp() {
        let text = kernel(
            "    MOV R8, R2;
    MOV R9, R3;
    MOV R10, R0;
    MOV R0, &memory;
// producer-consumer
/*00a0*/ SSY 0x110;
/*00a8*/ LDSLK P0, R2, [R0];
@P0 IADD R2, R2, R10; //critical section
/*0100*/ @P0 STSUL [R0], R2;
/*0108*/ @!P0 BRA 0xa8;
    LDS R4, [R0];
    MOV R2, R8;
    MOV R3, R9;",
        );
        assert_eq!(result(&text, 32, 32), vec![31 * 32 / 2; 32]);
    }

    /// One lock bit per warp: warps alternate on a word that they do not update atomically.
    #[test]
    fn listing_9_warp_shared_lock_bit() {
        let text = kernel(
            "    MOV R8, R2;
    MOV R9, R3;
    MOV R0, &memory;
    BAR.SYNC 0x0;
// ===== Waitlock =====
//If any thread acquires the lock bit, continue
/*0010*/ LDSLK P0, RZ, [R0];
/*0018*/ VOTE.ANY RZ, P1, P0;
/*0020*/ @!P1 BRA 0x10;
    LDS R4, [R0+0x800];
    IADD R4, R4, 0x1;
    STS [R0+0x800], R4;
// ===== Unlock =====
//Thread 0 in the warp releases the shared lock
/*0020*/ S2R R1, SR_LaneId; //Load lane_id
/*0028*/ ISETP.EQ P0, pt, R1, RZ, pt; //lane_id=0?
/*0030*/ @P0 STSUL [R0], RZ;
    BAR.SYNC 0x0;
    LDS R4, [R0+0x800];
    MOV R2, R8;
    MOV R3, R9;",
        );
        assert_eq!(result(&text, 256, 256), vec![8; 256]);
    }

    #[test]
    fn listing_13_sums_along_the_chain() {
        let sum = |tid: u32| (0..=tid / 32).map(|w| tid % 32 + 32 * w).sum::<u32>();
        assert_eq!(result(CHAIN, 512, 512), (0..512).map(sum).collect::<Vec<_>>());
    }

    /// Needleman-Wunsch on a grid of 31x31 in 32x32 words: row 0 and column 0 are given, each other cell waits
    /// for its neighbours.
    #[test]
    fn listing_15_wavefront() {
        let text = ".kernel nw
    .param out u64
    .shared S 0x1000
    S2R R0, SR_Tid_X;
    S2R R1, SR_Tid_Y;
    IMAD R6, R1, 0x20, R0;
    SHL R7, R6, 0x2;
    MOV R15, 0x3;
    LOP.AND R4, R6, 0x7;
    ISUB R8, RZ, R6;
    STS [R7], R8;
    BAR.SYNC 0x0;
    ISETP.EQ.AND P0, PT, R0, RZ, PT;
    ISETP.EQ.OR P6, PT, R1, RZ, P0;
    PMOV P1, !PT;
    PMOV P3, !PT;
    @P6 BRA border;
/*00e8*/ LDSLK P0, RZ, [R7];//lock self
/*00f0*/ BAR.RED.POPC RZ, RZ;
/*00f8*/ SSY 0x170;
/*0100*/ @!P1 LDSLK P1, R11, [R7+-0x4];//get west
/*0108*/ @P1 STSUL [R7+-0x4], R11;//restore token
/*0110*/ @!P3 LDSLK P3, R10, [R7+-0x80];//get north
/*0118*/ @P3 STSUL [R7+-0x80], R10;//restore token
/*0120*/ PSETP.AND.AND P2, pt, P3, P1, pt;//ready?
/*0128*/ @P2 LDS R12, [R7+-0x84];//fire
/*0130*/ @P2 ISETP.GE.AND P4, pt, R10, R11, pt;
/*0138*/ @P2 IADD R12, R12, R4;
/*0140*/ @P2 SEL R13, R10, R11, P4;
/*0148*/ @P2 IADD R13, R13, -R15;
/*0150*/ @P2 ISETP.GE.AND P5, pt, R13, R12, pt;
/*0158*/ @P2 SEL R8, R13, R12, P5;
/*0160*/ @P2 STSUL [R7], R8;//put self
/*0168*/ @!P2 BRA 0x100;
    BRA store;
border:
    BAR.RED.POPC RZ, RZ;
store:
    LDC.64 R16, c[0x0][out];
    IMAD.WIDE.U32 R16, R6, 0x4, R16;
    STG.E [R16], R8;
    EXIT;
";
        let mut expected = vec![0i32; 1024];
        for at in 0..1024usize {
            let (x, y) = (at % 32, at / 32);
            expected[at] = match (x, y) {
                (0, _) | (_, 0) => -(at as i32),
                _ => {
                    let (north, west, corner) = (expected[at - 32], expected[at - 1], expected[at - 33]);
                    (north.max(west) - 3).max(corner + (at % 8) as i32)
                }
            };
        }
        let out: Vec<i32> = result(text, (32, 32), 1024).into_iter().map(|w| w as i32).collect();
        assert_eq!(out, expected);
    }
}
