//! Runs programs on a device.

use std::time::Duration;

use warploom::{Device, Launch, Module, args};

use super::leaf::{CELL_COUNT, INPUT_WORDS, OUTPUT_BYTES};
use super::program::Program;
use crate::conform::error::Result;
use crate::random::{Random, hash};

/// Programs per module. Compiling a module has a fixed cost, but if a program fails, it takes its whole module with
/// it.
pub(crate) const BATCH: usize = 32;

/// No program comes near these limits.
const MAX_CYCLES: u64 = 50_000_000;
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// What a program leaves in memory.
pub(super) type Image = Vec<u8>;

/// Runs programs that share a module. If it does not load, each has its own; so has each one after a program that
/// failed, which may have taken the module with it.
pub(super) fn run_batch(device: &mut Device, programs: &[Program]) -> Vec<Result<Image>> {
    let mut shared = device.load_ptx_named("programs", super::module(programs)).ok();
    let one = |program: &Program| {
        let module = match &shared {
            Some(module) => module.clone(),
            None => device.load_ptx_named(&program.entry(), program.ptx())?,
        };
        let image = run_one(device, &module, program);
        if image.is_err() {
            shared = None;
        }
        image
    };
    programs.iter().map(one).collect()
}

fn run_one(device: &mut Device, module: &Module, program: &Program) -> Result<Image> {
    let mut random = Random::new(program.seed);
    let mut words = |count: usize| -> Vec<u32> { (0..count).map(|_| word(&mut random)).collect() };
    let (input, cells) = (words(INPUT_WORDS), words(CELL_COUNT * 2));
    let threads = (program.grid * program.block) as usize;
    let input = device.buffer_named("input", &input)?;
    let output = device.zeros_named::<u8>("output", threads * OUTPUT_BYTES)?;
    let cells = device.buffer_named("cells", &cells)?;
    let launch = Launch::grid(program.grid).block(program.block);
    let launch = launch.max_cycles(MAX_CYCLES).time_limit(TIME_LIMIT);
    device.launch(module.kernel(&program.entry())?, launch, args![&input, &output, &cells])?;
    let mut image = output.read(device)?;
    image.extend(cells.read(device)?.iter().flat_map(|w| w.to_le_bytes()));
    Ok(image)
}

/// Half of the words are small.
fn word(random: &mut Random) -> u32 {
    let bits = random.next() as u32;
    match random.below(4) {
        0 => bits & 63,
        1 => bits >> random.below(31),
        _ => bits,
    }
}

/// The hash by which files identify an image.
pub(super) fn digest(image: &[u8]) -> u64 {
    hash(image)
}
