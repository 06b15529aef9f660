//! Bytes that a thread takes from its stack while it runs. They lie above the frame of its function, and the frames of
//! the functions that it calls lie above them.

use warploom_isa::StackOp;

use super::*;
use crate::occupancy::LocalLimit;

impl Execution<'_> {
    pub(super) fn stack<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        activation: &Activation,
        (inst, op): (&Inst, StackOp),
        mask: LaneMask,
    ) -> Result<(), Bad> {
        let kernel = self.launch.kernel;
        let operands = warp.registers(activation).read32(inst.src[0]);
        let end = frame_end(kernel, activation);
        let mut found = [0; N];
        for lane in mask.lanes() {
            let top = warp.stack_top(lane).max(end);
            match op {
                StackOp::Save => found[lane] = top,
                // No lower than its own frame.
                StackOp::Restore => warp.set_stack_top(lane, operands[lane].max(end)),
                StackOp::Alloca(align) => {
                    let start = (u64::from(top)).next_multiple_of(1 << align);
                    let needed = start + u64::from(operands[lane]);
                    let LocalLimit { bytes: limit, shared_by } = self.launch.local_limit;
                    if needed > u64::from(limit) {
                        let depth = activation.depth;
                        let kind = match shared_by {
                            None => FaultKind::StackOverflow { needed, limit },
                            Some(threads) => FaultKind::StacksOverflow { needed, limit, depth, threads },
                        };
                        return Err(Bad { lane, kind });
                    }
                    found[lane] = start as u32;
                    warp.set_stack_top(lane, needed as u32);
                    warp.mark_local(LaneMask::of(lane), |_| start, operands[lane], false);
                }
            }
        }
        warp.registers(activation).write32(inst.dst, &found, mask);
        Ok(())
    }
}

/// Where the frame of an activation ends.
fn frame_end(kernel: &Kernel, activation: &Activation) -> u32 {
    activation.frame + kernel.functions[activation.function as usize].frame_bytes
}

/// Where the frames of functions begin that these lanes call.
pub(super) fn next_frame<const N: usize>(
    kernel: &Kernel,
    warp: &Warp<N>,
    activation: &Activation,
    lanes: LaneMask,
) -> u32 {
    const FRAME_ALIGN: u32 = 16;
    let taken = lanes.lanes().map(|lane| warp.stack_top(lane)).max().unwrap_or(0);
    // Frames without bytes on top are aligned already.
    frame_end(kernel, activation).max(taken.next_multiple_of(FRAME_ALIGN))
}
