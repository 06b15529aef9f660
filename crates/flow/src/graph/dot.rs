//! A graph as a drawing.

use std::fmt::Write as _;

use super::{Graph, Level};

impl Graph {
    /// The graph in the language of Graphviz: kernels are round, channels are boxes, stacks have a dashed border.
    pub fn dot(&self) -> String {
        let mut text = format!("digraph \"{}\" {{\n    rankdir=LR;\n", self.name);
        for (at, stack) in self.stacks.iter().enumerate() {
            let (style, levels) = match stack.levels {
                1 => ("", String::new()),
                levels => (", style=dashed", format!("{levels} levels, each ")),
            };
            let label = format!("{}\\n{levels}{} x {} B", stack.name, stack.shape.width, stack.bytes);
            let _ = writeln!(text, "    c{at} [shape=box{style}, label=\"{label}\"];");
            if !stack.initial.is_empty() {
                let _ = writeln!(
                    text,
                    "    i{at} [shape=point];\n    i{at} -> c{at} [label=\"{}\"];",
                    stack.initial.len()
                );
            }
        }
        for (at, kernel) in self.kernels.iter().enumerate() {
            let sync = if kernel.after_sync { "\\nafter sync" } else { "" };
            let _ = writeln!(text, "    k{at} [shape=ellipse, label=\"{}{sync}\"];", kernel.name);
            if let Some((source, _)) = kernel.reads {
                let _ = writeln!(text, "    c{} -> k{at};", source.0);
            }
            for writes in &kernel.writes {
                let level = match writes.level {
                    _ if self.stacks[writes.node.0].levels == 1 => "",
                    Level::Same => ", this level",
                    Level::Next => ", next level",
                    Level::First => ", first level",
                };
                let _ = writeln!(
                    text,
                    "    k{at} -> c{} [label=\"up to {}{level}\"];",
                    writes.node.0, writes.most
                );
            }
        }
        text + "}\n"
    }
}
