//! Progress on the terminal: a line for a long launch, and a bar for work in steps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use warploom::Progress;

use crate::term::{duration, grouped};

/// What is left of work in equal steps, from what those done took. `None` if none is done yet.
fn time_left(done: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    launch_left(done, done, total, elapsed)
}

/// The same of a launch whose CTAs run at the same time: those that have started are half done on average.
fn launch_left(done: u64, started: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    let all_done = done as f64 + started.saturating_sub(done) as f64 / 2.0;
    (done > 0).then(|| elapsed.mul_f64((total as f64 - all_done).max(0.0) / all_done))
}

/// For the end of a line: `, about 3 min left`.
fn left_text(left: Option<Duration>) -> String {
    left.map(|left| format!(", about {} left", duration(left.as_secs_f64()))).unwrap_or_default()
}

/// Launches shorter than this show nothing.
const PATIENCE: Duration = Duration::from_millis(800);

/// How often the line is redrawn.
const REFRESH: Duration = Duration::from_millis(150);

/// Watches a launch until dropped. Draws only if stderr is a terminal.
pub(crate) struct Watch {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts watching. The launch must update the returned [`Progress`].
    pub(crate) fn new() -> (Watch, Arc<Progress>) {
        let progress = Arc::new(Progress::default());
        let done = Arc::new(AtomicBool::new(false));
        let (watched, stop) = (progress.clone(), done.clone());
        let draw = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let thread = draw.then(|| thread::spawn(move || show(&watched, &stop)));
        (Watch { done, thread }, progress)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The line is erased when the thread ends. A panic in it must not fail the launch.
            let _ = thread.join();
        }
    }
}

fn show(progress: &Progress, done: &AtomicBool) {
    let start = Instant::now();
    let mut bar: Option<ProgressBar> = None;
    // A command can launch several times, each with a new grid.
    let mut launch = (start, 0, 0);
    while !done.load(Ordering::Relaxed) {
        thread::park_timeout(REFRESH);
        let (ctas, ctas_done) =
            (progress.ctas.load(Ordering::Relaxed), progress.ctas_done.load(Ordering::Relaxed));
        if (launch.1, launch.2) != (ctas, ctas_done) {
            let begun = if ctas != launch.1 || ctas_done < launch.2 { Instant::now() } else { launch.0 };
            launch = (begun, ctas, ctas_done);
        }
        let started = progress.ctas_started.load(Ordering::Relaxed);
        if start.elapsed() < PATIENCE {
            continue;
        }
        let bar = bar.get_or_insert_with(|| {
            let style =
                ProgressStyle::with_template("{spinner} {elapsed} [{bar:30}] {pos}/{len} CTAs, {msg}");
            ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_length(ctas);
        bar.set_position(ctas_done);
        bar.set_message(format!(
            "{} warp instructions{}",
            grouped(progress.instructions.load(Ordering::Relaxed)),
            left_text(launch_left(ctas_done, started, ctas, launch.0.elapsed()))
                .replace(" left", " of this launch left")
        ));
        bar.tick();
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

/// A progress bar for work in steps, with an estimate of the time left. Draws only if stderr is a terminal.
pub(crate) struct Steps {
    bar: ProgressBar,
    /// When the present work began, and how many steps it has.
    begun: Mutex<(Instant, usize)>,
}

impl Steps {
    pub(crate) fn new() -> Steps {
        let style = ProgressStyle::with_template("{spinner} {elapsed} [{bar:30}] {pos}/{len} {wide_msg}");
        // indicatif draws on stderr, and not at all if that is no terminal.
        let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        // A step can take minutes; keep the elapsed time running.
        bar.enable_steady_tick(REFRESH);
        Steps { bar, begun: Mutex::new((Instant::now(), 0)) }
    }

    pub(crate) fn show(&self, progress: &warploom_lab::conform::Progress) {
        self.set(progress.done, progress.total, progress.stage.clone());
    }

    /// Shows steps done, steps in all, and the current one.
    pub(crate) fn set(&self, done: usize, total: usize, message: String) {
        self.set_kept(0, done, total, message);
    }

    /// Like [`Steps::set`], where `kept` of the steps done took no time: they were done before.
    pub(crate) fn set_kept(&self, kept: usize, done: usize, total: usize, message: String) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.1 != total {
            *begun = (Instant::now(), total);
        }
        let left =
            time_left((done - kept.min(done)) as u64, (total - kept.min(total)) as u64, begun.0.elapsed());
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(format!("{message}{}", left_text(left)));
    }
}

impl Default for Steps {
    fn default() -> Self {
        Steps::new()
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_is_done() {
        let minute = Duration::from_secs(60);
        assert_eq!(time_left(0, 10, minute), None);
        assert_eq!(time_left(1, 4, minute), Some(3 * minute));
        assert_eq!(time_left(4, 4, minute), Some(Duration::ZERO));
        // One of 139 CTAs is done, and 90 run: as good as 46.
        assert_eq!(launch_left(1, 91, 139, minute), Some(minute.mul_f64(93.0 / 46.0)));
        assert_eq!(launch_left(0, 90, 160, minute), None);
        assert_eq!(left_text(Some(3 * minute)), format!(", about {} left", duration(180.0)));
        assert_eq!(left_text(None), "");
    }
}
