//! What became of the elements of a run: whether all were processed, and whether kernels put what the graph declares.

use std::fmt::Write as _;

use warploom::Device;

use crate::channel::Channel;
use crate::device::Placement;
use crate::error::{FlowError, Result};
use crate::graph::{Constant, Graph, Plan};

/// Most channels that a hang report lists.
const MOST_LISTED: usize = 12;

/// The counters of a channel at the end of a run. Positions wrap at 2^32, so only differences mean something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    tail: u32,
    head: u32,
    ready: u32,
    /// Elements marked as done in groups that are not freed.
    done: u32,
}

impl Life {
    fn read(gpu: &Device, channel: &Channel) -> Result<Life> {
        let word = |address| Ok::<_, FlowError>(words(gpu, address, 1)?[0]);
        let groups = (channel.shape.width / channel.shape.group) as usize;
        Ok(Life {
            tail: word(channel.tail())?,
            head: word(channel.head())?,
            ready: word(channel.ready())?,
            done: words(gpu, channel.done(0), groups)?.into_iter().fold(0, u32::wrapping_add),
        })
    }

    pub(crate) fn all(gpu: &Device, placement: &Placement) -> Result<Vec<Life>> {
        placement.channels.iter().map(|channel| Life::read(gpu, channel)).collect()
    }

    /// Elements that kernels made ready.
    pub(crate) fn put(&self, initial: u32) -> u32 {
        self.ready.wrapping_sub(initial)
    }

    /// Elements that take room.
    pub(crate) fn used(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Elements that were reserved and not freed.
    fn left(&self) -> u32 {
        self.used().wrapping_sub(self.done)
    }
}

fn words(gpu: &Device, address: u64, count: usize) -> Result<Vec<u32>> {
    let bytes = gpu.read_bytes(address, 4 * count)?;
    Ok(bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// Refuses the result of a run that left elements behind, or in which a kernel put more than it declares.
pub(crate) fn audit(graph: &Graph, plan: &Plan, initial: &[u32], lives: &[Life]) -> Result<()> {
    for (at, life) in lives.iter().enumerate() {
        if life.left() > 0 {
            return Err(FlowError::LeftBehind {
                channel: plan.names.channels[at].clone(),
                count: life.left(),
                suspects: suspects(graph, plan, at),
            });
        }
    }
    for (at, life) in lives.iter().enumerate() {
        let put = u64::from(life.put(initial[at]));
        let feeds = |from: usize| plan.cells[from].feeds.iter().filter(move |&&(to, _)| to == at);
        let declared = |&from: &usize| {
            feeds(from).map(|&(_, most)| u64::from(lives[from].ready) * u64::from(most)).sum::<u64>()
        };
        // A kernel that writes a channel twice is among its feeders twice.
        let mut feeders = plan.cells[at].feeders.clone();
        feeders.sort_unstable();
        feeders.dedup();
        let most: u64 = feeders.iter().map(declared).sum();
        if put > most {
            let mut kernels: Vec<&str> =
                feeders.iter().map(|&from| &*plan.names.kernels[plan.cells[from].kernel]).collect();
            kernels.dedup();
            let kernels = kernels.iter().map(|kernel| format!("`{kernel}`")).collect::<Vec<_>>().join(", ");
            let channel = plan.names.channels[at].clone();
            return Err(FlowError::MoreThanDeclared { kernels, channel, put, most });
        }
    }
    Ok(())
}

/// Kernels that know a channel and do not declare that they write it.
pub(crate) fn suspects(graph: &Graph, plan: &Plan, at: usize) -> String {
    let node = plan.cells[at].node;
    let knows = |kernel: &&crate::graph::Kernel| {
        let given = kernel.constants.contains(&Constant::Channel(node));
        let reads = kernel.reads.is_some_and(|(source, _)| source == node);
        (given || reads) && !kernel.writes.iter().any(|writes| writes.node == node)
    };
    let names: Vec<String> =
        graph.kernels.iter().filter(knows).map(|kernel| format!("`{}`", kernel.name)).collect();
    match &names[..] {
        [] => "a kernel that puts them".to_string(),
        names => format!("kernel {}, which knows the channel,", names.join(" or ")),
    }
}

/// The channels that hold elements, for the end of a hang report.
pub(crate) fn describe(plan: &Plan, placement: &Placement, lives: &[Life]) -> String {
    let mut text = String::new();
    let held = (0..lives.len()).filter(|&at| lives[at].left() > 0).collect::<Vec<_>>();
    if held.is_empty() {
        return text;
    }
    text += "\n\nChannels with elements that are not freed:";
    for &at in held.iter().take(MOST_LISTED) {
        let (life, width) = (&lives[at], placement.channels[at].shape.width);
        let room = width.saturating_sub(life.used());
        let (name, left) = (&plan.names.channels[at], life.left());
        let kernel = &plan.names.kernels[plan.cells[at].kernel];
        let _ = write!(text, "\n  {name}: {left} for kernel `{kernel}`, room for {room} of {width}");
    }
    if held.len() > MOST_LISTED {
        let _ = write!(text, "\n  and {} more", held.len() - MOST_LISTED);
    }
    text
}
