//! Host threads that work on one launch together.
//!
//! A window of the machine is some microseconds of work, much less than it takes to wake a thread. So the threads of a
//! crew stay awake: each spins at its post until it gets a job, does it, and waits for the next. On a busy host a
//! thread may not run in time; then the leader does its job. Where windows are too short to be shared there is no crew,
//! and the threads sleep ([`Pace`]).

mod deal;
mod held;
mod pace;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

pub(crate) use crate::time::machine::crew::deal::{Balance, Dealt, Lent};
pub(crate) use crate::time::machine::crew::held::Held;
pub(crate) use crate::time::machine::crew::pace::Pace;

/// Polls of a post before a waiting thread yields the processor.
const LOOKS: u32 = 300;

/// Polls before it sleeps between them: the leader is busy with something else.
const LOOKS_AWAKE: u32 = 3000;
const NAP: Duration = Duration::from_micros(100);

/// No job, or one that the leader has taken back.
const EMPTY: u8 = 0;
const GIVEN: u8 = 1;
const BEGUN: u8 = 2;
const DONE: u8 = 3;
const CLOSED: u8 = 4;

/// Where a job is handed to a thread and back.
struct Post<J> {
    state: Apart<AtomicU8>,
    job: Apart<Mutex<J>>,
}

/// Something on cache lines of its own (hosts fetch them in pairs): a thread polls its state all the time, and others
/// would wait for the line with each write to what lies beside it.
#[repr(align(128))]
struct Apart<T>(T);

impl<J> Post<J> {
    /// Waits until the post is in a state other than `state`; returns the new state.
    fn leaves(&self, state: u8) -> u8 {
        let mut looks = 0;
        loop {
            match self.state.0.load(Ordering::Acquire) {
                found if found != state => return found,
                _ if looks < LOOKS => std::hint::spin_loop(),
                _ if looks < LOOKS_AWAKE => std::thread::yield_now(),
                _ => std::thread::sleep(NAP),
            }
            looks = looks.saturating_add(1);
        }
    }

    /// Moves from one state to another. Returns false if it is not in state `from`.
    fn moves(&self, from: u8, to: u8) -> bool {
        self.state.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Does jobs until the post is closed.
    fn serve(&self, work: &impl Fn(&mut J)) {
        /// Marks the job as done even if the work panics: the leader then finds it poisoned instead of waiting forever.
        struct Done<'a, J>(&'a Post<J>);
        impl<J> Drop for Done<'_, J> {
            fn drop(&mut self) {
                // A post that was closed meanwhile stays closed.
                self.0.moves(BEGUN, DONE);
            }
        }
        loop {
            if self.moves(GIVEN, BEGUN) {
                let _done = Done(self);
                work(&mut self.job.0.lock().expect("nobody panicked with this job before"));
            }
            match self.state.0.load(Ordering::Acquire) {
                CLOSED => return,
                GIVEN => {}
                idle => {
                    self.leaves(idle);
                }
            }
        }
    }
}

/// What launches leave for later ones: threads, and how many of them each kernel runs fastest with.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// Besides the leader. None before they are needed, or if none can be had.
    pool: Option<rayon::ThreadPool>,
    paces: FxHashMap<String, Pace>,
}

impl Threads {
    /// The pace of a kernel that runs on at most so many threads, as far as it is known.
    pub(crate) fn pace(&mut self, kernel: &str, most: usize) -> Pace {
        let known = self.paces.remove(kernel).filter(|pace| pace.most() == most);
        let mut pace = known.unwrap_or_else(|| Pace::new(most));
        if self.pool.is_some() {
            pace.made(Duration::ZERO);
        }
        pace
    }

    /// Keeps the pace of a kernel for its next launch.
    pub(crate) fn keep(&mut self, kernel: &str, pace: Pace) {
        self.paces.insert(kernel.to_string(), pace);
    }

    /// Sees to it that there are so many, the leader included. Returns how long that took.
    pub(crate) fn make(&mut self, most: usize) -> Duration {
        let start = Instant::now();
        if self.pool.as_ref().is_none_or(|pool| pool.current_num_threads() + 1 != most) {
            self.pool = rayon::ThreadPoolBuilder::new().num_threads(most - 1).build().ok();
        }
        start.elapsed()
    }
}

/// Threads besides the one that leads them.
pub(crate) struct Crew<J> {
    posts: Vec<Post<J>>,
}

impl<J: Default + Send> Crew<J> {
    /// Runs `lead` with a crew of `size`, itself included; the others do `work`.
    pub(crate) fn with<R>(
        threads: &Threads,
        size: usize,
        work: impl Fn(&mut J) + Sync,
        lead: impl FnOnce(&Crew<J>) -> R,
    ) -> R {
        /// Dismisses the other threads, even if the run panics.
        struct Close<'a, J>(&'a [Post<J>]);
        impl<J> Drop for Close<'_, J> {
            fn drop(&mut self) {
                self.0.iter().for_each(|post| post.state.0.store(CLOSED, Ordering::Release));
            }
        }
        // If no threads can be had, the leader works alone.
        let Some(pool) = &threads.pool else { return lead(&Crew::ALONE) };
        let post = |_| Post { state: Apart(AtomicU8::new(EMPTY)), job: Apart(Mutex::new(J::default())) };
        let crew = Crew { posts: (1..size).map(post).collect() };
        pool.in_place_scope(|scope| {
            // Each thread has the same post every time, and in its cache what it had there.
            scope.spawn_broadcast(|_, thread| {
                if let Some(post) = crew.posts.get(thread.index()) {
                    post.serve(&work);
                }
            });
            let _close = Close(&crew.posts);
            lead(&crew)
        })
    }
}

impl<J> Crew<J> {
    /// The leader without others.
    pub(crate) const ALONE: Crew<J> = Crew { posts: Vec::new() };

    /// Threads besides the leader.
    pub(crate) fn others(&self) -> usize {
        self.posts.len()
    }

    /// Gives a thread a job, which `fill` makes of its last one. That must have been taken back.
    pub(crate) fn give(&self, thread: usize, fill: impl FnOnce(&mut J)) {
        let post = &self.posts[thread];
        fill(&mut post.job.0.lock().expect("nobody panicked with this job before"));
        post.state.0.store(GIVEN, Ordering::Release);
    }

    /// Waits until a thread has done its job, or takes back a job that it has not begun. `fetch` gets the job, and
    /// whether it is done.
    pub(crate) fn take_back(&self, thread: usize, fetch: impl FnOnce(&mut J, bool)) {
        let post = &self.posts[thread];
        let done = !post.moves(GIVEN, EMPTY);
        if done {
            post.leaves(BEGUN);
        }
        fetch(&mut post.job.0.lock().expect("a thread of the crew panicked"), done);
        if done {
            post.state.0.store(EMPTY, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(most: usize) -> Threads {
        let mut threads = Threads::default();
        threads.make(most);
        threads
    }

    #[test]
    fn jobs_are_done_by_any_number_of_threads() {
        for size in [2, 3, 5] {
            let work = |job: &mut Vec<u64>| job.iter_mut().for_each(|x| *x += 1);
            let counted = Crew::with(&made(5), size, work, |crew| {
                assert_eq!(crew.others(), size - 1);
                let mut numbers: Vec<u64> = (0..10).collect();
                for _ in 0..1000 {
                    for thread in 0..crew.others() {
                        crew.give(thread, |job| job.extend(numbers.pop()));
                    }
                    work(&mut numbers);
                    for thread in 0..crew.others() {
                        crew.take_back(thread, |job, done| {
                            if !done {
                                work(job);
                            }
                            numbers.append(job);
                        });
                    }
                }
                numbers.sort_unstable();
                numbers
            });
            assert_eq!(counted, (1000..1010).collect::<Vec<u64>>());
        }
    }

    #[test]
    #[should_panic(expected = "panic")]
    fn a_panic_of_a_thread_reaches_the_leader() {
        Crew::with(
            &made(2),
            2,
            |job: &mut u32| assert_eq!(*job, 0, "the job panics"),
            |crew| {
                crew.give(0, |job| *job = 1);
                while crew.posts[0].state.0.load(Ordering::Relaxed) == GIVEN {}
                crew.take_back(0, |_, _| ());
            },
        );
    }

    #[test]
    #[should_panic(expected = "the leader's")]
    fn a_panic_of_the_leader_lets_the_others_go() {
        Crew::with(&made(3), 3, |_: &mut u32| (), |_| panic!("the leader's"));
    }
}
