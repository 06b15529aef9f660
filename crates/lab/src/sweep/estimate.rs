//! What a sweep will take, from runs that have ended.

use crate::runs::Finished;
use crate::runs::slurm::Takes;

use super::file::Planned;

/// Time and memory of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Runs that it rests on.
    pub runs: usize,
    /// Their seconds on one core, added up.
    total_s: f64,
    /// Seconds of the longest.
    pub longest_s: f64,
    /// The most memory that one took.
    pub peak_bytes: u64,
}

impl Estimate {
    pub fn add(&mut self, end: &Finished) {
        self.runs += 1;
        self.total_s += end.wall_s;
        self.longest_s = self.longest_s.max(end.wall_s);
        self.peak_bytes = self.peak_bytes.max(end.peak_bytes.unwrap_or(0));
    }

    /// Seconds of a run, on average. 0 if nothing is known.
    pub fn mean_s(&self) -> f64 {
        if self.runs == 0 { 0.0 } else { self.total_s / self.runs as f64 }
    }

    /// What to ask of a cluster.
    pub fn takes(&self) -> Takes {
        let mean_s = Some(self.mean_s()).filter(|_| self.runs > 0);
        Takes { mean_s, longest_s: self.longest_s, peak_bytes: self.peak_bytes }
    }

    /// Seconds that so many runs take, so many in parallel: never less than one alone.
    pub fn seconds(&self, runs: usize, jobs: usize) -> f64 {
        let even = self.mean_s() * runs as f64 / jobs.max(1) as f64;
        if runs == 0 { 0.0 } else { even.max(self.mean_s()) }
    }
}

/// Some of the runs, evenly spread over the sweep, to estimate the rest from.
pub fn sample(planned: &[Planned], count: usize) -> impl Iterator<Item = &Planned> {
    let count = count.min(planned.len());
    // The middles of equal parts: neither only the smallest settings nor only the largest.
    (0..count).map(move |i| &planned[(2 * i + 1) * planned.len() / (2 * count)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::{Metrics, Status};
    use crate::sweep::Sweep;

    #[test]
    fn times_and_memory() {
        let end = |wall_s, peak| Finished {
            status: Status::Ok,
            message: None,
            wall_s,
            peak_bytes: peak,
            metrics: Metrics::default(),
        };
        let mut estimate = Estimate::default();
        assert_eq!((estimate.mean_s(), estimate.seconds(5, 2)), (0.0, 0.0));
        estimate.add(&end(1.0, Some(100)));
        estimate.add(&end(3.0, None));
        assert_eq!((estimate.mean_s(), estimate.longest_s, estimate.peak_bytes), (2.0, 3.0, 100));
        assert_eq!(
            [(10, 2), (1, 8), (0, 8)].map(|(runs, jobs)| estimate.seconds(runs, jobs)),
            [10.0, 2.0, 0.0]
        );
    }

    #[test]
    fn samples_are_spread() {
        let text = "work = 'nw'\n[params]\nsize = { from = 1, to = 100 }\n";
        let planned = Sweep::parse(text, "s", std::path::Path::new("")).unwrap().runs().unwrap();
        let sizes: Vec<String> = sample(&planned, 4).map(|p| p.settings[1].1.to_string()).collect();
        assert_eq!(sizes, ["13", "38", "63", "88"]);
        assert_eq!(sample(&planned, 1000).count(), 100);
    }
}
