//! Comparison of results with those of the host.

use std::fmt::Display;

use warploom::grouped;

/// What was found right, or the first thing that is wrong, as a sentence.
pub type Check = Result<String, String>;

/// Compares a result with the host's, element by element. `what` names the elements, for example `sums`.
pub(crate) fn equal<T: PartialEq + Display>(what: &str, got: &[T], expected: &[T]) -> Check {
    let count = grouped(expected.len() as u64);
    if got.len() != expected.len() {
        return Err(format!("{} {what}, the host has {count}", grouped(got.len() as u64)));
    }
    let mut wrong = got.iter().zip(expected).enumerate().filter(|(_, (g, e))| g != e);
    let Some((at, (got, expected))) = wrong.next() else {
        return Ok(format!("{count} {what} equal the host's"));
    };
    let differ = grouped(1 + wrong.count() as u64);
    Err(format!("{differ} of {count} {what} differ from the host's; number {at} is {got}, not {expected}"))
}

/// Compares floats with the host's. They may differ by `tolerance` relative to the host's, or by `tolerance` itself
/// if that is smaller than 1.
pub(super) fn close(what: &str, got: &[f32], expected: &[f32], tolerance: f32) -> Check {
    let count = grouped(expected.len() as u64);
    if got.len() != expected.len() {
        return Err(format!("{} {what}, the host has {count}", grouped(got.len() as u64)));
    }
    let off =
        |(g, e): &(&f32, &f32)| (*g - *e).abs() > tolerance * e.abs().max(1.0) || g.is_nan() || e.is_nan();
    let mut wrong = got.iter().zip(expected).enumerate().filter(|(_, pair)| off(pair));
    let Some((at, (got, expected))) = wrong.next() else {
        return Ok(format!("{count} {what} are within {tolerance} of the host's"));
    };
    let differ = grouped(1 + wrong.count() as u64);
    Err(format!(
        "{differ} of {count} {what} are not within {tolerance} of the host's; number {at} is {got}, not {expected}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_may_differ_a_little() {
        assert!(close("sums", &[1000.5, 0.0005], &[1000.0, 0.0], 1e-3).is_ok());
        let wrong = close("sums", &[1002.0, f32::NAN], &[1000.0, 0.0], 1e-3).unwrap_err();
        assert_eq!(wrong, "2 of 2 sums are not within 0.001 of the host's; number 0 is 1002, not 1000");
        assert!(close("sums", &[1.0], &[], 1.0).is_err());
    }

    #[test]
    fn tells_the_first_difference() {
        assert_eq!(equal("sums", &[1, 2], &[1, 2]), Ok("2 sums equal the host's".to_string()));
        let wrong = "2 of 3 sums differ from the host's; number 1 is 2, not 3".to_string();
        assert_eq!(equal("sums", &[1, 2, 3], &[1, 3, 2]), Err(wrong));
        assert_eq!(equal("sums", &[1], &[1, 3]), Err("1 sums, the host has 2".to_string()));
    }
}
