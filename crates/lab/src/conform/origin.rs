//! The GPU on which results were recorded.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use warploom::Device;

use super::error::{Error, Result};

/// The GPU on which results were recorded, its driver, and the date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub chip: String,
    /// The compute capability, such as `sm_90`.
    pub target: String,
    /// The CUDA version of the driver that compiled the PTX, such as `13.0`.
    pub driver: String,
    /// Such as `2026-01-31`.
    pub date: String,
}

impl Origin {
    /// Describes a real GPU. A simulated chip is refused.
    pub fn of(device: &Device) -> Result<Origin> {
        let chip = device.name().to_string();
        if !device.is_real() {
            return Err(Error::Simulated(chip));
        }
        let unknown = || ("unknown".to_string(), "unknown".to_string());
        let (target, driver) = target_and_driver(&chip).unwrap_or_else(unknown);
        Ok(Origin { chip, target, driver, date: today() })
    }
}

/// What the driver says of the GPU with this name.
#[cfg(feature = "cuda")]
fn target_and_driver(chip: &str) -> Option<(String, String)> {
    let info = warploom::cuda_devices().unwrap_or_default().into_iter().find(|i| i.name == chip)?;
    let ((major, minor), (x, y)) = (info.compute_capability, info.driver_version);
    Some((format!("sm_{major}{minor}"), format!("{x}.{y}")))
}

#[cfg(not(feature = "cuda"))]
fn target_and_driver(_: &str) -> Option<(String, String)> {
    None
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}), CUDA {}, {}", self.chip, self.target, self.driver, self.date)
    }
}

pub(crate) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (year, month, day) = civil(seconds / 86400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The date of a day, counted from 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years that start in March have the leap day last. 400 such years have 146097 days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_454), (2026, 1, 1));
    }

    #[test]
    fn simulated_chips_are_refused() {
        let device = Device::sim("h200").unwrap();
        assert!(matches!(Origin::of(&device), Err(Error::Simulated(name)) if name == "h200"));
    }
}
