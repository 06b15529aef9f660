//! Results held against the host's.

use std::fmt::Display;

use warploom::grouped;

/// What was found right, or the first thing that is wrong, in words.
pub type Check = Result<String, String>;

/// Compares a result with the host's, element by element. `what` names the elements: `sums`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_first_difference() {
        assert_eq!(equal("sums", &[1, 2], &[1, 2]), Ok("2 sums equal the host's".to_string()));
        let wrong = "2 of 3 sums differ from the host's; number 1 is 2, not 3".to_string();
        assert_eq!(equal("sums", &[1, 2, 3], &[1, 3, 2]), Err(wrong));
        assert_eq!(equal("sums", &[1], &[1, 3]), Err("1 sums, the host has 2".to_string()));
    }
}
