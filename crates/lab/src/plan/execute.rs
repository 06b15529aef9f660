//! A plan on a device.

use std::collections::BTreeMap;
use std::path::Path;

use warploom::isa::Ty;
use warploom::{Buffer, Device, Error, Kernel, Launch, Module, Report};

use super::check::{Content, Passed, argument, content};
use super::{Expected, ITERATION, Plan, PlannedLaunch, PlannedLoop, Step};
use crate::kernel::{
    ArgSpec, BufferSpec, FileError, KernelFile, PrepareError, Prepared, arrange, choose, content_of,
    format_value, number, prepare,
};

/// What a plan did.
pub struct PlanOutcome {
    /// One report per launch that ended, in order.
    pub launches: Vec<Report>,
    /// The buffers that could be made, by name.
    pub buffers: BTreeMap<String, Prepared>,
    /// `Err` if it did not end.
    pub end: Result<(), PlanError>,
    /// What is wrong with the results, one line per buffer; `None` if the plan checks nothing, or did not end.
    pub check: Option<Result<String, String>>,
}

/// Why a plan did not end.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The device refused, or a launch faulted, hung or was interrupted.
    #[error(transparent)]
    Device(#[from] Error),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Prepare(PrepareError),
    /// A loop reached its limit.
    #[error("{word} is still {value} after {iterations} iterations of the loop")]
    Endless { word: String, value: String, iterations: u32 },
}

impl From<PrepareError> for PlanError {
    fn from(error: PrepareError) -> PlanError {
        match error {
            PrepareError::Device(error) => PlanError::Device(error),
            other => PlanError::Prepare(other),
        }
    }
}

impl Plan {
    /// Executes the plan. Its files are relative to `base`, and `kernels` is its kernel file
    /// ([`Plan::read_kernels`]). Every launch goes through `limit`.
    pub fn execute(
        &self,
        gpu: &mut Device,
        kernels: &KernelFile,
        base: &Path,
        limit: &dyn Fn(Launch) -> Launch,
    ) -> PlanOutcome {
        let mut machine = Machine {
            plan: self,
            gpu,
            kernels,
            base: &self.base(base),
            limit,
            buffers: BTreeMap::new(),
            launches: Vec::new(),
        };
        let end = machine.execute();
        let check = match &end {
            Ok(()) if !self.checks.is_empty() => Some(machine.check()),
            _ => None,
        };
        let (end, check) = match check {
            Some(Err(error)) => (Err(error), None),
            Some(Ok(result)) => (end, Some(result)),
            None => (end, None),
        };
        PlanOutcome { launches: machine.launches, buffers: machine.buffers, end, check }
    }
}

struct Machine<'a> {
    plan: &'a Plan,
    gpu: &'a mut Device,
    kernels: &'a KernelFile,
    base: &'a Path,
    limit: &'a dyn Fn(Launch) -> Launch,
    buffers: BTreeMap<String, Prepared>,
    launches: Vec<Report>,
}

impl Machine<'_> {
    fn execute(&mut self) -> Result<(), PlanError> {
        let module = self.kernels.load(self.gpu)?;
        self.make_buffers()?;
        self.steps(&self.plan.steps, &module, None)
    }

    fn make_buffers(&mut self) -> Result<(), PlanError> {
        let contents: BTreeMap<&str, Content<'_>> = self
            .plan
            .buffers
            .iter()
            .filter_map(|(name, text)| Some((name.as_str(), content(text).ok()?)))
            .collect();
        for (name, of) in &contents {
            // A copy has the content that its original begins with. Plans in which copies have none were refused.
            let mut of = of;
            while let Content::Copy { of: original, .. } = of {
                of = &contents[original];
            }
            let spec = ArgSpec::Buffer(of.spec().clone());
            let made = prepare(self.gpu, name, &spec, self.base)?;
            self.buffers.insert(name.to_string(), made);
        }
        Ok(())
    }

    fn steps(&mut self, steps: &[Step], module: &Module, iteration: Option<u32>) -> Result<(), PlanError> {
        steps.iter().try_for_each(|step| match step {
            Step::Launch(launch) => {
                (0..launch.times).try_for_each(|_| self.launch(launch, module, iteration.unwrap_or(0)))
            }
            Step::Loop(planned) => self.repeat(planned, module),
        })
    }

    fn repeat(&mut self, planned: &PlannedLoop, module: &Module) -> Result<(), PlanError> {
        let word = &planned.until_zero;
        for iteration in 0..planned.at_most {
            self.steps(&planned.steps, module, Some(iteration))?;
            let (ty, buffer) = buffer(&self.buffers, &word.buffer);
            let size = ty.bytes() as usize;
            let bytes = buffer.read_range(self.gpu, word.index * size, size)?;
            if bytes.iter().all(|byte| *byte == 0) {
                return Ok(());
            }
            if iteration + 1 == planned.at_most {
                let value = format_value(ty, &bytes);
                return Err(PlanError::Endless {
                    word: word.to_string(),
                    value,
                    iterations: planned.at_most,
                });
            }
        }
        Ok(())
    }

    fn launch(&mut self, launch: &PlannedLaunch, module: &Module, iteration: u32) -> Result<(), PlanError> {
        let now = |text: &str| text.replace(ITERATION, &iteration.to_string());
        for (name, content) in &launch.fill {
            let (ty, buffer) = buffer(&self.buffers, name);
            let bytes = self.content(name, ty, buffer.len() / ty.bytes() as usize, &now(content))?;
            buffer.write(self.gpu, &bytes)?;
        }
        let kernel = choose(module, self.kernels, launch.entry.as_deref())?;
        let values = self.arguments(launch, &kernel, &now)?;
        let args: Vec<_> = values
            .iter()
            .map(|value| match value {
                Argument::Buffer(name) => self.buffers[*name].arg(),
                Argument::Value(value) => value.arg(),
            })
            .collect();
        let shape = Launch {
            block: launch.block,
            dynamic_shared_bytes: launch.shared_bytes,
            ..Launch::grid(launch.grid)
        };
        self.launches.push(self.gpu.launch(&kernel, (self.limit)(shape), args)?);
        for [one, other] in &launch.swap {
            if let (Some(a), Some(b)) = (self.buffers.remove(one), self.buffers.remove(other)) {
                self.buffers.insert(one.clone(), b);
                self.buffers.insert(other.clone(), a);
            }
        }
        Ok(())
    }

    /// The arguments in the order of the parameters.
    fn arguments<'l>(
        &mut self,
        launch: &'l PlannedLaunch,
        kernel: &Kernel,
        now: &dyn Fn(&str) -> String,
    ) -> Result<Vec<Argument<'l>>, PlanError> {
        let mut given = Vec::new();
        for text in &launch.args {
            // Texts that cannot be read were refused with the plan.
            let (name, passed) = argument(text, &self.plan.buffers).map_err(FileError::new)?;
            given.push((name.map(str::to_string), passed));
        }
        let names = self.kernels.parameter_names(kernel);
        let arranged = arrange(given, kernel, &names)?;
        let each = arranged.into_iter().zip(&names).map(|(passed, name)| match passed {
            Passed::Buffer(buffer) => Ok(Argument::Buffer(buffer)),
            Passed::Value(text) => {
                let spec: ArgSpec = now(text).parse().map_err(FileError::new)?;
                Ok(Argument::Value(prepare(self.gpu, name, &spec, self.base)?))
            }
        });
        each.collect()
    }

    fn content(&self, name: &str, ty: Ty, count: usize, text: &str) -> Result<Vec<u8>, PlanError> {
        let spec: BufferSpec = format!("{ty}:{count}={text}").parse().map_err(FileError::new)?;
        Ok(content_of(name, &spec, self.base)?)
    }

    /// What is wrong with the results, or how many buffers are right.
    fn check(&self) -> Result<Result<String, String>, PlanError> {
        let mut wrong = Vec::new();
        for (name, Expected { content, within }) in &self.plan.checks {
            let (ty, buffer) = buffer(&self.buffers, name);
            let size = ty.bytes() as usize;
            let found = buffer.read(self.gpu)?;
            let expected = self.content(name, ty, found.len() / size, content)?;
            // What is not a number is within nothing.
            let is_near = |a: &[u8], b: &[u8]| (number(ty, a) - number(ty, b)).abs() <= *within;
            let differs = |(a, b): (&[u8], &[u8])| a != b && (*within == 0.0 || !is_near(a, b));
            let pairs = || found.chunks(size).zip(expected.chunks(size));
            let count = pairs().filter(|pair| differs(*pair)).count();
            if let Some((at, (a, b))) = pairs().enumerate().find(|(_, pair)| differs(*pair)) {
                let (a, b) = (format_value(ty, a), format_value(ty, b));
                wrong.push(format!("{name}[{at}] is {a}, not {b}; {count} of {} differ", found.len() / size));
            }
        }
        Ok(match wrong.is_empty() {
            true => {
                Ok(format!("{} as expected", self.plan.checks.keys().cloned().collect::<Vec<_>>().join(", ")))
            }
            false => Err(wrong.join("; ")),
        })
    }
}

enum Argument<'a> {
    Buffer(&'a str),
    Value(Prepared),
}

/// The type of a buffer and the buffer. Names that there are not were refused with the plan.
fn buffer<'a>(buffers: &'a BTreeMap<String, Prepared>, name: &str) -> (Ty, &'a Buffer<u8>) {
    match &buffers[name] {
        Prepared::Buffer { ty, buffer } => (*ty, buffer),
        Prepared::Scalar(_) => unreachable!("buffers are made from buffers' texts"),
    }
}
