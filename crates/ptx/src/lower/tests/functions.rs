//! Control flow, frames and calls.

use super::{listing, snapshot};

const HEAD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";

#[test]
fn branches_and_tables() {
    snapshot(
        "branches_and_tables",
        &listing(&format!(
            "{HEAD}.entry k(.param .u32 n) {{
            .reg .pred %p; .reg .u32 %r<3>;
            ld.param.u32 %r1, [n];
        $loop:
            add.u32 %r1, %r1, -1;
            setp.ne.u32 %p, %r1, 0;
            @%p bra $loop;
            $table: .branchtargets $a, $b, $end;
            brx.idx %r1, $table;
        $a: bra.uni $end;
        $b: @!%p exit;
        $end:
        }}"
        )),
    );
}

#[test]
fn frames_and_calls() {
    snapshot(
        "frames_and_calls",
        &listing(&format!(
            "{HEAD}
        .func (.param .b32 out) twice(.param .b32 a, .param .b64 b) {{
            .reg .b32 %r<3>; .local .align 16 .b8 buf[20];
            ld.param.b32 %r1, [a];
            st.local.b32 [buf+4], %r1;
            add.u32 %r2, %r1, %r1;
            st.param.b32 [out], %r2;
            ret;
        }}
        .func (.reg .u32 %out) plus(.reg .u32 %a, .reg .u64 %b) {{
            .reg .pred %p;
            setp.eq.u32 %p, %a, 0;
            @%p ret;
            add.u32 %out, %a, 1;
        }}
        .entry k() {{
            .reg .b32 %r<4>; .reg .b64 %rd<4>; .local .align 8 .b8 depot[8];
            {{
                .param .b32 p0; .param .b64 p1; .param .b32 ret0;
                st.param.b32 [p0], %r1;
                st.param.b64 [p1], %rd1;
                call.uni (ret0), twice, (p0, p1);
                ld.param.b32 %r2, [ret0];
            }}
            call (%r3), plus, (%r2, 5);
            call (_), plus, (1, %rd1);
            mov.u64 %rd2, twice;
            {{
                .param .b32 p0; .param .b64 p1; .param .b32 ret0;
                proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);
                call (ret0), %rd2, (p0, p1), proto;
            }}
            exit;
        }}"
        )),
    );
}

#[test]
fn built_in_functions() {
    snapshot(
        "built_in_functions",
        &listing(&format!(
            "{HEAD}
        .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
        .extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
        .entry k() {{
            .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .pred %p;
            {{
                .param .b64 p0; .param .b64 p1; .param .b32 ret0;
                st.param.b64 [p0], %rd1;
                st.param.b64 [p1], %rd2;
                call.uni (ret0), vprintf, (p0, p1);
                ld.param.b32 %r1, [ret0];
            }}
            {{
                .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
                call.uni __assertfail, (p0, p1, p2, p3, p4);
            }}
        }}"
        )),
    );
}

#[test]
fn calls_that_cannot_be() {
    let mut messages = String::new();
    for (declaration, call) in [
        (".extern .func f();", "call f;"),
        (".extern .func (.param .b32 r) cudaDeviceSynchronize();", "call (_), cudaDeviceSynchronize;"),
        (".func f(.param .b32 a) { ret; }", "call f;"),
        (".func f(.param .b32 a) { ret; }", "call f, (%rd1);"),
        (".func f(.param .b32 a) { ret; }", "call f, (%p1);"),
        (".entry f() { ret; }", "call f;"),
        ("", "call %rd1, ();"),
        (".extern .func f();", "mov.u64 %rd1, f;"),
    ] {
        let text =
            format!("{HEAD}{declaration} .entry k() {{ .reg .b64 %rd1; .reg .pred %p1; {call} ret; }}");
        let error = super::load(&text).unwrap_err();
        messages += &format!("{declaration} {call}\n        {}\n", error.diagnostics[0].message);
    }
    snapshot("calls_that_cannot_be", &messages);
}

/// The names of the kernels that are not refused; or all errors.
fn good_kernels(text: &str) -> Result<Vec<String>, String> {
    let module = crate::load("test.ptx", text).map_err(|error| error.to_string())?;
    let good = module.functions.iter().filter(|f| f.is_kernel && f.refusals.is_empty());
    Ok(good.map(|f| f.name.clone()).collect())
}

#[test]
fn what_is_unknown_refuses_its_kernel_only() {
    let head = ".version 8.6\n.target sm_90\n.address_size 64\n";
    for unknown in [
        "foo.bar r0;",
        "add.u33 r0, r0, 1;",
        "add.newer.u32 r0, r0, 1;",
        "add.u32 r0, r0, 1, 2;",
        "ld.global.v3.u32 {r0, r1, r2}, [d];",
        "mma.sync.aligned.m16n8k512.row.col.f16.f16.f16.f16 {r0}, {r0}, {r0}, {r0};",
        "fence.acquire.sync_restrict::global.cluster;",
        "st.async.mmio.release.sys.global.b32 [d], r0;",
    ] {
        let text = format!(
            "{head}.visible .entry good() {{ ret; }}
            .visible .entry bad() {{ .reg .b32 r<4>; .reg .b64 d; {unknown} ret; }}"
        );
        assert_eq!(good_kernels(&text).as_deref(), Ok(&["good".to_string()][..]), "{unknown}");
    }
    for wrong in ["add.u32 r0, d, 1;", "fence;", "add.u32 r0 r1;"] {
        let text = format!(
            "{head}.visible .entry good() {{ ret; }}
            .visible .entry bad() {{ .reg .b32 r<4>; .reg .b64 d; {wrong} ret; }}"
        );
        assert!(good_kernels(&text).is_err(), "{wrong}");
    }
}

#[test]
fn instructions_need_their_target_and_version() {
    let mma =
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {r0, r1}, {r0, r1, r2, r3}, {r0, r1}, {r0, r1};";
    for (version, target, instruction, needs) in [
        ("8.0", "sm_90", "wgmma.fence.sync.aligned;", "is for sm_90a only, the target is sm_90"),
        ("8.6", "sm_100a", "wgmma.fence.sync.aligned;", "is for sm_90a only, the target is sm_100a"),
        ("8.0", "sm_90a", "wgmma.fence.sync.aligned;", ""),
        ("7.8", "sm_80", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [r0], {r1};", "needs sm_90 or later"),
        ("7.8", "sm_90", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [r0], {r1};", ""),
        ("8.0", "sm_75", mma, "needs sm_80 or later, the target is sm_75"),
        ("6.5", "sm_80", mma, "needs PTX 7.0, this is 6.5"),
        ("8.0", "sm_80", mma, ""),
        ("8.6", "sm_90", "cvt.rn.satfinite.tf32.f32 r0, f0;", "needs sm_100 or later"),
        ("8.6", "sm_100", "cvt.rn.satfinite.tf32.f32 r0, f0;", ""),
        ("8.6", "sm_90", "cvt.rna.satfinite.tf32.f32 r0, f0;", ""),
        ("8.6", "sm_100", "max.f32 f0, f1, f2, f3;", "with three inputs needs PTX 8.8, this is 8.6"),
        ("8.6", "sm_90", "ld.global.v4.b64 {d, d, d, d}, [d];", "needs sm_100 or later"),
        ("8.0", "sm_80", "mbarrier.expect_tx.relaxed.cta.shared.b64 [r0], 8;", "needs sm_90 or later"),
        ("6.0", "sm_80", "redux.sync.add.s32 r0, r1, -1;", "needs PTX 7.0, this is 6.0"),
        ("8.0", "sm_90", "setmaxnreg.inc.sync.aligned.u32 240;", "needs sm_90a"),
        ("8.6", "sm_100f", "setmaxnreg.inc.sync.aligned.u32 240;", ""),
    ] {
        let text = format!(
            ".version {version}\n.target {target}\n.address_size 64
            .entry k() {{ .reg .b32 r<4>; .reg .b64 d; .reg .f32 f<4>; {instruction} ret; }}"
        );
        match good_kernels(&text) {
            Ok(_) => assert_eq!(needs, "", "{instruction}"),
            Err(error) => assert!(!needs.is_empty() && error.contains(needs), "{instruction}: {error}"),
        }
    }
}

#[test]
fn functions_without_a_body_are_told_by_name() {
    for (function, why) in [
        ("__cuda_syscall_cnpv2GetParameterBufferV2", "a kernel cannot launch others"),
        ("cudaLaunchDeviceV2", "a kernel cannot launch others"),
        ("elsewhere", "is it in another file"),
    ] {
        let text = format!("{HEAD}.extern .func {function}(); .entry k() {{ call {function}, (); ret; }}");
        let error = good_kernels(&text).unwrap_err();
        assert!(error.contains(why) && error.contains(&format!("`{function}`")), "{error}");
    }
}
