//! What a page shows of an output: `…` stands for any text of a line, and alone for any lines.

/// Whether an output is what the page shows.
pub(crate) fn matches(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line.trim() == "…" => {
            (0..=printed.len()).any(|at| matches(rest, &printed[at..]))
        }
        Some((line, rest)) => match printed.split_first() {
            Some((first, others)) => line_matches(line, first) && matches(rest, others),
            None => false,
        },
    }
}

fn line_matches(shown: &str, printed: &str) -> bool {
    let mut parts = shown.trim_end().split('…');
    let mut rest = printed.trim_end();
    let first = parts.next().unwrap();
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    let mut exact = true;
    let mut last = "";
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
        (exact, last) = (false, part);
    }
    if exact { rest.is_empty() } else { last.is_empty() || printed.trim_end().ends_with(last) }
}

/// What the page should show, with the same lines left out; `None` if they are not found again.
pub(crate) fn updated(shown: &[String], printed: &[String]) -> Option<Vec<String>> {
    let mut result = Vec::new();
    let mut from = 0;
    let parts: Vec<&[String]> = shown.split(|line| line.trim() == "…").collect();
    for (at, part) in parts.iter().enumerate() {
        let (first, last) = (at == 0, at + 1 == parts.len());
        if !first {
            result.push("…".to_string());
        }
        if first && last {
            result.extend(printed.iter().enumerate().map(|(at, line)| kept(part.get(at), line)));
            return Some(result);
        }
        let at_most = printed.len().checked_sub(part.len())?;
        let mut places = match (first, last) {
            (true, _) => 0..=0,
            (_, true) => at_most..=at_most,
            _ => from..=at_most,
        };
        if part.is_empty() {
            continue;
        }
        let likeness = |place: usize| {
            let pairs = part.iter().zip(&printed[place..]);
            pairs.map(|(shown, printed)| like(shown, printed)).sum::<f64>() / part.len() as f64
        };
        let best = places.next()?;
        let best =
            places.fold(best, |best, place| if likeness(place) > likeness(best) { place } else { best });
        if best < from || likeness(best) < 0.4 {
            return None;
        }
        result.extend(part.iter().zip(&printed[best..]).map(|(shown, printed)| kept(Some(shown), printed)));
        from = best + part.len();
    }
    Some(result)
}

/// The line that is shown if it still holds; otherwise the line that was printed, without what depends on the host.
fn kept(shown: Option<&String>, printed: &str) -> String {
    match shown {
        Some(shown) if line_matches(shown, printed) => shown.clone(),
        _ if printed.starts_with("wall time") => "wall time  …".to_string(),
        _ => printed.trim_end().to_string(),
    }
}

/// How many words two lines share, from 0 to 1. Numbers are alike.
fn like(a: &str, b: &str) -> f64 {
    let words = |line: &str| -> Vec<String> {
        let plain: String = line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        plain
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(String::from)
            .collect()
    };
    let (a, mut b) = (words(a), words(b));
    if a.is_empty() && b.is_empty() {
        return 1.0;
    }
    let all = (a.len() + b.len()) as f64;
    let mut shared = 0;
    for word in a {
        if let Some(at) = b.iter().position(|other| *other == word) {
            b.swap_remove(at);
            shared += 1;
        }
    }
    2.0 * f64::from(shared) / all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(String::from).collect()
    }

    #[test]
    fn what_is_left_out_matches_anything() {
        let printed = lines("a 1\nb 2\n\nwall time  3 s, 4 M\nend");
        for shown in [
            "a 1\n…\nend",
            "…",
            "a 1\nb 2\n\nwall time  …\nend",
            "…\nwall … s, … M\n…",
            "a 1\nb 2\n…\nend\n…",
        ] {
            assert!(matches(&lines(shown), &printed), "{shown}");
        }
        for shown in ["a 1", "a 1\n…\nwall", "a 2\n…", "…\nwall … s\n…", ""] {
            assert!(!matches(&lines(shown), &printed), "{shown}");
        }
    }

    #[test]
    fn an_update_keeps_what_was_left_out() {
        let printed = lines("kernel k\ncycles 12\nnew 7\nlocks 5 taken\nwall time  3 s\nlast");
        let shown = lines("kernel k\n…\nlocks 4 taken\n…");
        assert_eq!(updated(&shown, &printed).unwrap(), lines("kernel k\n…\nlocks 5 taken\n…"));
        let all = lines("kernel k\ncycles 12\nnew 7\nlocks 5 taken\nwall time  …\nlast");
        assert_eq!(updated(&lines("kernel k\ncycles 11"), &printed).unwrap(), all);
        assert_eq!(updated(&lines("…\nbarriers that nobody printed\n…"), &printed), None);
    }
}
