//! Things of the leader's that a thread of the crew has for a while.

use std::ops::{Deref, DerefMut};

/// A thing that is here, or lent.
#[derive(Debug)]
pub(crate) struct Held<T>(Option<Box<T>>);

const HERE: &str = "whoever borrowed it has given it back";

impl<T> Held<T> {
    pub(crate) fn new(thing: T) -> Held<T> {
        Held(Some(Box::new(thing)))
    }

    pub(crate) fn hand_out(&mut self) -> Box<T> {
        self.0.take().expect(HERE)
    }

    pub(crate) fn hand_back(&mut self, thing: Box<T>) {
        self.0 = Some(thing);
    }

    pub(crate) fn into_inner(self) -> T {
        *self.0.expect(HERE)
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(HERE)
    }
}

impl<T> DerefMut for Held<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(HERE)
    }
}
