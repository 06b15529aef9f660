//! What a kernel prints with `printf`.

use std::ops::Range;

/// Limit on the output kept, in bytes.
const MAX_OUTPUT: usize = 64 << 20;

/// The output so far: sorted by CTA and thread in the end, so that it does not depend on timing.
#[derive(Debug, Default)]
pub struct Output {
    /// CTA, thread, text.
    lines: Vec<(u64, u32, String)>,
    bytes: usize,
    /// Whether output was dropped because of the limit.
    cut: bool,
}

impl Output {
    pub fn print(&mut self, cta: u64, thread: u32, text: String) {
        if self.bytes + text.len() > MAX_OUTPUT {
            self.cut = true;
            return;
        }
        self.bytes += text.len();
        self.lines.push((cta, thread, text));
    }

    pub fn merge(&mut self, other: Output) {
        self.cut |= other.cut;
        for (cta, thread, text) in other.lines {
            self.print(cta, thread, text);
        }
    }

    /// Takes the output of CTAs whose numbers are in a range.
    pub fn take(&mut self, ctas: Range<u64>) -> Output {
        let (lines, others) = self.lines.drain(..).partition(|(cta, ..)| ctas.contains(cta));
        self.lines = others;
        Output { lines, bytes: 0, cut: self.cut }
    }

    pub fn into_text(mut self) -> String {
        self.lines.sort_by_key(|&(cta, thread, _)| (cta, thread));
        let mut text: String = self.lines.into_iter().map(|(_, _, text)| text).collect();
        if self.cut {
            text.push_str(&format!("[output beyond {} MB is not kept]\n", MAX_OUTPUT >> 20));
        }
        text
    }
}
