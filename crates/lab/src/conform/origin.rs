//! Where recorded results come from.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use warploom::Device;

use super::error::{Error, Result};

/// Where recorded results come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The GPU's name.
    pub chip: String,
    /// The driver that compiled the PTX, as far as the device tells.
    pub driver: String,
    /// The day, `2026-01-31`.
    pub date: String,
}

/// A kernel that does nothing: a device that can show its program executes it itself.
const PROBE: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry probe()\n{\n    ret;\n}\n";

impl Origin {
    /// Describes a real GPU; refuses a simulated chip.
    pub fn of(device: &mut Device) -> Result<Origin> {
        if is_simulated(device)? {
            return Err(Error::Simulated(device.name().to_string()));
        }
        Ok(Origin { chip: device.name().to_string(), driver: String::new(), date: today() })
    }
}

/// Whether a device executes programs itself.
pub(crate) fn is_simulated(device: &mut Device) -> Result<bool> {
    Ok(device.load_ptx(PROBE)?.kernel("probe")?.program().is_some())
}

pub(crate) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (year, month, day) = civil(seconds / 86400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The date of a day since 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years that begin in March put the leap day last; 400 of them have 146097 days.
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
        let mut device = Device::sim("h200").unwrap();
        assert!(matches!(Origin::of(&mut device), Err(Error::Simulated(name)) if name == "h200"));
    }
}
