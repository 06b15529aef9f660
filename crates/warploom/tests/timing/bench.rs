//! Kernels that time themselves, and the chips to run them on.

use warploom::{Buffer, Chip, Device, Launch, Report, SimOptions, Timing, args};

pub(crate) struct Bench {
    pub chip: Chip,
    pub gpu: Device,
}

impl Bench {
    /// A chip with `key=value` overrides, on one host thread. Its L2 is in one piece unless they say otherwise, so that
    /// every slice is equally far.
    pub(crate) fn new(chip: &str, set: &[&str]) -> Bench {
        let set = [&["l2.far_cycles=0"], set].concat();
        Bench::timed(chip, &set, Timing { threads: 1, ..Timing::default() })
    }

    /// Like [`Bench::new`], with other timing options.
    pub(crate) fn timed(chip: &str, set: &[&str], timing: Timing) -> Bench {
        let set: Vec<String> = set.iter().map(|assignment| assignment.to_string()).collect();
        let chip = Chip::load(chip, &set).unwrap();
        let gpu = Device::sim_with(chip.clone(), SimOptions { timing, ..SimOptions::default() });
        Bench { chip, gpu }
    }

    /// One SM of a chip with round-robin scheduling, so that throughput does not depend on which warp is served first.
    pub(crate) fn one_sm(chip: &str, set: &[&str]) -> Bench {
        Bench::new(chip, &[&["sm.count=1", "issue.policy=lrr"], set].concat())
    }

    /// Runs a kernel made by [`kernel`]. Returns what each thread left in `%r5`, and the report.
    pub(crate) fn run(
        &mut self,
        text: &str,
        (grid, block): (usize, usize),
        data: u64,
        n: usize,
    ) -> (Vec<u32>, Report) {
        let module = self.gpu.load_ptx(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let out = self.gpu.zeros::<u32>(grid * block).unwrap();
        let launch = Launch::grid(grid).block(block);
        let report = self.gpu.launch(module.kernel("bench").unwrap(), launch, args![&out, data, n as u32]);
        (out.read(&self.gpu).unwrap(), report.unwrap())
    }

    /// Cycles from one instruction of a chain to the next in a CTA of `threads`, measured as what 32 more of
    /// them take. `chain(n)` is a chain of n.
    pub(crate) fn step(
        &mut self,
        setup: &str,
        threads: usize,
        data: u64,
        chain: impl Fn(usize) -> String,
    ) -> f64 {
        let mut time = |n| f64::from(self.run(&timed(setup, &chain(n)), (1, threads), data, 0).0[0]);
        // 32 more fill exactly two lines of the instruction cache, so both chains are aligned alike.
        (time(48) - time(16)) / 32.0
    }

    /// How often per cycle all warps of a grid together execute `body`, in the long run.
    pub(crate) fn rate(&mut self, setup: &str, body: &str, (grid, block): (usize, usize), data: u64) -> f64 {
        let text = repeated(setup, body);
        let warps = grid * block.div_ceil(self.chip.sm.warp_lanes as usize);
        let mut time = |n| self.run(&text, (grid, block), data, n).1.cycles as f64;
        let (few, many) = (20, 80);
        let (short, long) = (time(few), time(many));
        (warps * (many - few)) as f64 / (long - short)
    }

    /// A ring of `count` pointers, `stride` bytes apart, each pointing to the next.
    pub(crate) fn ring(&mut self, count: usize, stride: usize) -> Buffer<u64> {
        let buffer = self.gpu.zeros::<u64>(((count - 1) * stride + 128) / 8).unwrap();
        for at in 0..count {
            let next = buffer.address() + ((at + 1) % count * stride) as u64;
            buffer.write_range(&mut self.gpu, at * stride / 8, &[next]).unwrap();
        }
        buffer
    }

    /// Cycles from one load of a pointer chase to the next.
    pub(crate) fn chase(&mut self, load: &str, ring: &Buffer<u64>) -> f64 {
        self.step("", 1, ring.address(), |n| lines(n, &format!("ld.{load}.u64 %rd1, [%rd1];")))
    }
}

pub(crate) fn lines(n: usize, line: &str) -> String {
    format!("{line}\n").repeat(n)
}

/// A kernel `bench(out, data, n)` around code that finds `data` in `%rd1`, `n` in `%r0`, its thread in `%r1`,
/// its CTA in `%r2` and its number in the grid in `%r4`, and leaves its result in `%r5`. `words` is 16 kB of
/// shared memory, `zero` a variable in constant memory.
pub(crate) fn kernel(code: &str) -> String {
    format!(
        "
.version 7.0
.target sm_70
.address_size 64
.const .align 8 .u64 zero = 0;
.shared .align 16 .b8 words[16384];
.visible .entry bench(.param .u64 out, .param .u64 data, .param .u32 n)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<32>;
    .reg .b64 %rd<8>;
    .reg .f32 %f<8>;
    .reg .f64 %fd<4>;
    ld.param.u64 %rd0, [out];
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %rd2, %r4, 4;
    add.u64 %rd0, %rd0, %rd2;
    mov.u32 %r5, 0;
    {code}
    st.global.u32 [%rd0], %r5;
    ret;
}}"
    )
}

/// A kernel that runs `body` three times and returns the cycles of the last time. By then caches are warm, and
/// what is still in flight when it begins does not depend on the length of `body`.
pub(crate) fn timed(setup: &str, body: &str) -> String {
    kernel(&format!(
        "{setup}
    mov.u32 %r6, 0;
AGAIN:
    mov.u32 %r7, %clock;
    {body}
    mov.u32 %r5, %clock;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p0, %r6, 3;
    @%p0 bra AGAIN;
    sub.u32 %r5, %r5, %r7;"
    ))
}

/// A kernel that runs `body` n times.
pub(crate) fn repeated(setup: &str, body: &str) -> String {
    kernel(&format!(
        "{setup}
AGAIN:
    {body}
    sub.u32 %r0, %r0, 1;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra AGAIN;"
    ))
}

/// Asserts that a rate comes near its limit but does not exceed it.
#[track_caller]
pub(crate) fn near(what: &str, rate: f64, limit: f64, least: f64) {
    let share = rate / limit;
    println!("{what}: {rate:.3} of {limit:.3}, {:.1} %", 100.0 * share);
    assert!(share >= least, "{what}: {rate:.3} is less than {least} of {limit:.3}");
    // The two runs that a rate is computed from end slightly differently.
    assert!(share <= 1.03, "{what}: {rate:.3} is more than {limit:.3}");
}
