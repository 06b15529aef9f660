//! Profiles of timed launches: that they account for everything the report counts, and what they say of small kernels
//! whose waits are known.

use warploom::profile::{Profile, WordProfile};
use warploom::{Bows, Chip, Device, Launch, Report, SimOptions, Timing, args};

const SPINLOCK: &str = warploom_kernels::text!("spinlock.ptx");
const REDUCE: &str = warploom_kernels::text!("reduce.ptx");
const VECADD: &str = warploom_kernels::text!("vecadd.ptx");
const HASHTABLE: &str = warploom_kernels::text!("hashtable.ptx");

/// A lock in shared memory, taken by one thread of each warp.
const SHARED_LOCK: &str = "
.version 6.3
.target sm_70
.address_size 64
.visible .entry shared_lock()
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .shared .align 4 .u32 count;
    .shared .align 64 .u32 lock;
    mov.u32 %r1, %tid.x;
    and.b32 %r1, %r1, 31;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra done;
again:
    atom.shared.cas.b32 %r2, [lock], 0, 1;
    setp.ne.s32 %p2, %r2, 0;
    @%p2 bra again;
    ld.volatile.shared.u32 %r3, [count];
    add.s32 %r4, %r3, 1;
    st.volatile.shared.u32 [count], %r4;
    atom.shared.exch.b32 %r5, [lock], 0;
done:
    ret;
}";

/// Each CTA's only thread holds a lock for 2,000 ns, once.
const LONG_HOLD: &str = "
.version 6.3
.target sm_70
.address_size 64
.visible .entry hold(.param .u64 lock)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [lock];
again:
    atom.global.cas.b32 %r1, [%rd1], 0, 1;
    setp.ne.s32 %p1, %r1, 0;
    @%p1 bra again;
    nanosleep.u32 2000;
    atom.global.exch.b32 %r2, [%rd1], 0;
    ret;
}";

/// The second of two warps sleeps for 3,000 ns before it arrives.
const LATE: &str = "
.version 6.3
.target sm_70
.address_size 64
.visible .entry late()
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 32;
    @%p1 bra meet;
    nanosleep.u32 3000;
meet:
    bar.sync 0;
    ret;
}";

fn device(chip: &str, set: &[&str], timing: Timing) -> Device {
    let set: Vec<String> = set.iter().map(|s| s.to_string()).collect();
    Device::sim_with(Chip::load(chip, &set).unwrap(), SimOptions { timing, ..SimOptions::default() })
}

fn profiled() -> Timing {
    Timing { threads: 1, profile: true, ..Timing::default() }
}

/// 256 threads of two SMs increment a counter twice each, under one lock.
fn spinlock(chip: &str, set: &[&str], timing: Timing) -> Report {
    let mut gpu = device(chip, set, timing);
    let kernel = gpu.load_ptx(SPINLOCK).unwrap().kernel("spinlock_inc").unwrap();
    let (lock, counter) = (gpu.zeros::<u32>(1).unwrap(), gpu.zeros::<u32>(1).unwrap());
    let report = gpu.launch(&kernel, Launch::grid(4).block(64), args![&lock, &counter, 2u32]).unwrap();
    assert_eq!(counter.read(&gpu).unwrap(), [512]);
    report
}

fn hashtable(timing: Timing) -> Report {
    let (keys, buckets) = (2_000u32, 16u32);
    let mut gpu = device("gtx480", &["sm.count=4"], timing);
    let kernel = gpu.load_ptx(HASHTABLE).unwrap().kernel("hashtable_insert").unwrap();
    let all = gpu.buffer(&(0..keys).map(|key| key.wrapping_mul(2_654_435_761)).collect::<Vec<_>>()).unwrap();
    let pool = gpu.zeros::<u32>(2 * keys as usize).unwrap();
    let heads = gpu.buffer(&vec![u32::MAX; buckets as usize]).unwrap();
    let locks = gpu.zeros::<u32>(buckets as usize).unwrap();
    let launch = Launch::grid(8).block(128);
    gpu.launch(&kernel, launch, args![&all, keys, &pool, &heads, &locks, buckets]).unwrap()
}

fn without_arguments(chip: &str, text: &str, kernel: &str, launch: Launch) -> Report {
    let mut gpu = device(chip, &["sm.count=2"], profiled());
    let kernel = gpu.load_ptx(text).unwrap().kernel(kernel).unwrap();
    gpu.launch(&kernel, launch, args![]).unwrap()
}

fn reduce() -> Report {
    let mut gpu = device("gtx480", &["sm.count=2"], profiled());
    let module = gpu.load_ptx(REDUCE).unwrap();
    let kernel = module.kernel(&module.kernel_names()[0]).unwrap();
    let values = gpu.buffer(&vec![1u32; 4096]).unwrap();
    let sum = gpu.zeros::<u32>(1).unwrap();
    gpu.launch(&kernel, Launch::grid(16).block(256), args![&values, &sum, 4096u32]).unwrap()
}

fn vecadd() -> Report {
    let mut gpu = device("gtx480", &["sm.count=2"], profiled());
    let kernel = gpu.load_ptx(VECADD).unwrap().kernel("vecadd").unwrap();
    let [a, b, c] = [(); 3].map(|()| gpu.zeros::<f32>(4096).unwrap());
    gpu.launch(&kernel, Launch::grid(16).block(256), args![&a, &b, &c, 4096u32]).unwrap()
}

fn profile(report: &Report) -> &Profile {
    report.profile.as_ref().unwrap()
}

fn lock(report: &Report) -> &WordProfile {
    &profile(report).words[0]
}

/// Everything that the report counts is in the profile, once.
#[track_caller]
fn accounts_for_all(report: &Report) {
    let profile = profile(report);
    let stalls = report.stalls.as_ref().unwrap();
    let (mut executions, mut lanes, mut cycles) = (0, 0, 0);
    for instruction in &profile.instructions {
        let counts = &instruction.counts;
        executions += counts.executions;
        lanes += counts.thread_executions;
        cycles += counts.warp_cycles;
        assert_eq!(counts.time.sum(), counts.warp_cycles);
    }
    assert_eq!((executions, lanes), (report.warp_insts, report.thread_insts));
    assert_eq!(cycles, report.warp_cycles.unwrap());
    assert_eq!(profile.lines.iter().map(|line| line.counts.warp_cycles).sum::<u64>(), cycles);
    assert_eq!(profile.lines.iter().map(|line| line.counts.executions).sum::<u64>(), executions);

    // Spinning is taken out of the other categories, and nothing else is.
    let of = |name: &str| profile.time.of(name);
    let mut taken = 0;
    for (name, &all) in stalls {
        assert!(of(name) <= all, "{name}: {} of {all}", of(name));
        taken += all - of(name);
        if ["barrier", "backed_off", "lock_queue", "sleeping", "warp_sync", "drain"].contains(name) {
            assert_eq!(of(name), all, "{name}");
        }
    }
    assert_eq!(of("spinning"), taken);

    let locks = report.locks.as_ref().unwrap();
    let words = |of: fn(&WordProfile) -> u64| profile.words.iter().map(of).sum::<u64>();
    assert_eq!(words(|word| word.acquired), locks.acquired);
    assert_eq!(words(|word| word.failed_intra), locks.failed_intra);
    assert_eq!(words(|word| word.failed_inter), locks.failed_inter);
    assert_eq!(words(|word| word.wait.count), locks.acquired);
    let failed: u64 = profile.instructions.iter().map(|i| i.counts.failed_polls).sum();
    assert_eq!(failed, locks.failed_intra + locks.failed_inter + locks.wait_fail);

    let l1 = report.l1.as_ref().unwrap();
    let pieces = ["hits", "misses", "merges", "bypasses", "stores", "atomics", "shared_accesses"];
    let pieces: u64 = pieces.iter().map(|name| l1[name]).sum();
    // Of constants that are on their way already the report counts nothing.
    let counted = profile.instructions.iter().filter(|i| !i.text.contains("ld.param"));
    assert_eq!(counted.map(|i| i.counts.transactions).sum::<u64>(), pieces);
}

#[test]
fn every_cycle_and_every_try_is_accounted_for() {
    for policy in ["lrr", "gto", "cawa"] {
        for bows in [Bows::default(), Bows::on()] {
            let timing = Timing { policy: Some(policy.to_string()), bows: bows.clone(), ..profiled() };
            accounts_for_all(&spinlock("gtx480", &["sm.count=2"], timing));
        }
    }
    accounts_for_all(&spinlock("h200", &["sm.count=2"], profiled()));
    accounts_for_all(&spinlock("gtx480", &["sm.count=2", "lock_queue.mode=ideal"], profiled()));
    accounts_for_all(&hashtable(profiled()));
    accounts_for_all(&reduce());
    accounts_for_all(&vecadd());
    for chip in ["gtx480", "gtx570", "h200"] {
        accounts_for_all(&without_arguments(chip, SHARED_LOCK, "shared_lock", Launch::grid(4).block(128)));
    }
}

#[test]
fn a_profile_changes_nothing_and_does_not_depend_on_host_threads() {
    let plain = hashtable(Timing { threads: 1, ..Timing::default() });
    let [one, two] = [1, 2].map(|threads| hashtable(Timing { threads, ..profiled() }));
    assert_eq!(plain.profile, None);
    assert_eq!((plain.cycles, &plain.stalls, &plain.locks), (one.cycles, &one.stalls, &one.locks));
    assert_eq!(one.profile, two.profile);
}

#[test]
fn iterations_that_fail_are_spinning() {
    let report = spinlock("gtx480", &["sm.count=2"], profiled());
    let time = &profile(&report).time;
    let of = |name: &str| time.of(name);
    assert!(of("spinning") > report.warp_cycles.unwrap() / 4, "{time:?}");
    // Only instructions of the spin loop spin, and the one thread that takes the lock each time does not.
    for instruction in &profile(&report).instructions {
        if instruction.text.contains("exch") || instruction.text.contains("ret") {
            assert_eq!(instruction.counts.time.of("spinning"), 0, "{}", instruction.text);
        }
    }
    // A single thread never fails.
    let mut gpu = device("gtx480", &["sm.count=1"], profiled());
    let kernel = gpu.load_ptx(SPINLOCK).unwrap().kernel("spinlock_inc").unwrap();
    let (lock, counter) = (gpu.zeros::<u32>(1).unwrap(), gpu.zeros::<u32>(1).unwrap());
    let alone = gpu.launch(&kernel, Launch::grid(1).block(1), args![&lock, &counter, 5u32]).unwrap();
    assert_eq!(profile(&alone).time.of("spinning"), 0);
    assert!(profile(&alone).verdict.iter().all(|finding| !finding.rule.contains("lock")));
}

#[test]
fn locks_tell_how_long_they_are_held_and_handed_over() {
    let mut gpu = device("gtx480", &["sm.count=4"], profiled());
    let kernel = gpu.load_ptx(LONG_HOLD).unwrap().kernel("hold").unwrap();
    let word = gpu.zeros::<u32>(4).unwrap();
    let report = gpu.launch(&kernel, Launch::grid(4).block(1), args![&word]).unwrap();
    accounts_for_all(&report);
    let held = 2000 * gpu.chip().unwrap().clock.core_mhz as u64 / 1000;
    let lock = lock(&report);
    assert_eq!((lock.acquired, lock.hold.count, lock.hand_off.count), (4, 4, 3));
    assert_eq!((lock.longest_queue, lock.failed_intra), (3, 0));
    assert!(lock.hold.mean() >= held && lock.hold.longest_cycles < 2 * held, "{lock:?}");
    // The last one waits for the other three.
    assert!(lock.wait.longest_cycles >= 3 * held, "{lock:?}");
    assert_eq!(lock.longest_waits[0].0, lock.wait.longest_cycles);
    assert!(lock.hand_off.longest_cycles < held, "{lock:?}");
    assert_eq!(lock.taken_at, [("<ptx>:12".into(), 4)]);
    assert_eq!(lock.released_at, [("<ptx>:16".into(), 4)]);
    let wait = &profile(&report).waits[0];
    assert_eq!((&*wait.waits_at, wait.written_at.as_deref()), ("<ptx>:12", Some("<ptx>:16")));
    assert_eq!(wait.wait.count, 3);
    assert_eq!(profile(&report).verdict[0].rule, "serial_lock");
}

#[test]
fn flags_tell_who_waits_for_whom() {
    let mut gpu = device("gtx480", &["sm.count=2"], profiled());
    let kernel = gpu.load_ptx(SPINLOCK).unwrap().kernel("crosscta").unwrap();
    let (flag, out) = (gpu.zeros::<u32>(1).unwrap(), gpu.zeros::<u32>(2).unwrap());
    let report = gpu.launch(&kernel, Launch::grid(2).block(32), args![&flag, &out]).unwrap();
    accounts_for_all(&report);
    let [wait] = &profile(&report).waits[..] else { panic!("{:?}", profile(&report).waits) };
    let text = |line: &str| {
        let number: usize = line.rsplit_once(':').unwrap().1.parse().unwrap();
        SPINLOCK.lines().nth(number - 1).unwrap().trim().to_string()
    };
    assert!(text(&wait.waits_at).starts_with("ld.volatile.global"), "{wait:?}");
    assert!(text(wait.written_at.as_ref().unwrap()).starts_with("st.volatile.global"), "{wait:?}");
    assert_eq!((wait.wait.count, wait.words), (1, 1));
    let word = lock(&report);
    assert_eq!((word.acquired, word.satisfied, word.longest_queue), (0, wait.wait, 1));
}

#[test]
fn barriers_tell_how_far_apart_warps_arrive() {
    let report = without_arguments("gtx480", LATE, "late", Launch::grid(2).block(64));
    accounts_for_all(&report);
    let [barrier] = &profile(&report).barriers[..] else { panic!("{:?}", profile(&report).barriers) };
    let asleep = 3000 * 700 / 1000;
    assert_eq!(barrier.skew.count, 2);
    assert!((asleep - 100..asleep + 500).contains(&barrier.skew.mean()), "{barrier:?}");
    // The wait is charged to the barrier and not to what follows.
    let waits = |i: &&warploom::profile::Instruction| i.counts.time.of("barrier") > 0;
    let waiting: Vec<&str> = profile(&report).instructions.iter().filter(waits).map(|i| &*i.text).collect();
    assert_eq!(waiting, ["bar.sync 0"]);
}

#[test]
fn a_profile_can_be_read_back() {
    let timing = Timing { over_time: true, ..profiled() };
    for report in [spinlock("gtx480", &["sm.count=2"], timing.clone()), hashtable(timing)] {
        let profile = profile(&report);
        let text = serde_json::to_string(profile).unwrap();
        let mut read: Profile = serde_json::from_str(&text).unwrap();
        assert_eq!((read.over_time.take(), read.longest_back_off_cycles), (None, 0));
        let course = serde_json::to_string(&profile.over_time).unwrap();
        read.over_time = serde_json::from_str(&course).unwrap();
        read.longest_back_off_cycles = profile.longest_back_off_cycles;
        assert_eq!(read, *profile);
    }
}

#[test]
fn profiles_of_several_launches_add_up() {
    let (one, other) = (reduce(), spinlock("gtx480", &["sm.count=2"], profiled()));
    let mut sum = profile(&one).clone();
    sum.merge([profile(&other)]);
    assert_eq!(sum.warp_cycles(), one.warp_cycles.unwrap() + other.warp_cycles.unwrap());
    sum.merge([profile(&other)]);
    assert_eq!(sum.instructions.len(), profile(&one).instructions.len() + profile(&other).instructions.len());
    let locks = |report: &Report| report.locks.as_ref().unwrap().acquired;
    assert_eq!(sum.words.iter().map(|word| word.acquired).sum::<u64>(), locks(&one) + 2 * locks(&other));
}

#[test]
fn time_over_the_launch_adds_up_to_the_profile() {
    let over_time = || Timing { over_time: true, ..profiled() };
    let locked = || spinlock("gtx480", &["sm.count=2"], over_time());
    let backed_off = Timing { bows: Bows::on(), ..over_time() };
    for report in [locked(), hashtable(over_time()), spinlock("h200", &["sm.count=2"], backed_off)] {
        let profile = profile(&report);
        let course = profile.over_time.as_ref().unwrap();
        for (at, name) in course.categories.iter().enumerate() {
            let sum: u64 = course.sms.iter().flatten().map(|interval| interval[at]).sum();
            assert_eq!(sum, profile.time.of(name), "{name}");
        }
        // No more warps than an SM has room for, in no interval after the launch.
        let most = course.interval_cycles * 64;
        assert!(course.sms.iter().flatten().all(|interval| interval.iter().sum::<u64>() <= most));
        let intervals = report.cycles.div_ceil(course.interval_cycles) as usize;
        assert!(course.sms.iter().all(|sm| sm.len() <= intervals));
        assert_eq!(course.sms.iter().map(Vec::len).max(), Some(intervals));
    }
    // The course changes nothing else, and two launches follow each other.
    let (with, without) = (locked(), spinlock("gtx480", &["sm.count=2"], profiled()));
    let mut twice = profile(&with).clone();
    let plain = Profile { over_time: None, ..twice.clone() };
    assert_eq!((with.cycles, &plain), (without.cycles, profile(&without)));
    twice.merge([profile(&with)]);
    let course = twice.over_time.as_ref().unwrap();
    let spinning = course.categories.iter().position(|name| *name == "spinning").unwrap();
    let sum: u64 = course.sms.iter().flatten().map(|interval| interval[spinning]).sum();
    assert_eq!(sum, 2 * plain.time.of("spinning"));
}
