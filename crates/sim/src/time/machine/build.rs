//! SMs are built when their first CTA starts, from parts of earlier launches, so that a launch on a large chip pays for
//! the SMs that it uses.

use super::*;
use crate::chip::spinning::BowsSpec;
use crate::time::sm::Parts;
use crate::time::sm::cluster::ClusterPort;

/// What SMs are built from.
pub(super) struct Builder<P> {
    bows: Option<BowsSpec>,
    branches: Option<Arc<Branches>>,
    /// The kernels of the launch wait for each other.
    waits: bool,
    can_yield: bool,
    /// Kernels run together.
    together: bool,
    /// CTAs that can be on an SM.
    ctas: u32,
    /// Lock bits per SM.
    lock_bits: u32,
    start: Cycle,
    /// The observers of SMs that have not been built.
    probes: Vec<Option<P>>,
}

impl<P: Probe> Builder<P> {
    pub(super) fn new(
        context: &Context<'_>,
        options: &Options<'_>,
        (with_firmware, together): (bool, bool),
        start: Cycle,
        make_probe: impl Fn(u32, Cycle) -> P,
    ) -> Self {
        let launch = context.launch;
        let bows = options.bows.on_chip(launch.chip);
        let contexts = || std::iter::once(context).chain(context.others);
        let branches = bows.as_ref().map(|spec| branches(context, spec));
        Builder {
            bows,
            branches,
            // Kernels that wait, or use lock bits, may be added to those that run together.
            waits: together || contexts().any(|c| c.launch.kernel.may_wait()),
            together,
            ctas: if together { launch.chip.sm.max_ctas } else { launch.occupancy.ctas_per_sm },
            lock_bits: match together {
                true => launch.chip.lock.bits,
                false => contexts().map(|context| context.launch.lock_bits()).max().unwrap_or(0),
            },
            can_yield: with_firmware && launch.chip.wavefront_yield.is_some(),
            start,
            probes: (0..launch.chip.sm.count).map(|id| Some(make_probe(id, start))).collect(),
        }
    }

    /// Whether warps of the launch wait for each other.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// The kernels of later SMs, if some were added. Returns their branches if BOWS is on.
    pub(super) fn kernels_added(&mut self, context: &Context<'_>) -> Option<&Arc<Branches>> {
        self.branches = self.bows.as_ref().map(|spec| branches(context, spec));
        self.branches.as_ref()
    }

    /// An SM without CTAs. Each can be built once.
    fn build<const N: usize>(
        &mut self,
        context: &Context<'_>,
        options: &Options<'_>,
        id: u32,
        parts: Option<Parts>,
        now: Cycle,
    ) -> Sm<N, (SmStats, P)> {
        let launch = context.launch;
        let chip = launch.chip;
        let probe = self.probes[id as usize].take().expect("an SM is built once");
        let (ctas, probe) = (self.ctas, (SmStats::default(), probe));
        let parts = parts.unwrap_or_else(|| Parts::new(chip));
        let mut sm = Sm::new(chip, id, ctas, options.make_policy, probe, parts, self.start);
        sm.agenda.now = now;
        if !self.together {
            sm.warm_up(context, 0);
        }
        sm.locks = SharedLocks::new(self.waits);
        sm.dispatched.empty_since = self.start;
        sm.dispatched.can_yield = self.can_yield;
        sm.dispatched.together = self.together;
        sm.effects_mut().lock_units = LockUnits::new(self.lock_bits, id, 1);
        sm.cluster = launch.clusters.then(|| ClusterPort::new(chip)).flatten();
        sm.lanes_ended = (chip.lock_queue.mode != QueueMode::Off).then(Vec::new);
        if let (Some(spec), Some(branches)) = (&self.bows, &self.branches) {
            sm.spin_unit = Some(Box::new(SpinUnit::new(chip, spec, branches, self.start)));
        }
        sm
    }

    /// The observers of SMs that were never built, each at the SM's number.
    pub(super) fn into_probes(self) -> impl Iterator<Item = Option<P>> {
        self.probes.into_iter()
    }
}

/// The branches of all kernels.
fn branches(context: &Context<'_>, spec: &BowsSpec) -> Arc<Branches> {
    let contexts = std::iter::once(context).chain(context.others);
    let kernels = contexts.map(|context| (context.launch.kernel, context.code_start));
    Arc::new(Branches::new(kernels, spec.sib))
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Whether another CTA fits on an SM.
    pub(super) fn has_room(&self, sm: usize) -> bool {
        self.sms.get(sm).is_none_or(|sm| sm.has_room())
    }

    /// How many CTAs fit on an SM beside those on it.
    pub(super) fn vacant(&self, sm: usize) -> usize {
        self.sms.get(sm).map_or(self.context.launch.occupancy.ctas_per_sm as usize, |sm| sm.vacant)
    }

    /// The SM with a number, which is built if it was not used before.
    pub(super) fn sm(&mut self, id: usize, now: Cycle) -> &mut Sm<N, (SmStats, P)> {
        if self.sms.get(id).is_none() {
            let parts = self.side.parts.pop();
            let sm = self.builder.build(&self.context, self.options, id as u32, parts, now);
            self.sms.add(id, Box::new(sm));
        }
        &mut self.sms[id]
    }
}
