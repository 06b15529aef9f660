//! The policies by name: the built-in ones, and those that a user adds.

use std::sync::Arc;

use super::{Policy, cawa, gto, lrr};
use crate::chip::Chip;

/// A built-in policy: its name, a line about it, and how it is made from the chip, for one scheduler.
type BuiltIn = (&'static str, &'static str, fn(&Chip) -> Box<dyn Policy>);

/// The built-in policies.
pub const POLICIES: &[BuiltIn] = &[
    ("lrr", "loose round-robin: the next ready warp after the last one", |_| Box::new(lrr::Lrr::default())),
    ("gto", "greedy, then oldest: the same warp until it stalls, then the oldest", |chip| {
        Box::new(gto::Gto::new(&chip.issue.gto))
    }),
    ("cawa", "criticality-aware: the warp that is expected to end last", |chip| {
        Box::new(cawa::Cawa::new(&chip.issue.cawa))
    }),
];

/// Makes a policy for one scheduler of a chip.
pub type MakePolicy = Arc<dyn Fn(&Chip) -> Box<dyn Policy> + Send + Sync>;

/// A policy that launches can name.
#[derive(Clone)]
pub struct NamedPolicy {
    pub name: String,
    pub make: MakePolicy,
}

/// The policies that launches can name. A later one replaces an earlier one of the same name.
#[derive(Clone)]
pub(crate) struct Policies(Vec<NamedPolicy>);

impl Default for Policies {
    fn default() -> Self {
        let built_in =
            |&(name, _, make): &BuiltIn| NamedPolicy { name: name.to_string(), make: Arc::new(make) };
        Policies(POLICIES.iter().map(built_in).collect())
    }
}

impl Policies {
    pub(crate) fn add(&mut self, policy: NamedPolicy) {
        self.0.retain(|known| known.name != policy.name);
        self.0.push(policy);
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|policy| policy.name.as_str())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&MakePolicy> {
        self.0.iter().find(|policy| policy.name == name).map(|policy| &policy.make)
    }
}
