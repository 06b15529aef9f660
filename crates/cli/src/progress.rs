//! Progress on the terminal: a line for a long launch, and a bar for work in steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use warploom::Progress;

use crate::term::grouped;

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
    while !done.load(Ordering::Relaxed) {
        thread::park_timeout(REFRESH);
        if start.elapsed() < PATIENCE {
            continue;
        }
        let bar = bar.get_or_insert_with(|| {
            let style =
                ProgressStyle::with_template("{spinner} {elapsed} [{bar:30}] {pos}/{len} CTAs, {msg}");
            ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_length(progress.ctas.load(Ordering::Relaxed));
        bar.set_position(progress.ctas_done.load(Ordering::Relaxed));
        bar.set_message(format!(
            "{} warp instructions",
            grouped(progress.instructions.load(Ordering::Relaxed))
        ));
        bar.tick();
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

/// A progress bar for work in steps. Draws only if stderr is a terminal.
pub(crate) struct Steps(ProgressBar);

impl Steps {
    pub(crate) fn new() -> Steps {
        let style = ProgressStyle::with_template("{spinner} {elapsed} [{bar:30}] {pos}/{len} {wide_msg}");
        // indicatif draws on stderr, and not at all if that is no terminal.
        let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        // A step can take minutes; keep the elapsed time running.
        bar.enable_steady_tick(REFRESH);
        Steps(bar)
    }

    pub(crate) fn show(&self, progress: &warploom_lab::conform::Progress) {
        self.set(progress.done, progress.total, progress.stage.clone());
    }

    /// Shows steps done, steps in all, and the current one.
    pub(crate) fn set(&self, done: usize, total: usize, message: String) {
        self.0.set_length(total as u64);
        self.0.set_position(done as u64);
        self.0.set_message(message);
    }
}

impl Default for Steps {
    fn default() -> Self {
        Steps::new()
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
