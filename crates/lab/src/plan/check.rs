//! Finds mistakes in a plan before the first launch.

use std::collections::BTreeMap;

use super::{ITERATION, Plan, PlanProblem, PlannedLaunch, Step, Word};
use crate::kernel::{BufferSpec, NamedArg};

/// What a buffer's text asks for.
pub(super) enum Content<'a> {
    Spec(BufferSpec),
    /// `u32:64=copy:other`: as another buffer is at the start.
    Copy {
        shape: BufferSpec,
        of: &'a str,
    },
}

impl Content<'_> {
    pub(super) fn spec(&self) -> &BufferSpec {
        match self {
            Content::Spec(spec) | Content::Copy { shape: spec, .. } => spec,
        }
    }
}

pub(super) fn content(text: &str) -> Result<Content<'_>, String> {
    match text.split_once("=copy:") {
        Some((shape, of)) => Ok(Content::Copy { shape: format!("{shape}=uninit").parse()?, of }),
        None => text.parse().map(Content::Spec),
    }
}

/// An argument: the name of its parameter, if it has one, and what is passed.
pub(super) fn argument<'a>(
    text: &'a str,
    buffers: &BTreeMap<String, String>,
) -> Result<(Option<&'a str>, Passed<'a>), String> {
    let known = |name: &str| buffers.contains_key(name);
    if known(text) {
        return Ok((None, Passed::Buffer(text)));
    }
    if let Some((name, buffer)) = text.split_once('=').filter(|(_, buffer)| known(buffer)) {
        return Ok((Some(name), Passed::Buffer(buffer)));
    }
    // The number is known only when the launch is made.
    let NamedArg { name, .. } = text.replace(ITERATION, "0").parse()?;
    let name = name.map(|name| &text[..name.len()]);
    let value = name.map_or(text, |name| &text[name.len() + 1..]);
    Ok((name, Passed::Value(value)))
}

pub(super) enum Passed<'a> {
    Buffer(&'a str),
    Value(&'a str),
}

impl Plan {
    /// Says what is wrong with a buffer.
    pub(super) fn check_buffer(&self, name: &str) -> Result<(), PlanProblem> {
        let wrong = |error: String| PlanProblem::new(format!("buffer `{name}`: {error}"));
        let Content::Copy { shape, of } = content(&self.buffers[name]).map_err(wrong)? else { return Ok(()) };
        let mut path = vec![name, of];
        let mut next = of;
        loop {
            let text = self.buffers.get(next).ok_or_else(|| self.unknown(next))?;
            match content(text).map_err(wrong)? {
                Content::Spec(spec) if spec.bytes() == shape.bytes() => return Ok(()),
                Content::Spec(spec) => {
                    let bytes =
                        |spec: &BufferSpec| spec.bytes().map_or("too many".to_string(), |b| b.to_string());
                    return Err(wrong(format!(
                        "it has {} bytes, and `{next}`, which it copies, {}",
                        bytes(&shape),
                        bytes(&spec)
                    ))
                    .help("a copy has the type and the length of its original"));
                }
                Content::Copy { of, .. } => {
                    let cycle = path.contains(&of);
                    path.push(of);
                    if cycle {
                        return Err(PlanProblem::new(format!(
                            "buffers copy each other: {}",
                            path.join(" copies ")
                        ))
                        .help("give one of them a content of its own, such as zero"));
                    }
                    next = of;
                }
            }
        }
    }

    fn unknown(&self, name: &str) -> PlanProblem {
        let known: Vec<_> = self.buffers.keys().map(|name| format!("`{name}`")).collect();
        PlanProblem::new(format!("there is no buffer `{name}`")).help(match known.is_empty() {
            true => "[buffers] names them".to_string(),
            false => format!("there are {}; [buffers] names them", known.join(", ")),
        })
    }

    fn buffer(&self, name: &str) -> Result<BufferSpec, PlanProblem> {
        let text = self.buffers.get(name).ok_or_else(|| self.unknown(name))?;
        Ok(content(text).map_err(PlanProblem::new)?.spec().clone())
    }

    /// Says what is wrong with a content for a buffer: of a `fill`, or of a check.
    pub(super) fn check_content(&self, buffer: &str, content: &str) -> Result<(), PlanProblem> {
        let shape = self.buffer(buffer)?;
        if content.starts_with("uninit") {
            return Err(PlanProblem::new(format!("`{buffer}`: uninit is no content")));
        }
        let text = format!("{}:{}={}", shape.ty, shape.count, content.replace(ITERATION, "0"));
        let read = text.parse::<BufferSpec>();
        read.map(|_| ()).map_err(|error| PlanProblem::new(format!("`{buffer}`: {error}")))
    }

    /// Says what is wrong with the word that ends a loop.
    pub(super) fn check_word(&self, word: &Word) -> Result<(), PlanProblem> {
        let spec = self.buffer(&word.buffer)?;
        match word.index < spec.count {
            true => Ok(()),
            false => Err(PlanProblem::new(format!(
                "there is no {word}: `{}` has {} elements",
                word.buffer, spec.count
            ))
            .help("elements count from 0")),
        }
    }

    /// Says what is wrong with an argument.
    pub(super) fn check_argument(&self, number: usize, text: &str) -> Result<(), PlanProblem> {
        let Err(error) = argument(text, &self.buffers) else { return Ok(()) };
        let passed = text.split_once('=').map_or(text, |(_, passed)| passed);
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        if !passed.is_empty() && passed.chars().all(is_name) {
            let problem = self.unknown(passed);
            return Err(PlanProblem {
                message: format!("argument {number}: {}", problem.message),
                ..problem
            });
        }
        let known: Vec<_> = self.buffers.keys().map(String::as_str).collect();
        Err(PlanProblem::new(format!(
            "argument {number}, `{text}`, is no buffer ({}) and no value: {error}",
            known.join(", ")
        )))
    }

    /// Says what is wrong with the texts of a launch.
    pub(super) fn check_launch(&self, launch: &PlannedLaunch, in_loop: bool) -> Result<(), PlanProblem> {
        let contents = launch.fill.values();
        if let Some(text) =
            launch.args.iter().chain(contents).find(|text| !in_loop && text.contains(ITERATION))
        {
            return Err(PlanProblem::new(format!("`{text}` names the iteration of a loop, and is in none"))
                .help("a loop is a [[launch]] with `until_zero` and launches of its own"));
        }
        for [one, other] in &launch.swap {
            let (one, other) = (self.buffer(one)?, self.buffer(other)?);
            if (one.ty, one.count) != (other.ty, other.count) {
                return Err(PlanProblem::new(format!(
                    "{}:{} and {}:{} cannot be swapped",
                    one.ty, one.count, other.ty, other.count
                ))
                .help("buffers that change names have the same type and length"));
            }
        }
        Ok(())
    }

    /// Whether anything is launched.
    pub(super) fn launches_nothing(steps: &[Step]) -> bool {
        steps.iter().all(|step| matches!(step, Step::Loop(planned) if Plan::launches_nothing(&planned.steps)))
    }
}
