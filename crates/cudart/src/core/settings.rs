//! What the user asks for, in the variables `WARPLOOM_…`, which `warploom exec` sets from its options.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use warploom::{
    Bows, Chip, DelayLimit, OutsideLoads, SibSource, SimModel, SimOptions, Sms, Timing, TraceOptions,
};

use crate::core::timed::Timed;

/// Bytes per second of the link between host and device, unless told otherwise: PCIe 3.0 with 16 lanes, as measured
/// with large copies, in units of 1e9.
const LINK_GBPS: f64 = 12.0;

/// What the driver of a GPU rounds allocations up to.
const GRANULE: u64 = 512;

/// What kernels may do outside of allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Bounds {
    /// Loads near an allocation read zeros, and the user is told; all else faults.
    #[default]
    Warn,
    /// Every access faults.
    Fault,
    /// Allocations end at a multiple of [`GRANULE`], as on a GPU; beyond that it is as `Warn`.
    Rounded,
}

#[derive(Debug)]
pub(crate) struct Settings {
    /// A built-in chip or a chip file; `None`: by the target of the program's PTX.
    chip: Option<String>,
    set: Vec<String>,
    model: SimModel,
    timing: Timing,
    pub(crate) timed: Timed,
    /// A line of JSON for each launch is appended here.
    pub(crate) json: Option<PathBuf>,
    /// Where the time went is written into this folder, a file for each kernel.
    pub(crate) profile: Option<PathBuf>,
    /// The timeline of the last timed launch, for Perfetto.
    pub(crate) trace: Option<PathBuf>,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) max_cycles: Option<u64>,
    pub(crate) link_gbps: f64,
    bounds: Bounds,
    /// No table of kernels at the end.
    pub(crate) quiet: bool,
    /// The CUDA version that the program was built with, if it cannot be found out: 11, 12 or 13.
    pub(crate) cuda_version: Option<u32>,
}

impl Settings {
    /// Reads the variables through `get`. A mistake is told in words.
    pub(crate) fn read(get: impl Fn(&str) -> Option<String>) -> Result<Settings, String> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let policy = get("WARPLOOM_SCHED");
        if let Some(name) = &policy {
            let known: Vec<_> = warploom::policies().iter().map(|&(name, _)| name).collect();
            if !known.contains(&name.as_str()) {
                return Err(format!("WARPLOOM_SCHED={name}: there are {}", known.join(", ")));
            }
        }
        let limit = match get("WARPLOOM_BOWS_LIMIT").as_deref() {
            None => None,
            Some("adaptive") => Some(DelayLimit::Adaptive),
            Some(_) => number(&get, "WARPLOOM_BOWS_LIMIT")?.map(DelayLimit::Fixed),
        };
        let sib = match get("WARPLOOM_SIB") {
            None => None,
            Some(name) => {
                let found = SibSource::ALL.iter().find(|(_, known)| *known == name);
                let known = SibSource::ALL.map(|(_, known)| known).join(", ");
                Some(found.ok_or_else(|| format!("WARPLOOM_SIB={name}: there are {known}"))?.0)
            }
        };
        let bows = get("WARPLOOM_BOWS").is_some_and(|value| value != "0") || limit.is_some() || sib.is_some();
        let model = match get("WARPLOOM_MODEL").as_deref() {
            None | Some("timing") => SimModel::Timing,
            Some("functional") => SimModel::Functional,
            Some("fast") => SimModel::Fast,
            Some(name) => return Err(format!("WARPLOOM_MODEL={name}: it is timing, fast or functional")),
        };
        let timed = get("WARPLOOM_TIMED").map(|text| Timed::parse(&text)).transpose();
        let profile = get("WARPLOOM_PROFILE").map(PathBuf::from);
        let trace = get("WARPLOOM_TRACE").map(PathBuf::from);
        let sms = match get("WARPLOOM_TRACE_SM").as_deref() {
            Some("all") => Sms::All,
            _ => Sms::Only(vec![number(&get, "WARPLOOM_TRACE_SM")?.unwrap_or(0)]),
        };
        let link_gbps = number(&get, "WARPLOOM_LINK_GBPS")?.unwrap_or(LINK_GBPS);
        if !(link_gbps > 0.0 && link_gbps.is_finite()) {
            return Err(format!("WARPLOOM_LINK_GBPS={link_gbps}: a link has some bandwidth"));
        }
        Ok(Settings {
            chip: get("WARPLOOM_CHIP"),
            set: get("WARPLOOM_SET").iter().flat_map(|set| set.lines()).map(str::to_string).collect(),
            model,
            timing: Timing {
                policy,
                bows: Bows { enabled: bows.then_some(true), limit, sib },
                threads: number(&get, "WARPLOOM_THREADS")?.unwrap_or(0),
                profile: profile.is_some(),
                over_time: profile.is_some(),
                trace: trace.is_some().then(|| TraceOptions { sms, ..TraceOptions::default() }),
                ..Timing::default()
            },
            timed: timed.map_err(|error| format!("WARPLOOM_TIMED={error}"))?.unwrap_or_default(),
            json: get("WARPLOOM_JSON").map(PathBuf::from),
            profile,
            trace,
            time_limit: number(&get, "WARPLOOM_TIME_LIMIT")?.map(Duration::from_secs),
            max_cycles: number(&get, "WARPLOOM_MAX_CYCLES")?,
            link_gbps,
            bounds: match get("WARPLOOM_BOUNDS").as_deref() {
                None | Some("warn") => Bounds::Warn,
                Some("fault") => Bounds::Fault,
                Some("rounded") => Bounds::Rounded,
                Some(name) => return Err(format!("WARPLOOM_BOUNDS={name}: it is warn, fault or rounded")),
            },
            quiet: get("WARPLOOM_QUIET").is_some_and(|value| value != "0"),
            cuda_version: number(&get, "WARPLOOM_CUDA_VERSION")?,
        })
    }

    /// The chip, for a program whose newest PTX is for compute capability `arch` (90 for 9.0).
    pub(crate) fn chip(&self, arch: Option<u32>) -> Result<Chip, String> {
        let by_arch = match arch {
            // Without kernels in the program they come later, from compilers of today.
            None | Some(70..) => "h200",
            Some(60..) => "gtx1080ti",
            Some(_) => "gtx480",
        };
        let name = self.chip.as_deref().unwrap_or(by_arch);
        let chip = Chip::load(name, &self.set).map_err(|error| error.to_string())?;
        if let Some(TraceOptions { sms: Sms::Only(sms), .. }) = &self.timing.trace
            && let Some(sm) = sms.iter().find(|&&sm| sm >= chip.sm.count)
        {
            return Err(format!(
                "there is no SM {sm} to be traced (--trace-sm, WARPLOOM_TRACE_SM): {} has {}, from 0",
                chip.name, chip.sm.count
            ));
        }
        Ok(chip)
    }

    pub(crate) fn sim_options(&self) -> SimOptions {
        let outside_loads = match self.bounds {
            Bounds::Fault => OutsideLoads::Fault,
            Bounds::Warn | Bounds::Rounded => OutsideLoads::Zero,
        };
        let timing = self.timing.clone();
        SimOptions { model: self.model, timing, outside_loads, ..SimOptions::default() }
    }

    /// Allocations end at a multiple of this.
    pub(crate) fn allocation_granule(&self) -> u64 {
        if self.bounds == Bounds::Rounded { GRANULE } else { 1 }
    }

    /// Whether launches are timed at all.
    pub(crate) fn is_timed(&self) -> bool {
        self.model != SimModel::Functional
    }
}

fn number<T: FromStr>(get: &impl Fn(&str) -> Option<String>, name: &str) -> Result<Option<T>, String> {
    let Some(text) = get(name) else { return Ok(None) };
    let value = text.replace('_', "").parse().map_err(|_| format!("{name}={text}: it is a number"))?;
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Settings::read(|name| find(name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn defaults() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.timed, Timed::All);
        assert!(settings.is_timed() && !settings.quiet && settings.json.is_none());
        let name = |arch| settings.chip(arch).unwrap().name;
        assert_eq!(
            [name(None), name(Some(35)), name(Some(61)), name(Some(90))],
            ["h200", "gtx480", "gtx1080ti", "h200"]
        );
    }

    #[test]
    fn options() {
        let settings = read(&[
            ("WARPLOOM_CHIP", "gtx480"),
            ("WARPLOOM_SET", "sm.count=2\nlaunch.overhead_ns=1"),
            ("WARPLOOM_BOWS_LIMIT", "500"),
            ("WARPLOOM_MODEL", "functional"),
            ("WARPLOOM_TIMED", "first:1"),
        ])
        .unwrap();
        let chip = settings.chip(Some(90)).unwrap();
        assert_eq!((chip.name.as_str(), chip.sm.count, chip.launch.overhead_ns), ("gtx480", 2, 1));
        assert_eq!(settings.timing.bows.limit, Some(DelayLimit::Fixed(500)));
        assert_eq!(settings.timing.bows.enabled, Some(true));
        assert!(!settings.is_timed());
        assert_eq!(settings.timed, Timed::First(1));
    }

    #[test]
    fn only_sms_that_are_there_are_traced() {
        let chip = |sm| {
            let variables = [("WARPLOOM_CHIP", "gtx480"), ("WARPLOOM_TRACE", "x"), ("WARPLOOM_TRACE_SM", sm)];
            read(&variables).unwrap().chip(None)
        };
        assert!(chip("14").is_ok() && chip("all").is_ok());
        let error = chip("15").unwrap_err();
        assert!(error.contains("--trace-sm") && error.contains("gtx480 has 15"), "{error}");
    }

    #[test]
    fn bounds() {
        let of = |variables: &[(&str, &str)]| {
            let settings = read(variables).unwrap();
            (settings.allocation_granule(), settings.sim_options().outside_loads)
        };
        assert_eq!(of(&[]), (1, OutsideLoads::Zero));
        assert_eq!(of(&[("WARPLOOM_BOUNDS", "warn")]), of(&[]));
        assert_eq!(of(&[("WARPLOOM_BOUNDS", "fault")]), (1, OutsideLoads::Fault));
        assert_eq!(of(&[("WARPLOOM_BOUNDS", "rounded")]), (512, OutsideLoads::Zero));
    }

    #[test]
    fn mistakes_name_the_variable() {
        for (name, value) in [
            ("WARPLOOM_SCHED", "best"),
            ("WARPLOOM_SIB", "guess"),
            ("WARPLOOM_MODEL", "quick"),
            ("WARPLOOM_TIMED", "some"),
            ("WARPLOOM_THREADS", "many"),
            ("WARPLOOM_LINK_GBPS", "0"),
            ("WARPLOOM_BOUNDS", "none"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
