//! How many tiles an SM has lock bits for.
//!
//! Lock bits belong to the SM and follow from addresses, so CTAs that are resident together may use the same ones.
//! Two producers with one bit wait for each other forever. The chip does not prevent it: lock bits do not limit
//! occupancy. But shared memory does, and CTAs lie in it one after another. So a CTA asks for additional shared
//! memory until all CTAs that fit use distinct bits.

use warploom::{Chip, Error, Result};

#[derive(Clone, Copy, Debug)]
pub(super) struct Cta<'a> {
    pub kernel: &'a str,
    pub shared_bytes: u32,
    pub threads: u32,
    /// Contiguous words of shared memory whose lock bits the CTA takes.
    pub lock_words: u32,
}

/// Bytes of unused dynamic shared memory with which no two resident CTAs share a lock bit.
pub(super) fn padding(chip: &Chip, cta: Cta<'_>) -> Result<u32> {
    let Cta { kernel, shared_bytes: fixed, threads, lock_words: words } = cta;
    let (bits, sm) = (chip.lock.bits, &chip.sm);
    if words > bits {
        let has = if bits == 0 { "none".to_string() } else { bits.to_string() };
        let wanted = words.next_power_of_two();
        let message = format!(
            "kernel `{kernel}` takes {words} lock bits an SM; the chip `{}` has {has}: see --chip gtx570 and \
             --set lock.bits={wanted}",
            chip.name
        );
        return Err(Error::Link(message));
    }
    let fits = |bytes: &u32| {
        let by_memory = sm.shared_bytes / bytes;
        let ctas = by_memory.min(sm.max_ctas).min(sm.max_threads / threads.max(1));
        apart(ctas, bytes / 4, words, bits)
    };
    let unit = sm.shared_unit_bytes.max(4);
    let sizes = (fixed.next_multiple_of(unit).max(unit)..=sm.shared_bytes).step_by(unit as usize);
    // The first size that works admits the most CTAs. The largest, with room for one CTA, always works.
    let bytes = sizes.into_iter().find(fits).unwrap_or(fixed);
    Ok(bytes - fixed)
}

/// Whether pieces of `words` bits that start every `pitch` bits are disjoint, modulo `bits`.
fn apart(pieces: u32, pitch: u32, words: u32, bits: u32) -> bool {
    // By symmetry it is enough to compare every piece with the first.
    (1..pieces).all(|piece| {
        let begin = piece * pitch % bits;
        begin >= words && bits - begin >= words
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_ring() {
        assert!(apart(1, 0, 1024, 1024) && apart(4, 256, 256, 1024) && apart(4, 768, 256, 1024));
        assert!(!apart(5, 256, 256, 1024) && !apart(2, 1024, 256, 1024) && !apart(2, 200, 256, 1024));
    }

    fn chip(name: &str, set: &[&str]) -> Chip {
        Chip::load(name, &set.iter().map(|text| text.to_string()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn as_many_as_have_bits() {
        let resident = |set: &str, shared_bytes, threads, lock_words| {
            let chip = chip("gtx570", &[set]);
            let cta = Cta { kernel: "k", shared_bytes, threads, lock_words };
            let bytes = shared_bytes + padding(&chip, cta).unwrap();
            assert!(bytes.is_multiple_of(chip.sm.shared_unit_bytes) || bytes == shared_bytes, "{bytes}");
            (chip.sm.shared_bytes / bytes).min(chip.sm.max_ctas).min(chip.sm.max_threads / threads)
        };
        assert_eq!(resident("lock.bits=1024", 4096, 1024, 1024), 1);
        assert_eq!(resident("lock.bits=1024", 4736, 128, 128), 8);
        assert_eq!(resident("lock.bits=1024", 5248, 256, 256), 4);
        assert_eq!(resident("lock.bits=4096", 5248, 256, 256), 6);
        assert_eq!(resident("lock.bits=1024", 3072, 256, 768), 1);
    }

    #[test]
    fn too_few_bits() {
        let cta = Cta { kernel: "k", shared_bytes: 0, threads: 1024, lock_words: 3072 };
        let wrong = |name: &str| padding(&chip(name, &[]), cta).unwrap_err().to_string();
        assert!(wrong("gtx570").contains("has 1024") && wrong("gtx570").contains("lock.bits=4096"));
        assert!(wrong("gtx480").contains("has none"));
    }
}
