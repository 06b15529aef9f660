//! Structs of counters that can be added up and listed by name.

/// Lets the counters of a unit be added up and listed.
macro_rules! add_up {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $name {
            /// Adds another's counts.
            pub fn add(&mut self, other: &$name) {
                $(self.$field += other.$field;)*
            }

            /// Takes off what had been counted before.
            pub fn subtract(&mut self, before: &$name) {
                $(self.$field -= before.$field;)*
            }

            /// Name and value of each count.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }
        }
    };
}

/// A struct of counters that can be added up and listed.
macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)*
        }

        $crate::kit::counters::add_up!($name { $($field),* });
    };
}
pub(crate) use add_up;
pub(crate) use counters;
