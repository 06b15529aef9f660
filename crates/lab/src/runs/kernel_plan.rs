//! Kernels of a user's file as a run: buffers, and launches one after the other.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use warploom::{Device, Launch, Report};

use super::metrics::Metrics;
use super::procedure::{RunContext, RunError};
use crate::kernel::{ArgSpec, Fill, Language, PrepareError, Prepared, language, prepare, read_at_most};
use crate::work::total;

/// What is launched with what. All paths are relative to the run's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KernelPlan {
    /// PTX text or a SASS listing.
    pub file: String,
    /// Buffers by name: `u32:1024=zero`. They keep their content from launch to launch.
    pub buffers: BTreeMap<String, String>,
    pub launches: Vec<PlannedLaunch>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedLaunch {
    /// Not needed if the file has only one kernel.
    pub entry: Option<String>,
    pub grid: [u32; 3],
    pub block: Option<[u32; 3]>,
    pub shared_bytes: u32,
    /// Names of buffers, or values as `--arg` of `warploom run` takes them.
    pub args: Vec<String>,
    /// How often it is launched.
    pub times: u32,
}

/// The largest kernel file that is read.
const LARGEST_KERNEL_FILE: u64 = 256 << 20;

impl KernelPlan {
    /// The files that the run reads: the kernel, and what fills buffers.
    pub(super) fn files(&self) -> Vec<String> {
        let fills = self.buffers.values().map(|text| format!("buf:{text}").parse());
        let args = self.launches.iter().flat_map(|launch| &launch.args).map(|text| text.parse());
        let files = fills.chain(args).filter_map(|spec| match spec {
            Ok(ArgSpec::Buffer(buffer)) => match buffer.fill {
                Fill::File(path) => Some(path.to_string_lossy().into_owned()),
                _ => None,
            },
            _ => None,
        });
        std::iter::once(self.file.clone()).chain(files).collect()
    }

    /// Says what is wrong with the texts of buffers and arguments.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (name, text) in &self.buffers {
            format!("buf:{text}").parse::<ArgSpec>().map_err(|error| format!("buffer `{name}`: {error}"))?;
        }
        for launch in &self.launches {
            for (at, text) in launch.args.iter().enumerate() {
                if !self.buffers.contains_key(text) {
                    let known: Vec<_> = self.buffers.keys().map(String::as_str).collect();
                    text.parse::<ArgSpec>().map_err(|error| {
                        format!(
                            "argument {at}, `{text}`, is no buffer ({}) and no value: {error}",
                            known.join(", ")
                        )
                    })?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn execute(&self, context: &RunContext<'_>) -> Result<Metrics, RunError> {
        let mut gpu = context.device()?;
        let path = context.base().join(&self.file);
        let text = read_at_most(&path, LARGEST_KERNEL_FILE)
            .map_err(|error| RunError::Invalid(format!("cannot read `{}`: {error}", path.display())))?;
        // Messages name the file as the user wrote it, wherever its folder is.
        let module = match language(&path, &text) {
            Language::Ptx => gpu.load_ptx_named(&self.file, text)?,
            Language::Sass => gpu.load_sass_named(&self.file, text)?,
        };
        let mut buffers = BTreeMap::new();
        for (name, text) in &self.buffers {
            let prepared = make(&mut gpu, name, &format!("buf:{text}"), context)?;
            buffers.insert(name.as_str(), prepared);
        }
        let mut reports: Vec<Report> = Vec::new();
        for launch in &self.launches {
            let kernel = match (&launch.entry, module.kernel_names().as_slice()) {
                (Some(name), _) => module.kernel(name)?,
                (None, [only]) => module.kernel(only)?,
                (None, names) => {
                    return Err(RunError::Invalid(format!(
                        "`{}` has {} kernels ({}): choose one with `entry`",
                        self.file,
                        names.len(),
                        names.join(", ")
                    )));
                }
            };
            let values = launch.args.iter().enumerate().map(|(at, text)| match buffers.get(text.as_str()) {
                Some(_) => Ok(None),
                None => make(&mut gpu, &format!("argument {at}"), text, context).map(Some),
            });
            let values = values.collect::<Result<Vec<Option<Prepared>>, _>>()?;
            for _ in 0..launch.times {
                let args = values.iter().zip(&launch.args).map(|(value, name)| match value {
                    Some(value) => value.arg(),
                    None => buffers[name.as_str()].arg(),
                });
                let shape = Launch {
                    block: launch.block,
                    dynamic_shared_bytes: launch.shared_bytes,
                    ..Launch::grid(launch.grid)
                };
                reports.push(gpu.launch(&kernel, context.prepare(shape), args.collect::<Vec<_>>())?);
            }
        }
        Ok(Metrics::of_launches(&total(&reports), &reports))
    }
}

fn make(gpu: &mut Device, name: &str, text: &str, context: &RunContext<'_>) -> Result<Prepared, RunError> {
    let spec: ArgSpec = text.parse().map_err(|error| RunError::Invalid(format!("{name}: {error}")))?;
    prepare(gpu, name, &spec, context.base()).map_err(|error| match error {
        PrepareError::Device(error) => RunError::Device(error),
        PrepareError::Size { message, help } => {
            RunError::Invalid(help.iter().fold(message, |message, help| format!("{message}; {help}")))
        }
        other => RunError::Invalid(other.to_string()),
    })
}

impl fmt::Display for KernelPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for launch in &self.launches {
            let [x, y, z] = launch.grid;
            write!(f, " {}<{x},{y},{z}>({})", launch.entry.as_deref().unwrap_or(""), launch.args.join(", "))?;
        }
        Ok(())
    }
}
