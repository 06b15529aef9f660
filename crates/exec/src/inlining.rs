//! The lines that an inlined instruction comes from. A compiler's line table gives an instruction the line of the
//! innermost function, which for an atomic of CUDA is in a header; `inlined_at` leads from there to the caller's line.
//!
//! The chain is read from the module's text, and only when a message needs it:
//!
//! ```text
//! .loc 1 16 5
//! .loc 1 5 5, function_name $L__info_string0, inlined_at 1 16 5
//! .loc 2 397 9, function_name $L__info_string2, inlined_at 1 5 5
//! ```

use warploom_isa::Source;

/// File, line and column, as the text numbers them.
type Position = [u32; 3];

/// Deeper chains are cut off: a text could lead in circles.
const DEEPEST: usize = 32;

/// Folders of headers that come with a compiler or with CUDA.
const HEADERS: [&str; 5] = ["include", "libcudacxx", "cooperative_groups", "cub", "thrust"];

/// The lines of the instruction at byte `at` of a text, the innermost function's first: `["device.hpp:9", "k.cu:7"]`.
/// Empty without a line table.
pub fn frames(source: &Source, at: u32) -> Vec<String> {
    let Some(text) = source.text.get(..at as usize) else { return Vec::new() };
    let mut frames = Vec::new();
    let mut before = text;
    let mut wanted = None;
    while frames.len() < DEEPEST
        && let Some((rest, position, inlined_at)) = last_location(before, wanted)
    {
        let [file, line, _] = position;
        frames
            .extend(file_name(&source.text, file).filter(|_| line > 0).map(|name| format!("{name}:{line}")));
        let Some(caller) = inlined_at else { break };
        (before, wanted) = (rest, Some(caller));
        // The caller's own line need not be in the table.
        if last_location(before, wanted).is_none() {
            let [file, line, _] = caller;
            frames.extend(file_name(&source.text, file).map(|name| format!("{name}:{line}")));
            break;
        }
    }
    frames
}

/// Of such lines, the innermost that is not in a header, or else the outermost.
pub fn users_line(frames: &[String]) -> Option<&String> {
    let is_header = |line: &str| line.split(['/', '\\']).any(|part| HEADERS.contains(&part));
    frames.iter().find(|line| !is_header(line)).or(frames.last())
}

/// The last `.loc` of a text, or the last one of that position: the text before it, its position, and where it was
/// inlined.
fn last_location(mut text: &str, wanted: Option<Position>) -> Option<(&str, Position, Option<Position>)> {
    loop {
        let start = text.rfind(".loc")?;
        let line = text[start + 4..].lines().next().unwrap_or_default();
        text = &text[..start];
        let Some(position) = position(line) else { continue };
        if wanted.is_none_or(|wanted| wanted == position) {
            let inlined_at = line.split_once("inlined_at").and_then(|(_, rest)| self::position(rest));
            return Some((text, position, inlined_at));
        }
    }
}

/// Three numbers at the beginning of a text.
fn position(text: &str) -> Option<Position> {
    let mut numbers = text.split([' ', '\t', ',']).filter(|part| !part.is_empty()).map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?])
}

/// The name that `.file` gives a number.
fn file_name(text: &str, number: u32) -> Option<&str> {
    text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix(".file")).find_map(|line| {
        let (of, name) = line.trim_start().split_once(char::is_whitespace)?;
        let name = name.trim_start().strip_prefix('"')?;
        (of.parse() == Ok(number)).then(|| name.split('"').next().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
.loc 1 10 5
.loc 1 12 5, function_name $a, inlined_at 1 10 5
.loc 2 402 9, function_name $b, inlined_at 1 12 5
.loc 2 397 9, function_name $c, inlined_at 2 402 9
atom
.loc 1 5 1
ld
.loc 2 7 1, function_name $c, inlined_at 1 99 2
st
.file 1 \"dir/k.cu\"
.file 2 \"cuda/include/device.hpp\", 17, 4
";

    fn frames_at(instruction: &str) -> Vec<String> {
        let source = Source { name: "k.ptx".into(), text: TEXT.into(), files: Vec::new() };
        let at = TEXT.find(&format!("\n{instruction}\n")).unwrap() + 1;
        frames(&source, at as u32)
    }

    #[test]
    fn chains_lead_from_headers_to_the_user() {
        let chain = frames_at("atom");
        let header = |line| format!("cuda/include/device.hpp:{line}");
        assert_eq!(chain, [header(397), header(402), "dir/k.cu:12".to_string(), "dir/k.cu:10".to_string()]);
        assert_eq!(users_line(&chain).unwrap(), "dir/k.cu:12");
    }

    #[test]
    fn lines_that_are_not_inlined_stand_alone() {
        assert_eq!(frames_at("ld"), ["dir/k.cu:5"]);
        assert_eq!(frames_at("st"), ["cuda/include/device.hpp:7", "dir/k.cu:99"]);
        assert_eq!(users_line(&[]), None);
        let headers = ["a/include/x.h:1".to_string(), "b/include/y.h:2".to_string()];
        assert_eq!(users_line(&headers).unwrap(), "b/include/y.h:2");
    }
}
