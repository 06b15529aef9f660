//! Runs cases on a device.

use warploom::{Buffer, Device, Kernel, Launch, args};

use super::case::{BLOCK, Case, SLOT_BYTES};
use super::error::Result;
use super::operands::operands;
use crate::random::hash;

/// Device memory that is large enough for any of a group's cases.
pub(crate) struct Buffers {
    input: Buffer<u64>,
    output: Buffer<u64>,
}

/// Initial contents of the output.
const UNWRITTEN: u64 = 0xdead_beef_dead_beef;

impl Buffers {
    pub(crate) fn new(device: &mut Device, cases: &[Case]) -> Result<Buffers> {
        let most = |stride: fn(&Case) -> usize| {
            cases.iter().map(|c| c.tuples * stride(c) / SLOT_BYTES).max().unwrap_or(0).max(1)
        };
        let (input, output) = (most(Case::input_stride), most(Case::output_stride));
        Ok(Buffers { input: device.zeros(input)?, output: device.buffer(&vec![UNWRITTEN; output])? })
    }

    /// The results of a case: those of the first output for all tuples, then those of the second … Each takes as many
    /// bytes as its register.
    pub(crate) fn run(&self, device: &mut Device, kernel: &Kernel, case: &Case) -> Result<Vec<u8>> {
        self.input.write_range(device, 0, &operands(case))?;
        let launch = Launch::grid(case.tuples.div_ceil(BLOCK)).block(BLOCK);
        device.launch(kernel, launch, args![&self.input, &self.output, case.tuples as u32])?;
        let stride = case.output_stride() / SLOT_BYTES;
        let slots = self.output.read_range(device, 0, case.tuples * stride)?;
        let mut results = Vec::with_capacity(case.output_bytes());
        for (i, output) in case.outputs.iter().enumerate() {
            for tuple in slots.chunks(stride) {
                results.extend_from_slice(&tuple[i].to_le_bytes()[..output.bytes()]);
            }
        }
        Ok(results)
    }
}

/// A recording is valid only for the operands and the text that it was made with: this is their hash.
pub(crate) fn fingerprint(case: &Case) -> u64 {
    let mut bytes: Vec<u8> = operands(case).iter().flat_map(|v| v.to_le_bytes()).collect();
    bytes.extend_from_slice(case.body.as_bytes());
    hash(&bytes)
}

/// Output `output` of tuple `k` in what [`Buffers::run`] returns.
pub(crate) fn result(case: &Case, results: &[u8], output: usize, k: usize) -> u64 {
    let before: usize = case.outputs[..output].iter().map(|s| s.bytes() * case.tuples).sum();
    let bytes = case.outputs[output].bytes();
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(&results[before + k * bytes..][..bytes]);
    u64::from_le_bytes(word)
}
