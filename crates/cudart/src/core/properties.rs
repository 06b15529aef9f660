//! The simulated chip as CUDA describes devices: attributes by number, and `cudaDeviceProp` in the layouts of CUDA 11,
//! 12 and 13, which differ in size and order.

use warploom::{Chip, Divergence};

/// What CUDA tells of a device. Numbers that the chip file does not have are those of a GPU of its generation.
#[derive(Clone, Debug)]
pub(crate) struct Properties {
    /// Kernels that can run at once.
    pub(crate) most_kernels: u32,
    pub(crate) name: String,
    pub(crate) major: i32,
    pub(crate) minor: i32,
    pub(crate) sms: i32,
    pub(crate) warp_lanes: i32,
    pub(crate) max_threads_per_cta: i32,
    pub(crate) max_threads_per_sm: i32,
    pub(crate) max_ctas_per_sm: i32,
    max_cta_dims: [i32; 3],
    max_grid_dims: [i32; 3],
    global_bytes: u64,
    constant_bytes: u64,
    /// Without the kernel asking for more (`cudaFuncAttributeMaxDynamicSharedMemorySize`).
    pub(crate) shared_bytes_per_cta: u64,
    pub(crate) shared_bytes_per_cta_optin: u64,
    shared_bytes_per_sm: u64,
    registers_per_sm: i32,
    clock_khz: i32,
    memory_clock_khz: i32,
    memory_bus_bits: i32,
    l2_bytes: i32,
}

/// Shared memory that a kernel has without asking for more, on every GPU.
const PLAIN_SHARED_BYTES: u32 = 48 << 10;

/// Alignment of rows and textures.
pub(crate) const PITCH_BYTES: u64 = 512;

const LARGEST_PITCH: u64 = i32::MAX as u64;

impl Properties {
    /// `newest_ptx` is the newest target of the program's PTX. The capability is at least that, so that libraries
    /// choose what the program has.
    pub(crate) fn new(chip: &Chip, newest_ptx: Option<u32>) -> Properties {
        let capability = capability(chip).max(newest_ptx.unwrap_or(0));
        let int = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let most_shared = chip.launch.max_shared_bytes_per_cta;
        let l2_bytes = chip.l2.lines() * u64::from(chip.l2.cache.line_bytes);
        Properties {
            most_kernels: most_kernels(chip),
            name: format!("Warploom {}", chip.name),
            major: (capability / 10) as i32,
            minor: (capability % 10) as i32,
            sms: int(chip.sm.count),
            warp_lanes: int(chip.sm.warp_lanes),
            max_threads_per_cta: int(chip.launch.max_threads_per_cta),
            max_threads_per_sm: int(chip.sm.max_threads),
            max_ctas_per_sm: int(chip.sm.max_ctas),
            max_cta_dims: chip.launch.max_cta_dims.map(int),
            max_grid_dims: chip.launch.max_grid_dims.map(int),
            global_bytes: chip.memory.global_bytes,
            constant_bytes: u64::from(chip.memory.constant_bytes),
            shared_bytes_per_cta: u64::from(most_shared.min(PLAIN_SHARED_BYTES)),
            shared_bytes_per_cta_optin: u64::from(most_shared),
            shared_bytes_per_sm: u64::from(chip.sm.shared_bytes),
            registers_per_sm: int(chip.sm.registers),
            clock_khz: int(chip.clock.core_mhz.saturating_mul(1000)),
            memory_clock_khz: int(chip.clock.dram_mhz.saturating_mul(1000)),
            memory_bus_bits: int(chip.l2.partitions.saturating_mul(chip.dram.bus_bytes).saturating_mul(8)),
            l2_bytes: i32::try_from(l2_bytes).unwrap_or(i32::MAX),
        }
    }

    /// As 90 for 9.0.
    pub(crate) fn capability(&self) -> u32 {
        (self.major * 10 + self.minor) as u32
    }

    /// The lowest number that a stream's priority can have, which is the first to be served.
    pub(crate) fn greatest_priority(&self) -> i32 {
        if self.capability() >= 80 { -5 } else { -1 }
    }

    pub(crate) fn uuid(&self) -> [u8; 16] {
        uuid(&self.name)
    }

    pub(crate) fn global_bytes(&self) -> u64 {
        self.global_bytes
    }

    /// `cudaDeviceGetAttribute`. `None`: the attribute is not known.
    pub(crate) fn attribute(&self, number: i32) -> Option<i32> {
        let int = |value: u64| i32::try_from(value).unwrap_or(i32::MAX);
        Some(match number {
            1 => self.max_threads_per_cta,
            2..=4 => self.max_cta_dims[number as usize - 2],
            5..=7 => self.max_grid_dims[number as usize - 5],
            8 => int(self.shared_bytes_per_cta),
            9 => int(self.constant_bytes),
            10 => self.warp_lanes,
            11 => int(LARGEST_PITCH),
            12 | 82 => self.registers_per_sm,
            13 => self.clock_khz,
            14 | 30 | 51 => PITCH_BYTES as i32,
            // Copies overlap with kernels; kernels of several streams are accepted; mapped memory, unified addresses.
            15 | 19 | 31 | 41 => 1,
            16 => self.sms,
            36 => self.memory_clock_khz,
            37 => self.memory_bus_bits,
            38 => self.l2_bytes,
            39 => self.max_threads_per_sm,
            // One engine for copies in each direction.
            40 => 2,
            75 => self.major,
            76 => self.minor,
            78..=80 => 1,
            81 => int(self.shared_bytes_per_sm),
            // Managed memory; registered memory at the host's address; cooperative launches.
            83 | 91 | 95 | 99 => 1,
            // Double precision at half the rate of single; chips differ, and no program depends on it.
            87 => 2,
            97 => int(self.shared_bytes_per_cta_optin),
            106 => self.max_ctas_per_sm,
            // Pools: the stream-ordered allocator.
            115 => 1,
            126 => 1,
            // A single plain device: no timeout, no ECC, not integrated, PCI 0:0.0, no IPC.
            17..=35 | 42..=77 | 84..=150 => 0,
            _ => return None,
        })
    }

    /// The bytes of `cudaDeviceProp` as a program expects them that was built with CUDA `version`.
    pub(crate) fn structure(&self, version: u32) -> Vec<u8> {
        let (old, new) = (version < 13, version >= 12);
        let mut out = Structure::default();
        out.text(&self.name, 256);
        // uuid, luid, node mask.
        out.bytes(&self.uuid()).zeros(8).int(0);
        out.size(self.global_bytes).size(self.shared_bytes_per_cta);
        out.int(self.registers_per_sm).int(self.warp_lanes).size(LARGEST_PITCH);
        out.int(self.max_threads_per_cta).ints(&self.max_cta_dims).ints(&self.max_grid_dims);
        if old {
            out.int(self.clock_khz);
        }
        out.size(self.constant_bytes).int(self.major).int(self.minor);
        out.size(PITCH_BYTES).size(PITCH_BYTES);
        if old {
            out.int(1); // deviceOverlap
        }
        out.int(self.sms);
        if old {
            out.int(0); // kernelExecTimeoutEnabled
        }
        out.ints(&[0, 1]); // integrated, canMapHostMemory
        if old {
            out.int(0); // computeMode
        }
        // Textures and surfaces of one dimension; there are no mipmaps.
        out.ints(&[131_072, 0]);
        if old {
            out.int(1 << 28); // maxTexture1DLinear
        }
        out.ints(&TEXTURE_SIZES).size(PITCH_BYTES);
        // concurrentKernels, ECC, PCI bus, device and domain, TCC, asyncEngineCount, unifiedAddressing.
        out.ints(&[1, 0, 0, 0, 0, 0, 2, 1]);
        if old {
            out.int(self.memory_clock_khz);
        }
        out.ints(&[self.memory_bus_bits, self.l2_bytes, 0, self.max_threads_per_sm]);
        // streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported.
        out.ints(&[1, 1, 1]).size(self.shared_bytes_per_sm);
        // regsPerMultiprocessor, managedMemory, isMultiGpuBoard, its group, hostNativeAtomicSupported.
        out.ints(&[self.registers_per_sm, 1, 0, 0, 0]);
        if old {
            out.int(2); // singleToDoublePrecisionPerfRatio
        }
        // pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
        // cooperativeLaunch.
        out.ints(&[0, 0, 0, 1, 1]);
        if old {
            out.int(0); // cooperativeMultiDeviceLaunch
        }
        out.size(self.shared_bytes_per_cta_optin);
        // Two on page tables, maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize.
        out.ints(&[0, 0, self.max_ctas_per_sm, 0]).size(0);
        if new {
            // hostRegisterSupported, …, memoryPoolsSupported, …, unifiedFunctionPointers.
            out.ints(&[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
            out.ints(&[0; 63]);
        }
        out.finish()
    }
}

/// The largest textures and surfaces by kind, in the order of `cudaDeviceProp`: those of compute capability 7.5 and
/// later. What has mipmaps is 0.
const TEXTURE_SIZES: [i32; 37] = [
    131_072, 65_536, 0, 0, 131_072, 65_000, 2_097_120, 32_768, 32_768, 16_384, 16_384, 16_384, 8_192, 8_192,
    32_768, 32_768, 32_768, 2_048, 32_768, 32_768, 2_048, 32_768, 2_046, 32_768, 131_072, 65_536, 16_384,
    16_384, 16_384, 32_768, 2_048, 32_768, 32_768, 2_048, 32_768, 32_768, 2_046,
];

/// Kernels that can run at once, by the compute capability, as NVIDIA's manual has it.
fn most_kernels(chip: &Chip) -> u32 {
    match capability(chip) {
        ..35 => 16,
        60 | 70.. => 128,
        _ => 32,
    }
}

/// The compute capability of a chip, as 90 for 9.0. Chip files have none: the built-in ones are known by name, others
/// by how they schedule threads.
fn capability(chip: &Chip) -> u32 {
    match chip.name.as_str() {
        name if name.starts_with("h200") => 90,
        name if name.starts_with("gtx1080ti") => 61,
        name if name.starts_with("gtx4") || name.starts_with("gtx5") => 20,
        _ if chip.sm.divergence == Divergence::IndependentThreads => 70,
        _ => 60,
    }
}

/// Sixteen bytes that are the same for chips of the same name.
fn uuid(name: &str) -> [u8; 16] {
    let mut uuid = *b"warploom\0\0\0\0\0\0\0\0";
    for (at, byte) in name.bytes().enumerate() {
        uuid[8 + at % 8] = uuid[8 + at % 8].wrapping_mul(31).wrapping_add(byte);
    }
    uuid
}

/// A C structure, written field by field with C's alignment.
#[derive(Default)]
struct Structure(Vec<u8>);

impl Structure {
    fn text(&mut self, text: &str, bytes: usize) -> &mut Self {
        let start = self.0.len();
        self.0.extend(text.bytes().take(bytes - 1));
        self.0.resize(start + bytes, 0);
        self
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }

    fn zeros(&mut self, bytes: usize) -> &mut Self {
        self.0.resize(self.0.len() + bytes, 0);
        self
    }

    fn int(&mut self, value: i32) -> &mut Self {
        self.align(4).bytes(&value.to_le_bytes())
    }

    fn ints(&mut self, values: &[i32]) -> &mut Self {
        for &value in values {
            self.int(value);
        }
        self
    }

    fn size(&mut self, value: u64) -> &mut Self {
        self.align(8).bytes(&value.to_le_bytes())
    }

    fn align(&mut self, bytes: usize) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(bytes), 0);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        self.align(8);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties() -> Properties {
        Properties::new(&Chip::load("gtx1080ti", &[]).unwrap(), Some(75))
    }

    fn int(bytes: &[u8], at: usize) -> i32 {
        i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    /// Sizes and offsets as compilers lay the documented structures out.
    #[test]
    fn layouts() {
        let properties = properties();
        let [v11, v12, v13] = [11, 12, 13].map(|version| properties.structure(version));
        assert_eq!((v11.len(), v12.len(), v13.len()), (728, 1032, 1008));
        let sms = properties.sms;
        assert_eq!((int(&v11, 388), int(&v12, 388), int(&v13, 384)), (sms, sms, sms));
        let capability = |bytes: &[u8], at| (int(bytes, at), int(bytes, at + 4));
        assert_eq!((capability(&v12, 360), capability(&v13, 360)), ((7, 5), (7, 5)));
        assert!(v12.starts_with(b"Warploom gtx1080ti\0"));
    }

    #[test]
    fn attributes_agree_with_the_structure() {
        let properties = properties();
        let v12 = properties.structure(12);
        assert_eq!(properties.attribute(16), Some(int(&v12, 388)));
        assert_eq!(properties.attribute(75), Some(7));
        assert_eq!(properties.attribute(97), Some(properties.shared_bytes_per_cta_optin as i32));
        assert_eq!(properties.attribute(9999), None);
    }
}
