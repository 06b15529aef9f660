//! A recursion in narrow channels, on a chip without wavefront yield.

use warploom::{Chip, Device, Error, SimOptions};
use warploom_flow::FlowError;

use crate::runs::{Metrics, Procedure, RunError};
use crate::work::{Param, cilk};

const N: Param = Param::new("n", "which Fibonacci number", 15).range(1, 30);

/// Elements per channel.
const WIDTH: u32 = 64;

/// Runs Fibonacci. `kind` is the kind of its hang, or empty if it ends.
pub(crate) static NO_YIELD: Procedure = Procedure {
    name: "no-yield",
    params: &[N],
    choices: &[],
    run: |context| {
        let chip = Chip { wavefront_yield: None, ..context.chip()? };
        let mut gpu = Device::sim_with(chip, SimOptions::default());
        let module = gpu.load_ptx(warploom_kernels::text!("flow/fibonacci.ptx"))?;
        let result = gpu.zeros_named::<u32>("result", 1)?;
        let graph = cilk::fibonacci::graph(
            context.number(&N)?,
            WIDTH,
            cilk::fibonacci::Form::Levels,
            result.address(),
        );
        match graph.execute(&mut gpu, &module).and_then(|execution| execution.wait()) {
            Ok(report) => Ok(Metrics::from(&report).with("kind", "")),
            Err(FlowError::Device(Error::Hang { hang: Some(hang), message, .. })) => {
                Ok(Metrics::new().with("kind", hang.kind.name()).with("message", message))
            }
            Err(FlowError::Device(error)) => Err(error.into()),
            Err(refused) => Err(RunError::Invalid(refused.to_string())),
        }
    },
};
