//! The host looks at the channels and launches a batch at a time, as programs without a scheduler on the device do.

use std::time::Instant;

use warploom::{Launch, args};

use super::image::Image;
use super::{GpuExecution, GpuRun, LANES, THREADS, limited};
use crate::channel::Channel;
use crate::error::Result;

/// A channel as the host knows it: nothing is in flight while it looks.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    /// Elements launched, all of which are done.
    next: u32,
    /// Elements reserved by producers.
    tail: u32,
}

impl Side {
    fn waiting(&self) -> u32 {
        self.tail.wrapping_sub(self.next)
    }

    fn room(&self, channel: &Channel) -> u32 {
        channel.shape.width.saturating_sub(self.waiting())
    }
}

pub(super) fn run(execution: GpuExecution<'_>, prepare: &dyn Fn(Launch) -> Launch) -> Result<GpuRun> {
    let image = Image::new(&execution.graph, &execution.plan, execution.gpu, &execution.module, 0)?;
    let kernel = execution.module.kernel("flow_batch")?;
    let shared_bytes = Image::shared_bytes(&execution.graph, &execution.plan);
    let mut sides = vec![Side::default(); execution.plan.cells.len()];
    let mut run = GpuRun { launches: Vec::new(), elements: 0, chunks: 0, rounds: 0, seconds: 0.0 };
    let begun = Instant::now();
    loop {
        for (side, tail) in sides.iter_mut().zip(image.tails(execution.gpu)?) {
            side.tail = tail;
        }
        run.rounds += 1;
        let fault = image.end(execution.gpu)?.fault;
        if fault != 0 {
            return Err(execution.no_room(&image, fault)?);
        }
        if sides.iter().all(|side| side.waiting() == 0) {
            break;
        }
        let Some((cell, count)) = choose(&execution, &image, &sides) else {
            return Err(execution.stuck(&image)?);
        };
        let number = image.order.iter().position(|&at| at == cell).unwrap_or(0);
        let launch = Launch::grid(count.div_ceil(THREADS)).block(THREADS).shared_bytes(shared_bytes);
        // Repeated, a batch would process its elements again.
        let launch = Launch { repeat: 0, ..limited(prepare(launch)) };
        let first = sides[cell].next;
        let report =
            execution.gpu.launch(&kernel, launch, args![image.run(), number as u32, first, count])?;
        run.launches.push(report);
        run.elements += u64::from(count);
        run.chunks += u64::from(count.div_ceil(LANES));
        sides[cell].next = first.wrapping_add(count);
        image.free(execution.gpu, cell, sides[cell].next)?;
    }
    run.seconds = begun.elapsed().as_secs_f64();
    execution.audit(&image)?;
    Ok(run)
}

/// The channel to serve next, and how many of its elements: the shallowest tasks with room for all that they may put,
/// else the deepest with any room, else the deepest continuations whose tasks have ended.
fn choose(execution: &GpuExecution<'_>, image: &Image, sides: &[Side]) -> Option<(usize, u32)> {
    let cells = &execution.plan.cells;
    let channels = &image.placement.channels;
    let admitted = |at: usize| {
        let rooms = cells[at].feeds.iter().map(|&(to, most)| sides[to].room(&channels[to]) / most.max(1));
        rooms.min().unwrap_or(u32::MAX).min(sides[at].waiting())
    };
    let ready = |after_sync: bool| {
        let (order, cells) = (&image.order, cells);
        let wanted = move |&&at: &&usize| sides[at].waiting() > 0 && cells[at].after_sync == after_sync;
        order.iter().filter(wanted).copied()
    };
    let deepest = (0..cells.len()).filter(|&at| sides[at].waiting() > 0).map(|at| cells[at].depth).max()?;
    let whole = ready(false).find(|&at| admitted(at) == sides[at].waiting());
    let any = ready(false).rfind(|&at| admitted(at) > 0);
    let after = ready(true).rfind(|&at| admitted(at) > 0 && cells[at].depth >= deepest);
    whole.or(any).or(after).map(|at| (at, admitted(at)))
}
