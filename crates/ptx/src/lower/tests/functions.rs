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
