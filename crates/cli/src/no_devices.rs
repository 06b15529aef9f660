//! What stands in for `devices.rs` in a build without the feature `cuda`: every wish for a real GPU is refused.

use serde_json::json;
use warploom::Device;

use crate::cli::DevicesOptions;
use crate::failure::{Exit, Failure};
use crate::output::print_json;
use crate::term;

const REFUSAL: &str = "this build has no CUDA support: the cargo feature `cuda` adds it";

/// Says why there are none.
pub(crate) fn devices(options: &DevicesOptions) -> Result<Exit, Failure> {
    match options.json {
        true => print_json(json!({ "devices": [], "driver": REFUSAL }))?,
        false => term::print(&format!("{REFUSAL}\nno real GPU to run on; `--device sim` needs none\n"))?,
    }
    Ok(Exit::Good)
}

/// Refuses `--device cuda`.
pub(crate) fn open_gpu(_ordinal: usize, _jit_level: Option<u32>) -> Result<Device, Failure> {
    Err(Failure::input(REFUSAL)
        .help("build it with its default features, or run on the simulator: `--device sim`"))
}

/// Refuses what only a build with that feature asks of itself.
pub(crate) fn serve_gpu() -> Result<Exit, Failure> {
    Err(Failure::input(REFUSAL))
}
