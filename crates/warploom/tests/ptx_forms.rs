//! Forms of PTX that few compilers write: 128-bit and vector registers, predicates and lists of any length as
//! arguments, `%r1+4` as an operand, memory from the stack, reductions with NaN. On both models.

use warploom::{Chip, Device, Launch, SimModel, SimOptions, args};

const HEADER: &str = ".version 8.6\n.target sm_90\n.address_size 64\n";

/// Runs kernel `k(in, out)` with one CTA of `threads` on both models. Returns what it leaves in `out`.
fn run(ptx: &str, threads: u32, input: &[u32], words: usize) -> Vec<u32> {
    let mut results = [SimModel::Functional, SimModel::Timing].map(|model| {
        let chip = Chip::load("h200", &["sm.count=1".into()]).unwrap();
        let mut gpu = Device::sim_with(chip, SimOptions { model, ..SimOptions::default() });
        let kernel = gpu.load_ptx(&format!("{HEADER}{ptx}")).unwrap().kernel("k").unwrap();
        let (input, out) = (gpu.buffer(input).unwrap(), gpu.zeros::<u32>(words).unwrap());
        gpu.launch(&kernel, Launch::grid(1).block(threads), args![&input, &out]).unwrap();
        out.read(&gpu).unwrap()
    });
    assert_eq!(results[0], results[1], "the models differ");
    std::mem::take(&mut results[0])
}

/// What is said about a text that cannot be loaded.
fn refusal(ptx: &str) -> String {
    let mut gpu = Device::sim("h200").unwrap();
    gpu.load_ptx(&format!("{HEADER}{ptx}")).map(|_| ()).unwrap_err().to_string()
}

/// The beginning of a kernel: %in and %out are its parameters, %t is the thread.
const BEGIN: &str = ".visible .entry k(.param .u64 in, .param .u64 out) {
    .reg .b64 %in, %out, %o; .reg .b32 %t, %r<20>; .reg .b64 %d<10>; .reg .b128 %q<6>; .reg .pred %p<6>;
    .reg .f32 %f<10>;
    ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;
";

#[test]
fn registers_of_128_bits() {
    let ptx = format!(
        "{BEGIN}
        ld.global.b128 %q0, [%in];
        mov.b128 %q1, %q0;
        mov.b128 {{%d0, %d1}}, %q1;
        mov.b128 %q2, {{%d1, %d0}};
        st.global.b128 [%out], %q2;
        mov.b128 {{%r0, _, %r2, %r3}}, %q0;
        mov.b128 %q3, {{%r3, %r2, 7, %r0}};
        st.global.b128 [%out+16], %q3;
        mov.b128 %q4, -2;
        st.global.b128 [%out+32], %q4;
        ld.global.s32 %q4, [%in];
        st.global.b128 [%out+48], %q4;
        ld.global.b32 %q4, [%in];
        st.global.b128 [%out+64], %q4;
        st.global.b64 [%out+80], %q0;
        ret; }}"
    );
    let found = run(&ptx, 1, &[0x8000_0001, 2, 3, 4], 22);
    let ones = u32::MAX;
    let wanted = [
        [3, 4, 0x8000_0001, 2],
        [4, 3, 7, 0x8000_0001],
        [ones - 1, ones, ones, ones],
        [0x8000_0001, ones, ones, ones],
        [0x8000_0001, 0, 0, 0],
    ];
    assert_eq!(found[..20], wanted.concat());
    assert_eq!(found[20..], [0x8000_0001, 2]);
    let error = refusal(&format!("{BEGIN} add.u64 %q0, %q1, %q2; ret; }}"));
    assert!(error.contains("`%q1` is 128 bits wide") || error.contains("`%q0` is 128 bits wide"), "{error}");
    let error = refusal(&format!("{BEGIN} mov.b128 {{%r0, %r1}}, %q0; ret; }}"));
    assert!(error.contains("64 bits") || error.contains("32 bits wide"), "{error}");
}

/// Every thread adds 1 to the low and 3 to the high half, in one exchange: the halves stay together.
fn counter(space: &str, declaration: &str, at: &str) -> String {
    format!(
        "{BEGIN} {declaration}
        mov.b128 %q0, 0;
        setp.ne.u32 %p0, %t, 0;
        @!%p0 st{space}.b128 [{at}], %q0;
        bar.sync 0;
      again:
        ld.volatile{space}.v2.b64 {{%d0, %d1}}, [{at}];
        mov.b128 %q1, {{%d0, %d1}};
        add.u64 %d2, %d0, 1; add.u64 %d3, %d1, 3;
        mov.b128 %q2, {{%d2, %d3}};
        atom{space}.cas.b128 %q3, [{at}], %q1, %q2;
        mov.b128 {{%d4, %d5}}, %q3;
        setp.ne.u64 %p1, %d4, %d0; setp.ne.or.u64 %p1, %d5, %d1, %p1;
        @%p1 bra again;
        bar.sync 0;
        @%p0 bra done;
        ld{space}.b128 %q4, [{at}];
        st.global.b128 [%out+16], %q4;
        mov.b128 %q5, {{5, 6}};
        atom{space}.exch.b128 %q4, [{at}], %q5;
        st.global.b128 [%out+32], %q4;
        ld{space}.b128 %q4, [{at}];
        st.global.b128 [%out+48], %q4;
        // One half alone does not match.
        mov.b128 %q1, {{5, 7}};
        atom{space}.cas.b128 _, [{at}], %q1, %q2;
        ld{space}.b128 %q4, [{at}];
        st.global.b128 [%out+64], %q4;
      done:
        ret; }}"
    )
}

#[test]
fn sixteen_bytes_are_exchanged_as_one() {
    let kernels = [
        counter(".global", "", "%out"),
        counter(".shared", ".shared .align 16 .b8 word[16];", "word"),
        counter("", "", "%out"),
    ];
    for ptx in kernels {
        let found = run(&ptx, 96, &[0], 20);
        let sums = [96, 0, 3 * 96, 0];
        assert_eq!(found[4..], [sums, sums, [5, 0, 6, 0], [5, 0, 6, 0]].concat());
    }
}

#[test]
fn vectors_are_arguments_and_results() {
    let function = ".func (.reg .v2 .u32 both, .reg .u32 more) twice(.reg .u32 by, .reg .v4 .u16 v) {
        .reg .b32 a<4>;
        cvt.u32.u16 a0, v.x; cvt.u32.u16 a1, v.y; cvt.u32.u16 a2, v.z; cvt.u32.u16 a3, v.w;
        mad.lo.u32 both.x, a0, by, a1; mad.lo.u32 both.y, a2, by, a3; mov.u32 more, by; ret; }";
    let body = ".reg .v4 .u16 h; .reg .v2 .u32 d; .reg .u16 s<2>; ld.global.v4.u16 h, [%in];
        call (d, %r0), twice, (100, h); st.global.v2.u32 [%out], d; st.global.u32 [%out+8], %r0;
        mov.b16 s0, 1; mov.b16 s1, 2;
        call ({%r1, %r2}, %r0), twice, (10, {s1, s0, s0, s1}); st.global.u32 [%out+12], %r1;
        st.global.u32 [%out+16], %r2; ret; }";
    let ptx = BEGIN.replacen(".visible", &format!("{function}\n.visible"), 1) + body;
    let found = run(&ptx, 1, &[4 << 16 | 3, 6 << 16 | 5], 5);
    assert_eq!(found, [304, 506, 100, 21, 12]);
    let short = ptx.replace("(100, h)", "(100, d)");
    assert!(refusal(&short).contains("`twice` has 5 arguments, the call gives 3"), "{}", refusal(&short));
}

#[test]
fn vector_registers() {
    let ptx = format!(
        "{BEGIN} .reg .v4 .f32 v; .reg .v2 .b32 w<3>; .reg .v4 .u32 id;
        ld.global.v4.f32 v, [%in];
        add.f32 v.x, v.y, v.w;
        mov.f32 v.b, v.g;
        st.global.v4.f32 [%out], v;
        mov.v4.u32 id, %tid;
        mov.b64 %d0, {{id.x, 9}};
        mov.b64 w1, %d0;
        mov.v2.b32 w2, w1;
        mov.u32 w2.x, w1.y;
        st.global.v2.b32 [%out+16], w2;
        mov.b128 %q0, v;
        mov.b128 {{%d1, %d2}}, %q0;
        st.global.u64 [%out+24], %d1;
        ret; }}"
    );
    let floats = [1.0f32, 2.0, 3.0, 4.0].map(f32::to_bits);
    let wanted = [6.0f32, 2.0, 2.0, 4.0].map(f32::to_bits);
    let found = run(&ptx, 1, &floats, 8);
    assert_eq!(found[..4], wanted);
    assert_eq!(found[4..], [9, 9, wanted[0], wanted[1]]);
    for (line, message) in [
        (".reg .v4 .b64 a;", "at most 128 bits"),
        (".reg .v2 .pred a;", "no vectors of predicates"),
        (".reg .v2 .b32 a; mov.b32 %r0, a.z;", "no `.z`"),
        (".reg .v4 .f32 a; mov.f32 a, %f0;", "does not split"),
    ] {
        let error = refusal(&format!("{BEGIN} {line} ret; }}"));
        assert!(error.contains(message), "{line}\n{error}");
    }
}

#[test]
fn predicates_and_wide_registers_are_passed() {
    let ptx = format!(
        ".func (.reg .pred o, .reg .b128 r) f (.reg .pred i, .reg .b32 x, .reg .b128 y) {{
            .reg .b64 %a<2>; .reg .pred %p;
            setp.gt.u32 %p, x, 3;
            xor.pred o, i, %p;
            mov.b128 {{%a0, %a1}}, y;
            mov.b128 r, {{%a1, %a0}};
            ret;
        }}
        {BEGIN}
        setp.lt.u32 %p0, %t, 4;
        cvt.u64.u32 %d0, %t;
        mov.b128 %q0, {{%d0, 77}};
        call (%p1, %q1), f, (%p0, %t, %q0);
        selp.u32 %r0, 1, 0, %p1;
        mov.b128 {{%d1, %d2}}, %q1;
        cvt.u32.u64 %r1, %d1; cvt.u32.u64 %r2, %d2; mov.u32 %r3, 0;
        mul.wide.u32 %o, %t, 16; add.u64 %out, %out, %o;
        st.global.v4.u32 [%out], {{%r0, %r1, %r2, %r3}};
        ret; }}"
    );
    let found = run(&ptx, 8, &[0], 32);
    let wanted: Vec<u32> = (0..8).flat_map(|t| [1, 77, t, 0]).collect();
    assert_eq!(found, wanted);
}

#[test]
fn a_constant_is_added_to_an_operand() {
    let ptx = format!(
        "{BEGIN}
        ld.global.u32 %r0, [%in];
        st.global.u32 [%out], %r0+5;
        mov.u32 %r1, %r0+7;
        add.u32 %r1, %r1+1, %r0;
        st.global.u32 [%out+4], %r1;
        ret; }}"
    );
    assert_eq!(run(&ptx, 1, &[100], 2), [105, 208]);
    let error = refusal(&format!("{BEGIN} mov.f32 %f0, %f1+4; ret; }}"));
    assert!(error.contains("no constant added"), "{error}");
}

#[test]
fn lists_of_any_length_are_passed() {
    // The sum of `n` words, from `ld.param` with a constant and from an address in a register.
    let ptx = format!(
        ".func (.param .u32 r) sum (.param .u32 n, .param .align 8 .b8 list[]) {{
            .reg .u64 %a; .reg .u32 %n, %x, %s; .reg .pred %p; .local .align 8 .b8 room[64];
            ld.param.u32 %n, [n];
            mov.u32 %s, 0;
            st.local.u64 [room], 0; st.local.u64 [room+8], 0;
            setp.eq.u32 %p, %n, 0;
            @%p bra done;
            ld.param.u32 %s, [list+0];
            mov.u64 %a, list;
          again:
            add.u64 %a, %a, 4;
            sub.u32 %n, %n, 1;
            setp.eq.u32 %p, %n, 0;
            @%p bra done;
            ld.param.u32 %x, [%a];
            add.u32 %s, %s, %x;
            bra again;
          done:
            st.param.u32 [r], %s;
            ret;
        }}
        {BEGIN}
        {{ .param .u32 n; .param .align 8 .b8 v[12]; .param .u32 r;
          st.param.u32 [n], 3; st.param.u32 [v], %t; st.param.u32 [v+4], 10; st.param.u32 [v+8], 100;
          call (r), sum, (n, v); ld.param.u32 %r0, [r]; }}
        {{ .param .u32 n; .param .align 8 .b8 v[40]; .param .u32 r;
          st.param.u32 [n], 10; st.param.u32 [v+36], %r0;
          st.param.v4.u32 [v], {{1, 2, 3, 4}}; st.param.v4.u32 [v+16], {{5, 6, 7, 8}}; st.param.u32 [v+32], 9;
          mov.u64 %d0, sum;
          proto: .callprototype (.param .u32 _) _ (.param .u32 _, .param .align 8 .b8 _[]);
          call (r), %d0, (n, v), proto; ld.param.u32 %r1, [r]; }}
        {{ .param .u32 n; .param .u32 r;
          st.param.u32 [n], 0; call (r), sum, (n); ld.param.u32 %r2, [r]; }}
        mul.wide.u32 %o, %t, 12; add.u64 %out, %out, %o;
        st.global.u32 [%out], %r0; st.global.u32 [%out+4], %r1; st.global.u32 [%out+8], %r2;
        ret; }}"
    );
    let found = run(&ptx, 40, &[0], 120);
    let wanted: Vec<u32> = (0..40).flat_map(|t| [t + 110, t + 110 + 45, 0]).collect();
    assert_eq!(found, wanted);
    let error = refusal(".func f (.param .b8 a[], .param .u32 b) { ret; }\n.entry k() { ret; }");
    assert!(error.contains("only the last parameter"), "{error}");
}

/// Each thread takes 16 bytes per level, as many levels as its number, and writes to all; functions it calls take some,
/// too.
#[test]
fn memory_from_the_stack() {
    let ptx = format!(
        ".func (.reg .u32 r) inner (.reg .u32 n) {{
            .reg .u64 %a; .reg .u32 %x; .reg .u64 %size;
            mul.wide.u32 %size, n, 4;
            alloca.u64 %a, %size, 32;
            st.local.u32 [%a], n;
            ld.local.u32 r, [%a];
            ret;
        }}
        {BEGIN} .local .align 4 .b8 own[4];
        st.local.u32 [own], %t;
        stacksave.u64 %d5;
        mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u64 %d1, 0;
        setp.eq.u32 %p0, %t, 0;
        @%p0 bra last;
      again:
        alloca.u64 %d0, 16;
        st.local.u64 [%d0], %d1;
        st.local.u32 [%d0+8], %r0;
        mov.u64 %d1, %d0;
        add.u32 %r9, %r0, 1;
        call (%r8), inner, (%r9);
        add.u32 %r0, %r0, 1;
        setp.lt.u32 %p1, %r0, %t;
        @%p1 bra again;
        // Back along the list.
      sum:
        ld.local.u32 %r2, [%d1+8];
        add.u32 %r1, %r1, %r2;
        ld.local.u64 %d1, [%d1];
        setp.ne.u64 %p1, %d1, 0;
        @%p1 bra sum;
      last:
        stacksave.u64 %d6;
        stackrestore.u64 %d5;
        stacksave.u64 %d7;
        setp.eq.u64 %p2, %d5, %d7;
        selp.u32 %r3, 1, 0, %p2;
        ld.local.u32 %r4, [own];
        mul.wide.u32 %o, %t, 12; add.u64 %out, %out, %o;
        st.global.u32 [%out], %r1; st.global.u32 [%out+4], %r3; st.global.u32 [%out+8], %r4;
        ret; }}"
    );
    let found = run(&ptx, 20, &[0], 60);
    let wanted: Vec<u32> = (0..20u32).flat_map(|t| [t * t.saturating_sub(1) / 2, 1, t]).collect();
    assert_eq!(found, wanted);
}

#[test]
fn more_than_the_stack_has() {
    let ptx = format!("{HEADER}{BEGIN} alloca.u64 %d0, 0x100000000; st.local.u32 [%d0], 1; ret; }}");
    let mut gpu = Device::sim("h200").unwrap();
    let kernel = gpu.load_ptx(&ptx).unwrap().kernel("k").unwrap();
    let out = gpu.zeros::<u32>(1).unwrap();
    let error = gpu.launch(&kernel, Launch::grid(1).block(1), args![&out, &out]).unwrap_err().to_string();
    assert!(error.contains("stack"), "{error}");
    let error = refusal(&format!("{BEGIN} alloca.u64 %d0, 8, 3; ret; }}"));
    assert!(error.contains("not a power of two"), "{error}");
}

#[test]
fn reductions_of_floats() {
    let reduce = |words: &str| {
        format!("redux.sync.{words}.f32 %f1, %f0, -1; st.global.f32 [%out], %f1; add.u64 %out, %out, 4;")
    };
    let kinds = ["min", "max", "min.abs", "max.abs", "min.NaN", "max.NaN", "max.abs.NaN"];
    let all: String = kinds.iter().map(|kind| reduce(kind)).collect();
    let ptx = format!(
        "{BEGIN} mul.wide.u32 %o, %t, 4; add.u64 %in, %in, %o; ld.global.f32 %f0, [%in]; {all} ret; }}"
    );
    let mut values: Vec<f32> = (0..32).map(|i| (i as f32 - 20.0) * 1.5).collect();
    let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let found = run(&ptx, 32, &bits(&values), kinds.len());
    assert_eq!(found, bits(&[-30.0, 16.5, 0.0, 30.0, -30.0, 16.5, 30.0]));
    values[5] = -f32::NAN;
    let found = run(&ptx, 32, &bits(&values), kinds.len());
    assert_eq!(found[..4], bits(&[-30.0, 16.5, 0.0, 30.0]));
    assert_eq!(found[4..], [0x7fff_ffff; 3]);
    let error = refusal(&format!("{BEGIN} redux.sync.max.abs.u32 %r0, %r1, -1; ret; }}"));
    assert!(error.contains("`.abs` is not a modifier"), "{error}");
}

#[test]
fn smallest_and_largest_halves_of_vectors() {
    let ptx = format!(
        "{BEGIN} .reg .b16 %h<4>;
        ld.global.u16 %h0, [%in]; ld.global.u16 %h1, [%in+2]; ld.global.u32 %r0, [%in]; ld.global.u32 %r1, [%in+4];
        st.global.u32 [%out], %r1; st.global.u32 [%out+4], %r1; st.global.u32 [%out+8], %r1;
        st.global.u32 [%out+16], %r1;
        atom.global.min.noftz.v2.f16 {{%h2, %h3}}, [%out+16], {{%h0, %h1}};
        mov.b32 %r2, {{%h2, %h3}};
        st.global.u32 [%out+12], %r2;
        red.global.max.noftz.v2.f16x2 [%out], {{%r1, %r0}};
        red.global.max.noftz.v2.bf16 [%out+8], {{%h0, %h1}};
        ret; }}"
    );
    // Halves 1 and -2, then 3 and -1; as bf16 they are in the same order.
    let (first, second) = (0xc000_3c00, 0xbc00_4200);
    let found = run(&ptx, 1, &[first, second], 5);
    assert_eq!(found, [second, second, second, second, first]);
    let error = refusal(&format!("{BEGIN} red.global.min.v2.f32 [%out], {{%f0, %f1}}; ret; }}"));
    assert!(error.contains("PTX has no"), "{error}");
}

#[test]
fn bulk_copies_keep_the_smaller_half() {
    let ptx = format!(
        "{BEGIN} .shared .align 16 .b8 new[16];
        ld.global.v4.u32 {{%r0, %r1, %r2, %r3}}, [%in];
        st.shared.v4.u32 [new], {{%r0, %r1, %r2, %r3}};
        ld.global.v4.u32 {{%r0, %r1, %r2, %r3}}, [%in+16];
        st.global.v4.u32 [%out], {{%r0, %r1, %r2, %r3}};
        fence.proxy.async;
        cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f16 [%out], [new], 16;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        ret; }}"
    );
    // Halves 1, -2, 3, -1.
    let (first, second) = (0xc000_3c00, 0xbc00_4200);
    let found = run(&ptx, 1, &[first, second, first, second, second, first, first, second], 4);
    assert_eq!(found, [first, first, first, second]);
}
