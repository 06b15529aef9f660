//! The experiments: one file and one line here for each.

mod fidelity;
mod hpca18;
mod ics15_beyond;
mod ics15_channels;
mod ics15_deadlock;
mod ics15_fig4;
mod ics15_nw;
mod ics15_static;
mod ics15_table1;
mod ics15_table3;
mod isca14;

use super::Experiment;

/// All experiments, in the order of lists and reports.
pub const EXPERIMENTS: &[&dyn Experiment] = &[
    &fidelity::Fidelity,
    &ics15_table1::Table1,
    &ics15_fig4::Figure4,
    &ics15_static::Static,
    &ics15_deadlock::Deadlock,
    &ics15_table3::Table3,
    &ics15_channels::Channels,
    &ics15_beyond::Beyond,
    &hpca18::overheads::Cost,
    &hpca18::policies::Attempts,
    &hpca18::overheads::SoftwareBackOff,
    &hpca18::detection::Sensitivity,
    &hpca18::policies::FERMI,
    &hpca18::limits::Time,
    &hpca18::limits::Waiting,
    &hpca18::limits::Attempts,
    &hpca18::limits::Dynamic,
    &hpca18::detection::WrongDetections,
    &hpca18::policies::PASCAL,
    &hpca18::contention::Contention,
    &hpca18::storage::Storage,
    &isca14::wavefronts::Table3,
    &isca14::scaling::Scaling,
    &isca14::scaling::Hits,
    &isca14::channels::Reserving,
    &isca14::channels::Widths,
    &isca14::wavefronts::Divergence,
    &isca14::conventional::Conventional,
    &isca14::aggregator::Cores,
    &isca14::channels::Freeing,
    &isca14::yielding::Bounded,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repro::{Scale, names};

    #[test]
    fn names_are_unique() {
        let mut names = names();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_experiment_has_runs_and_says_what_it_takes() {
        for experiment in EXPERIMENTS {
            let about = experiment.about();
            let name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(about.id.chars().all(name), "{}", about.id);
            assert!(about.quick_s <= about.full_s, "{}: the quick form takes longer", about.id);
            for run in experiment.runs(Scale::Quick) {
                assert!(warploom::chip::text(run.chip_name()).is_ok(), "{}: {run}", about.id);
            }
        }
    }
}
