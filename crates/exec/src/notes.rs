//! What looks wrong in a launch that goes on: the use of lock bits, and loads outside of all allocations.

use crate::locks::notes::LockNotes;
use crate::outside::OutsideNotes;

/// What was noticed on some SMs.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    pub locks: LockNotes,
    pub outside: OutsideNotes,
}

impl Notes {
    /// Adds the notes of another SM.
    pub fn merge(&mut self, other: Notes) {
        self.locks.merge(other.locks);
        self.outside.merge(other.outside);
    }
}
