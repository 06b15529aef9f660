//! Section 4.2 of ICS'15: instructions of a lock and its release, on atomics and on lock bits.

use crate::repro::{About, Experiment, Outcome, Results, Row, Run, Scale};
use crate::runs::procedures::lock_code::LOCK_CODE;

pub(super) struct Static;

fn run() -> Run {
    Run::procedure(&LOCK_CODE).chip("gtx570")
}

/// What the paper's percentages compare.
const READING: &str = "\
    against the four instructions of one atomic (load and lock, operate, store and unlock, branch), as in \
    Listing 1";

/// Why Listing 3 has one instruction more.
const LISTING: &str = "Listing 3 has one more, SSY, which the machine does not need: 8";

impl Experiment for Static {
    fn about(&self) -> About {
        About {
            id: "ics15-static",
            paper: "ics15",
            title: "Static instructions of lock, waitlock and unlock",
            quick_s: 1,
            full_s: 1,
        }
    }

    fn runs(&self, _: Scale) -> Vec<Run> {
        vec![run()]
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let count = |name: &str| results.number(&run(), name);
        let fewer = |tiny: &str, atomic: &str| Ok(100.0 * (1.0 - count(tiny)? / count(atomic)?));
        let share = |name: &str, paper, tiny: &str, atomic: &str| {
            Row::new(name, "%").paper(paper).measured(fewer(tiny, atomic)).equal()
        };
        let whole = |name: &str, tiny: &str| {
            Row::new(name, "%")
                .measured(fewer(tiny, "spin_lock"))
                .note(format!("against all of Listing 2's lock; {LISTING}"))
        };
        Outcome::new()
            .row(share("lock: fewer", 75.0, "tiny_lock", "atomic").note(READING))
            .row(share("unlock: fewer", 75.0, "tiny_unlock", "spin_unlock"))
            .row(share("waitlock, one turn: fewer", 50.0, "tiny_waitlock", "atomic").note(READING))
            .row(whole("lock: fewer than the whole spin lock", "tiny_lock"))
            .row(whole("waitlock: fewer than the whole spin lock", "tiny_waitlock"))
            .rows([
                Row::new("spin lock: instructions", "").measured(count("spin_lock")).note(LISTING),
                Row::new("one atomic: instructions", "").measured(count("atomic")),
                Row::new("spin lock's unlock: instructions", "").measured(count("spin_unlock")),
                Row::new("tiny lock: instructions", "").measured(count("tiny_lock")),
                Row::new("tiny waitlock: instructions", "").measured(count("tiny_waitlock")),
                Row::new("tiny unlock: instructions", "").measured(count("tiny_unlock")),
            ])
    }
}
