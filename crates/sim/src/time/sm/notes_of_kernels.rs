//! Notes about what looks wrong, for each kernel on its own: they name instructions, which kernels number alike.

use crate::exec::notes::Notes;

/// The notes of all kernels but the one whose warp executes.
#[derive(Debug, Default)]
pub(crate) struct NotesOfKernels {
    current: u16,
    /// By kernel.
    others: Vec<Notes>,
}

impl NotesOfKernels {
    /// Makes `notes` those of a kernel.
    #[inline(always)]
    pub(crate) fn of(&mut self, kernel: u16, notes: &mut Notes) {
        if kernel != self.current {
            self.switch(kernel, notes);
        }
    }

    #[cold]
    fn switch(&mut self, kernel: u16, notes: &mut Notes) {
        let needed = usize::from(kernel.max(self.current)) + 1;
        if self.others.len() < needed {
            self.others.resize_with(needed, Notes::default);
        }
        let last = std::mem::replace(&mut self.current, kernel);
        self.others[usize::from(last)] = std::mem::take(notes);
        *notes = std::mem::take(&mut self.others[usize::from(kernel)]);
    }

    /// The notes of each kernel, given those of the current one.
    pub(crate) fn into_all(mut self, notes: Notes) -> Vec<Notes> {
        let current = usize::from(self.current);
        if self.others.len() <= current {
            self.others.resize_with(current + 1, Notes::default);
        }
        self.others[current] = notes;
        self.others
    }
}
