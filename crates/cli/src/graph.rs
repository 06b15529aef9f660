//! `warploom graph`: the channel-flow graph of a workload.

use warploom_lab::work::{WORKLOADS, Workload};

use crate::cli::GraphOptions;
use crate::failure::{Exit, Failure};
use crate::term;

/// Prints a graph, as text or for Graphviz.
pub(crate) fn graph(options: &GraphOptions) -> Result<Exit, Failure> {
    let workload = Workload::find(&options.name)?;
    let values = workload.values(&options.params)?;
    let Some(graph) = workload.graph(&values) else {
        let defaults = |w: &Workload| w.values::<&str>(&[]).is_ok_and(|values| w.graph(&values).is_some());
        let known: Vec<&str> = WORKLOADS.iter().filter(|w| defaults(w)).map(|w| w.name).collect();
        let message = format!("workload `{}` runs no graph; these do: {}", workload.name, known.join(", "));
        return Err(Failure::input(message));
    };
    graph.check().map_err(|error| Failure::input(error.to_string()))?;
    let text =
        if options.dot { graph.dot() } else { format!("{}: {values}\n{}", workload.name, graph.describe()) };
    term::print(&text)?;
    Ok(Exit::Good)
}
