//! The listings of "Fine-Grained Synchronizations and Dataflow Programming on GPUs" (ICS 2015) assemble as printed.
//! Code that the paper omits (`...`) is filled in. `SSSY` in its Listing 8 is a misprint and reported as an error.

use warploom_isa::print;

/// A fragment in a kernel, read and printed again.
fn assembled(fragment: &str) -> String {
    let text = format!(".kernel k\n{fragment}\n    EXIT;\n");
    match warploom_sass::load("paper.sass", &text) {
        Ok(module) => print::module(&module, None),
        Err(error) => error.render(false),
    }
}

#[test]
fn listing_1() {
    insta::assert_snapshot!(assembled(
        "/*00a0*/ LDSLK P0, R1, [R0];
/*00a8*/ @P0 IADD R4, R1, 0x1;
/*00b0*/ @P0 STSUL [R0], R4;
/*00b8*/ @!P0 BRA 0xa0;"
    ));
}

#[test]
fn listing_3() {
    insta::assert_snapshot!(assembled(
        "// ===== Lock =====
/*0060*/ SSY 0x98; //set convergence point
/*0068*/ LDSLK P0, R2, [R0];
/*0070*/ @P0 ISETP.EQ.U32.AND P1, pt, R2, RZ, pt;
/*0078*/ @P0 SEL R3, R2, 0x1, !P1;
/*0080*/ @P0 STSUL [R0], R3;
/*0088*/ @!P0 BRA 0x68; //atomicCAS loop
/*0090*/ ISETP.EQ.AND.S P2, pt, R2, RZ, pt;
/*0098*/ @!P2 BRA 0x60; //while loop
//converge to proceed lockstep execution
/*00a0*/ NOP;
// ===== Unlock =====
/*00b0*/ LDSLK P0, RZ, [R0];
/*00b8*/ @P0 MOV32I R2, 0x1;
/*00c0*/ @P0 STSUL [R0], R2;
/*00c8*/ @!P0 BRA 0xb0;"
    ));
}

#[test]
fn listing_4() {
    insta::assert_snapshot!(assembled(
        "// ===== Lock =====
/*0000*/ LDSLK P0, RZ, [R0];
// ===== Waitlock =====
/*0010*/ LDSLK P0, RZ, [R0];
/*0018*/ @!P0 BRA 0x10;
// ===== Unlock =====
/*0020*/ STSUL [R0], RZ;"
    ));
}

#[test]
fn listing_6() {
    insta::assert_snapshot!(assembled(
        "// ===== producer =====
/*0000*/ LDSLK P0, RZ, [R0]; //initialize
/*0010*/ STSUL [R0], R4; //store to channel and
//unlock
// ===== consumer =====
/*0100*/ LDSLK P0, R2, [R0]; //wait and load from
//channel
/*0108*/ @!P0 BRA 0x100; //spinning
/*0200*/ STSUL [R0], R2; //finalize"
    ));
}

#[test]
fn listing_8() {
    let text = "// producer-consumer
/*00a0*/ SSSY 0x110;
/*00a8*/ LDSLK P0, R2, [R0];
@P0 IADD R2, R2, 0x1; //critical section
/*0100*/ @P0 STSUL [R0], R2;
/*0108*/ @!P0 BRA 0xa8;";
    insta::assert_snapshot!(format!("{}\n{}", assembled(text), assembled(&text.replace("SSSY", "SSY"))));
}

#[test]
fn listing_9() {
    insta::assert_snapshot!(assembled(
        "// ===== Lock =====
//R0 is the same for all threads across the warp
/*0000*/ LDSLK P0, RZ, [R0];
// ===== Waitlock =====
//If any thread acquires the lock bit, continue
/*0010*/ LDSLK P0, RZ, [R0];
/*0018*/ VOTE.ANY RZ, P1, P0;
/*0020*/ @!P1 BRA 0x10;
// ===== Unlock =====
//Thread 0 in the warp releases the shared lock
/*0020*/ S2R R1, SR_LaneId; //Load lane_id
/*0028*/ ISETP.EQ P0, pt, R1, RZ, pt; //lane_id=0?
/*0030*/ @P0 STSUL [R0], RZ;"
    ));
}

#[test]
fn listing_13() {
    insta::assert_snapshot!(assembled(
        ".let (A[tid]) = [R5]
.let (A[tid-32]) = [R5+-0x80]
.let (wid) = R6
.let (independent_computation(tid)) = R4
/*0000*/ LDSLK P0,RZ,(A[tid]); //producer init locks
/*0008*/ BAR.RED.POPC RZ,RZ; //block barrier
/* ===== Reduction Phase ===== */
/*0100*/ ISETP.EQ P0,pt,(wid),RZ,pt;
/*0108*/ @P0 BRA 0x120; //warp_0 breaks
/*0110*/ LDSLK P1,R1,(A[tid-32]); //consumer waits
/*0118*/ !@P1 BRA 0x110;
/*0120*/ IADD R2,R1,(independent_computation(tid));
/*0128*/ STSUL (A[tid]),R2; //producer releases
/*0130*/ @!P0 STSUL (A[tid-32]),R1; //finalize"
    ));
}

#[test]
fn listing_15() {
    insta::assert_snapshot!(assembled(
        "/*00e8*/ LDSLK P0, RZ, [R7];//lock self
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
/*0168*/ @!P2 BRA 0x100;"
    ));
}
