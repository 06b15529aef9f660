//! Refuses graphs that cannot work before anything runs.

use super::{Graph, Level, Stack};
use crate::channel::WAVE;
use crate::error::{FlowError, Result};

impl Graph {
    /// Whether the graph can run: every channel has one consumer and a producer or initial elements, element
    /// sizes agree, and widths are possible.
    pub fn check(&self) -> Result<()> {
        self.stacks.iter().try_for_each(check_shape)?;
        for (at, stack) in self.stacks.iter().enumerate() {
            let mut readers = self.kernels.iter().filter(|k| k.reads.is_some_and(|(node, _)| node.0 == at));
            let channel = stack.name.clone();
            match (readers.next(), readers.next()) {
                (None, _) => return Err(FlowError::NoConsumer { channel }),
                (Some(first), Some(second)) => {
                    let (first, second) = (first.name.clone(), second.name.clone());
                    return Err(FlowError::TwoConsumers { channel, first, second });
                }
                _ => {}
            }
            let written = self.kernels.iter().flat_map(|k| &k.writes).any(|w| w.node.0 == at);
            if !written && stack.initial.is_empty() && stack.arrivals.is_empty() {
                return Err(FlowError::NeverFilled { channel });
            }
        }
        if let Some((node, kernel)) = self.conflicts.first() {
            // `reads` keeps only the second of two channels, so the first has no consumer.
            let channel = self.stacks[node.0].name.clone();
            return Err(FlowError::BadShape {
                channel,
                reason: format!("kernel `{kernel}` reads another channel, too"),
            });
        }
        self.kernels.iter().try_for_each(|kernel| self.check_kernel(kernel))
    }

    fn check_kernel(&self, kernel: &super::Kernel) -> Result<()> {
        let Some((source, bytes)) = kernel.reads else {
            return Err(FlowError::NeverStarts { kernel: kernel.name.clone() });
        };
        let source = &self.stacks[source.0];
        let differ = |does, stack: &Stack, kernel_bytes| {
            let (kernel, channel) = (kernel.name.clone(), stack.name.clone());
            FlowError::SizesDiffer { kernel, does, kernel_bytes, channel, channel_bytes: stack.bytes }
        };
        if source.bytes != bytes {
            return Err(differ("reads", source, bytes));
        }
        for writes in &kernel.writes {
            let stack = &self.stacks[writes.node.0];
            if stack.bytes != writes.bytes {
                return Err(differ("writes", stack, writes.bytes));
            }
            if writes.level == Level::Same && source.levels != stack.levels && stack.levels != 1 {
                return Err(FlowError::LevelsDiffer {
                    kernel: kernel.name.clone(),
                    from: source.name.clone(),
                    from_levels: source.levels,
                    to: stack.name.clone(),
                    to_levels: stack.levels,
                });
            }
            if writes.most > stack.shape.width {
                let reason = format!(
                    "kernel `{}` puts {} elements at once where {} fit",
                    kernel.name, writes.most, stack.shape.width
                );
                return Err(FlowError::BadShape { channel: stack.name.clone(), reason });
            }
        }
        Ok(())
    }
}

fn check_shape(stack: &Stack) -> Result<()> {
    let shape = &stack.shape;
    let reason = if stack.bytes == 0 {
        "its elements have no bytes".to_string()
    } else if stack.levels == 0 {
        "it has no level".to_string()
    } else if shape.width < WAVE {
        format!("a width of {} is less than the {WAVE} elements that a wavefront takes", shape.width)
    } else if !shape.width.is_power_of_two() || shape.width > 1 << 28 {
        format!("its width is {}; a width is a power of two, 2^28 at most", shape.width)
    } else if !shape.group.is_power_of_two() || shape.group > shape.width {
        format!("groups of {}; a group is a power of two and no more than the width", shape.group)
    } else if let Some(words) = stack
        .initial
        .iter()
        .chain(stack.arrivals.iter().map(|(_, words)| words))
        .map(Vec::len)
        .find(|&words| words != shape.words as usize)
    {
        format!("an element of {} bytes is put where elements have {}", 4 * words, stack.bytes)
    } else if stack.initial.len() > shape.width as usize {
        let (channel, given) = (stack.name.clone(), stack.initial.len());
        return Err(FlowError::TooManyAtStart { channel, given, width: shape.width });
    } else {
        return Ok(());
    };
    Err(FlowError::BadShape { channel: stack.name.clone(), reason })
}
