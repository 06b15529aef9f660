//! A graph for people: as a Graphviz drawing and as text.

use std::fmt::Write as _;

use super::{Graph, Level};

impl Graph {
    /// The graph in Graphviz's language: kernels are ellipses, channels are boxes, stacks have a dashed border.
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
                    Level::Any => ", any level",
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

    /// The graph as text: what each kernel reads and writes, and the memory of each channel.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for kernel in &self.kernels {
            let name = |node: super::Node| &self.stacks[node.0].name;
            let reads = kernel.reads.map_or("nothing", |(node, _)| name(node));
            let writes = kernel.writes.iter().map(|w| format!("up to {} to `{}`", w.most, name(w.node)));
            let writes = writes.collect::<Vec<_>>().join(", ");
            let sync = if kernel.after_sync { ", after a sync" } else { "" };
            let writes = if writes.is_empty() { String::new() } else { format!(", writes {writes}") };
            let _ = writeln!(text, "kernel   {}: reads `{reads}`{writes}{sync}", kernel.name);
        }
        for stack in &self.stacks {
            let bytes = warploom::grouped(stack.levels as u64 * stack.shape.array_bytes());
            let (levels, width) = (stack.levels, warploom::grouped(stack.shape.width.into()));
            let _ = writeln!(
                text,
                "channels {}: {levels} of {width} elements of {} bytes, {bytes} bytes",
                stack.name, stack.bytes
            );
        }
        text
    }
}
