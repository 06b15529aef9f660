//! What a kernel prints.

/// Bytes of kernel output that are kept.
const MAX_OUTPUT: usize = 64 << 20;

/// What the kernel prints, to be shown in the order of CTAs and threads.
#[derive(Debug, Default)]
pub(crate) struct Output {
    lines: Vec<(u64, u32, String)>,
    bytes: usize,
    cut: bool,
}

impl Output {
    /// A thread prints.
    pub(crate) fn print(&mut self, cta: u64, thread: u32, text: String) {
        if self.bytes + text.len() > MAX_OUTPUT {
            self.cut = true;
            return;
        }
        self.bytes += text.len();
        self.lines.push((cta, thread, text));
    }

    /// Adds what another printed.
    pub(crate) fn merge(&mut self, other: Output) {
        self.cut |= other.cut;
        for (cta, thread, text) in other.lines {
            self.print(cta, thread, text);
        }
    }

    /// All of it.
    pub(crate) fn into_text(mut self) -> String {
        self.lines.sort_by_key(|&(cta, thread, _)| (cta, thread));
        let mut text: String = self.lines.into_iter().map(|(_, _, text)| text).collect();
        if self.cut {
            text.push_str(&format!("[output beyond {} MB is not kept]\n", MAX_OUTPUT >> 20));
        }
        text
    }
}
