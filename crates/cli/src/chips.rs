//! `warploom chips`: the chips that can be simulated.

use serde_json::{Value, json};
use warploom::{Chip, Divergence, Error, StorageBits, chip};

use crate::cli::ChipsOptions;
use crate::failure::{Exit, Failure};
use crate::output::print_json;
use crate::term::{self, grouped};

/// Lists the chips, or shows one chip's file.
pub(crate) fn chips(options: &ChipsOptions) -> Result<Exit, Failure> {
    let load = |name: &str| Chip::load(name, &[]).map_err(Error::from);
    let text = match &options.name {
        Some(name) if options.json => {
            print_json(to_json(&load(name)?)?)?;
            return Ok(Exit::Good);
        }
        Some(name) => {
            // A file with a mistake is refused, not shown.
            let cost = cost(&load(name)?);
            format!("{}\n{cost}", chip::text(name).map_err(Error::from)?.trim_end())
        }
        None => {
            let chips = chip::names().into_iter().map(load).collect::<Result<Vec<_>, _>>()?;
            if options.json {
                let chips = chips.iter().map(to_json).collect::<Result<Vec<_>, _>>()?;
                print_json(json!({ "chips": chips }))?;
                return Ok(Exit::Good);
            } else {
                table(&chips)
            }
        }
    };
    term::print(&text)?;
    Ok(Exit::Good)
}

/// Storage costs derived from the chip, as comments, so that the text stays a valid chip file.
fn cost(chip: &Chip) -> String {
    let bits = StorageBits::of(chip);
    let mut text = "\n# What BOWS and DDOS would cost an SM in storage with these settings:\n".to_string();
    for (name, bits) in bits.named() {
        text.push_str(&format!("#   {name:<24}{:>8} bits\n", grouped(bits)));
    }
    text
}

fn to_json(chip: &Chip) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(chip).map_err(std::io::Error::from)?;
    value["bows_storage_bits"] = serde_json::to_value(StorageBits::of(chip)).map_err(std::io::Error::from)?;
    Ok(value)
}

fn table(chips: &[Chip]) -> String {
    let header =
        ["chip", "SMs", "lanes", "threads/SM", "registers/SM", "shared/SM", "memory", "lanes diverge by"];
    let mut rows = vec![header.map(str::to_string)];
    rows.extend(chips.iter().map(|chip| {
        let divergence = match chip.sm.divergence {
            Divergence::SimtStack => "SIMT stack",
            Divergence::IndependentThreads => "independent threads",
        };
        [
            chip.name.clone(),
            chip.sm.count.to_string(),
            chip.sm.warp_lanes.to_string(),
            grouped(chip.sm.max_threads as u64),
            grouped(chip.sm.registers as u64),
            format!("{} KB", chip.sm.shared_bytes / 1024),
            format!("{:.1} GB", chip.memory.global_bytes as f64 / (1u64 << 30) as f64),
            divergence.to_string(),
        ]
    }));
    let widths: [usize; 8] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or_default());
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            0 | 7 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text.push('\n');
    let name = widths[0];
    text.extend(chips.iter().map(|chip| format!("{:<name$}  {}\n", chip.name, chip.description)));
    text.push_str(
        "\n`warploom chips NAME` shows every number of a chip with its source; --set changes them.\n",
    );
    text
}
