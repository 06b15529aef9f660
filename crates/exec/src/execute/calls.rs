//! Calls of functions: who is called, the frame and the registers of the callee, arguments.

use warploom_isa::{FrameCopy, LinkedCallee};

use super::stack::next_frame;
use super::*;
use crate::occupancy::LocalLimit;
use crate::warp::control::{Caller, Entry};

/// Bytes of stack that every call takes besides frames and saved registers: the return address.
const CALL_BYTES: u64 = 16;

impl Execution<'_> {
    pub(super) fn call<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        activation: &Activation,
        inst: &Inst,
        path: Group,
        mask: LaneMask,
    ) -> Result<(), Bad> {
        let kernel = self.launch.kernel;
        let Operand::Imm(site) = inst.src[0] else { unreachable!("a call names its site") };
        let call = &kernel.calls[site as usize];
        let mut targets: SmallVec<[(u32, LaneMask); 4]> = SmallVec::new();
        match call.callee {
            LinkedCallee::Direct(function) => targets.push((function, mask)),
            LinkedCallee::Indirect(operand) => {
                let wide = kernel.address_bits == 64;
                let handles = read_address(&warp.registers(activation), operand, &kernel.imms, wide);
                for lane in mask.lanes() {
                    let function = function_of(kernel, handles[lane])
                        .ok_or(Bad { lane, kind: FaultKind::BadFunctionPointer(handles[lane]) })?;
                    match targets.iter_mut().find(|(known, _)| *known == function) {
                        Some((_, lanes)) => *lanes |= LaneMask::of(lane),
                        None => targets.push((function, LaneMask::of(lane))),
                    }
                }
            }
        }
        let caller = &kernel.functions[activation.function as usize];
        let frame = next_frame(kernel, warp, activation, mask);
        let depth = activation.depth + 1;
        let mut entries: SmallVec<[Entry; 4]> = SmallVec::new();
        for (function, lanes) in targets {
            let callee = &kernel.functions[function as usize];
            let new = Activation {
                function,
                registers: activation.registers + caller.registers,
                predicates: activation.predicates + caller.predicates,
                frame,
                depth,
                caller: Some(Caller { site, frame: activation.frame, resume: Pc(path.pc.0 + 1) }),
            };
            // The callers' registers would be saved on the stack.
            let saved = 4 * new.registers as u64 + CALL_BYTES * depth as u64;
            let needed = frame as u64 + callee.frame_bytes as u64 + saved;
            let LocalLimit { bytes: limit, shared_by } = self.launch.local_limit;
            if needed > limit as u64 {
                let kind = match shared_by {
                    None => FaultKind::StackOverflow { needed, limit },
                    Some(threads) => FaultKind::StacksOverflow { needed, limit, depth, threads },
                };
                return Err(Bad { lane: lanes.lowest(), kind });
            }
            warp.make_room(kernel, &new);
            warp.mark_local(lanes, |_| u64::from(frame), callee.frame_bytes, false);
            for &FrameCopy { caller, callee, bytes } in &call.args {
                copy_local(warp, activation.frame + caller, frame + callee, bytes, lanes);
            }
            entries.push(Entry { start: callee.start, mask: lanes, activation: new });
        }
        warp.control.call(&entries);
        Ok(())
    }
}

fn function_of(kernel: &Kernel, handle: u64) -> Option<u32> {
    let offset = handle.checked_sub(kernel.windows.functions)?;
    let id = (offset % 16 == 0).then_some(offset / 16)?;
    kernel.functions.iter().position(|f| f.id.0 as u64 == id).map(|at| at as u32)
}

/// Copies bytes within local memory, in the lanes of `mask`.
pub(super) fn copy_local<const N: usize>(warp: &mut Warp<N>, from: u32, to: u32, bytes: u32, mask: LaneMask) {
    warp.copy_local_marks(mask, from, to, bytes);
    let mut done = 0;
    while done < bytes {
        let (source, target) = (from + done, to + done);
        if source % 4 == 0 && target % 4 == 0 && bytes - done >= 4 {
            let word = *warp.local_word(source as usize / 4);
            let stored = warp.local_word_mut(target as usize / 4);
            for lane in mask.lanes() {
                stored[lane] = word[lane];
            }
            done += 4;
        } else {
            for lane in mask.lanes() {
                let byte = warp.local_byte(source, lane) as u32;
                let stored = &mut warp.local_word_mut(target as usize / 4)[lane];
                let shift = 8 * (target % 4);
                *stored = *stored & !(0xff << shift) | byte << shift;
            }
            done += 1;
        }
    }
}
