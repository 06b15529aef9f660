//! `printf` and `assert` of a kernel: their strings and arguments are read from device memory.

use warploom_isa::Inst;

use crate::execute::{Cta, Execution, read_address};
use crate::fault::FaultKind;
use crate::kit::lane_mask::LaneMask;
use crate::kit::line::LineAddress;
use crate::memory::reach::{Bad, Reach};
use crate::printf;
use crate::warp::Warp;
use crate::warp::control::Activation;

impl Execution<'_> {
    pub(super) fn print<const N: usize>(
        &mut self,
        cta: &mut Cta,
        warp: &mut Warp<N>,
        activation: &Activation,
        inst: &Inst,
        mask: LaneMask,
    ) -> Result<(), Bad> {
        let wide = self.launch.kernel.address_bits == 64;
        let imms = &self.launch.kernel.imms;
        let formats = read_address(&warp.registers(activation), inst.src[0], imms, wide);
        let buffers = read_address(&warp.registers(activation), inst.src[1], imms, wide);
        let mut used = [0u32; N];
        let fresh = std::mem::take(&mut self.effects.fresh);
        for lane in mask.lanes() {
            let (reach, buffer, fresh) = (self.reach(cta), buffers[lane], &fresh[..]);
            let mut device = DeviceArguments { reach, warp, activation, lane, buffer, fresh };
            let bad = |message| Bad { lane, kind: FaultKind::Printf(message) };
            let format = printf::Arguments::string(&mut device, formats[lane]).map_err(bad)?;
            let (text, count) = printf::format(&format, &mut device).map_err(bad)?;
            used[lane] = count;
            let thread = warp.id * N as u32 + lane as u32;
            self.effects.output.print(cta.number, thread, text);
        }
        warp.registers(activation).write32(inst.dst, &used, mask);
        Ok(())
    }

    pub(super) fn assertion<const N: usize>(
        &mut self,
        cta: &mut Cta,
        warp: &mut Warp<N>,
        activation: &Activation,
        inst: &Inst,
        mask: LaneMask,
    ) -> Bad {
        let kernel = self.launch.kernel;
        let wide = kernel.address_bits == 64;
        let lane = mask.lowest();
        let registers = warp.registers(activation);
        let address = |at: usize| read_address(&registers, inst.src[at], &kernel.imms, wide)[lane];
        let (message, file, function) = (address(0), address(1), address(3));
        let line = registers.read32(inst.src[2])[lane];
        let fresh = &std::mem::take(&mut self.effects.fresh)[..];
        let mut device = DeviceArguments { reach: self.reach(cta), warp, activation, lane, buffer: 0, fresh };
        // A string that cannot be read must not hide the assertion.
        let mut text =
            |address| printf::Arguments::string(&mut device, address).unwrap_or_else(|_| "?".to_string());
        let (message, file, function) = (text(message), text(file), text(function));
        Bad { lane, kind: FaultKind::Assert { message, file, line, function } }
    }
}

/// `printf`'s arguments where a lane put them.
struct DeviceArguments<'a, const N: usize> {
    reach: Reach<'a>,
    warp: &'a mut Warp<N>,
    activation: &'a Activation,
    lane: usize,
    buffer: u64,
    fresh: &'a [(LineAddress, Vec<u8>)],
}

impl<const N: usize> DeviceArguments<'_, N> {
    fn byte(&mut self, address: u64) -> printf::Result<u8> {
        let found = self
            .reach
            .generic_byte(self.warp, self.activation, self.lane, address)
            .map_err(|bad| bad.kind.to_string())?;
        let newer = self.fresh.iter().find_map(|(line, bytes)| {
            bytes.get(usize::try_from(address.checked_sub(line.0)?).ok()?).copied()
        });
        Ok(newer.unwrap_or(found))
    }
}

impl<const N: usize> printf::Arguments for DeviceArguments<'_, N> {
    fn value(&mut self, offset: u64, bytes: u32) -> printf::Result<u64> {
        let mut value = 0;
        for byte in 0..bytes as u64 {
            value |= (self.byte(self.buffer.wrapping_add(offset + byte))? as u64) << (8 * byte);
        }
        Ok(value)
    }

    fn string(&mut self, address: u64) -> printf::Result<String> {
        let mut bytes = Vec::new();
        while bytes.len() < printf::MAX_STRING {
            match self.byte(address.wrapping_add(bytes.len() as u64))? {
                0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                byte => bytes.push(byte),
            }
        }
        Err(format!("the string at {address:#x} has no end within {} bytes", printf::MAX_STRING))
    }
}
