//! Section 5.3: a recursion in channels that are far too narrow for it, and the hybrid policy that the paper leaves
//! as future work.

use super::PAPER;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};
use crate::runs::procedures::no_yield::NO_YIELD;

pub(crate) struct Bounded;

fn narrow(scale: Scale, policy: &'static str) -> Run {
    let run = Run::work("fibonacci").with("n", scale.pick(15u32, 20)).with("width", 64u32);
    run.with("policy", policy).chip("apu")
}

fn without(scale: Scale) -> Run {
    Run::procedure(&NO_YIELD).with("n", scale.pick(15u32, 20)).chip("apu")
}

impl Experiment for Bounded {
    fn about(&self) -> About {
        About {
            id: "isca14-yield",
            paper: PAPER,
            title: "Recursion in bounded memory, with and without yield",
            quick_s: 6,
            full_s: 60,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        vec![narrow(scale, "help-first"), narrow(scale, "hybrid"), without(scale)]
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let with = narrow(scale, "help-first");
        let ends = || {
            let yields = results.number(&with, "aggregator.yields")?;
            Ok::<_, Failed>((yields > 0.0, format!("ends with the right result after {yields} yields")))
        };
        let hangs = || {
            let hang = results.of(&without(scale))?.text("kind").unwrap_or_default().to_string();
            Ok::<_, Failed>((
                !hang.is_empty(),
                if hang.is_empty() { "ends".into() } else { format!("hangs: {hang}") },
            ))
        };
        let hybrid =
            || Ok(results.number(&with, "cycles")? / results.number(&narrow(scale, "hybrid"), "cycles")?);
        Outcome::new()
            .row(Row::claim("Fibonacci in channels of 64", "runs to the end with yields", ends()))
            .row(Row::claim("the same without yield", "cannot end", hangs()))
            .row(Row::new("help-first over hybrid, time", "×").measured(hybrid()))
            .note(
                "The hybrid spawns while there is room and goes on work-first in its own lane where there is \
                   none; the paper leaves the comparison for later.",
            )
    }
}
