//! Macros for structs of `u64` counters that can be summed and listed by name.

/// Implements `add`, `subtract` and `named` for a struct whose listed fields are `u64` counters.
#[macro_export]
macro_rules! add_up {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $name {
            pub fn add(&mut self, other: &$name) {
                $(self.$field += other.$field;)*
            }

            /// Subtracts an earlier snapshot of these counters, so that only what was counted since remains.
            pub fn subtract(&mut self, before: &$name) {
                $(self.$field -= before.$field;)*
            }

            /// Name and value of each counter.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }
        }
    };
}

/// Declares a struct of `u64` counters, with the methods of [`add_up`].
#[macro_export]
macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)*
        }

        $crate::add_up!($name { $($field),* });
    };
}
pub use crate::{add_up, counters};
