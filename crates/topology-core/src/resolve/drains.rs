//! Finds the drains that apply to a Service port, and their progress.
//!
//! While a drain ramps, a part of the traffic is distributed without the drain and the rest as if it were complete.
//! After the time `t` of a ramp of `r`, in ten steps, the first part is `1 - floor(10 t / r) / 10`. With several ramps
//! the parts are nested: a drain with more progress applies wherever one with less progress does.
//!
//! Example: drain A leaves 3/10, drain B 6/10. For 3/10 of the traffic no drain applies, for 3/10 only A, for 4/10
//! both.

use super::candidates::Candidate;
use super::decision::Note;
use super::port_view::PortView;
use super::source::{Choice, DecidingRule};
use super::time;
use crate::model::{Drain, DrainScope, HardServices};
use crate::policy::{LevelKey, Policy};
use crate::ratio::Ratio;

/// The steps of a ramp.
const STEPS: i64 = 10;

/// An active drain, and the part of the traffic that it leaves to its domains while it ramps.
#[derive(Clone, Copy)]
pub(super) struct ActiveDrain<'a> {
    pub(super) drain: &'a Drain,
    pub(super) remaining: Ratio,
}

/// The drains that apply to some part of the traffic.
pub(super) type ActiveDrains<'a> = Vec<ActiveDrain<'a>>;

/// The active drains of a Service port, and when they change next.
#[derive(Default)]
pub(super) struct Drains<'a> {
    active: ActiveDrains<'a>,
    /// Drains that would apply to the Service if they included hard policies.
    pub(super) spared: Vec<&'a Drain>,
    pub(super) resolve_again_at: Option<i64>,
}

impl<'a> Drains<'a> {
    /// The drains under `policy` that cover this node or one of `candidates`.
    pub(super) fn find(
        view: &PortView<'a>,
        policy: Option<&Policy>,
        candidates: &[Candidate<'a>],
    ) -> Self {
        let mut found = Self::default();
        let hard = policy.is_some_and(Policy::is_bounded);
        for drain in view.snapshot.drains() {
            let takes_part = !hard || drain.hard_services == HardServices::Apply;
            let matters = || {
                covers_clients(drain, view)
                    || candidates.iter().any(|candidate| covers(drain, candidate))
            };
            if !matters() {
                continue;
            }
            match found.remaining(drain, view.me.now) {
                Some(remaining) if takes_part => {
                    found.active.push(ActiveDrain { drain, remaining });
                }
                Some(_) => found.spared.push(drain),
                None => {}
            }
        }
        found
    }

    /// Notes for active drains without an effect, because the policy is hard or the traffic policy is Local.
    pub(super) fn without_effect(
        &self,
        view: &PortView<'_>,
        choice: &Choice<'_>,
        candidates: &[Candidate<'_>],
    ) -> Vec<Note> {
        let is_here = |one: &Candidate<'_>| one.endpoint.node.as_ref() == Some(&view.me.node);
        let local = self.active.iter().filter(|active| {
            let mut here = candidates.iter().filter(|one| is_here(one));
            matches!(choice.rule, DecidingRule::Local)
                && (covers_clients(active.drain, view) || here.any(|one| covers(active.drain, one)))
        });
        let spared = self.spared.iter().map(|drain| Note::DrainSpares {
            drain: drain.name.clone(),
        });
        let local = local.map(|active| Note::DrainLocal {
            drain: active.drain.name.clone(),
        });
        spared.chain(local).collect()
    }

    /// The part that `drain` leaves to its domains, if it has begun and not ended.
    fn remaining(&mut self, drain: &Drain, now: Option<i64>) -> Option<Ratio> {
        let Some(now) = now else {
            return Some(Ratio::ZERO);
        };
        if now >= drain.expires {
            return None;
        }
        if now < drain.starts {
            self.ask_at(drain.starts);
            return None;
        }
        self.ask_at(drain.expires);
        let ramp = i64::from(drain.ramp_seconds) * 1_000;
        let steps = time::passed(now.saturating_sub(drain.starts), ramp, STEPS);
        if steps < STEPS {
            self.ask_at(time::next(drain.starts, ramp, steps, STEPS));
        }
        (steps > 0).then(|| Ratio::new((STEPS - steps).unsigned_abs(), STEPS.unsigned_abs()))
    }

    fn ask_at(&mut self, moment: i64) {
        self.resolve_again_at = Some(time::sooner(self.resolve_again_at, moment));
    }

    /// The parts of the traffic, each with the drains that apply to it; the last part has the most.
    pub(super) fn phases(&self) -> Vec<(Ratio, ActiveDrains<'a>)> {
        let mut bounds: Vec<Ratio> = self.active.iter().map(|active| active.remaining).collect();
        bounds.push(Ratio::ZERO);
        bounds.sort_unstable();
        bounds.dedup();
        let ends = bounds.iter().skip(1).copied().chain([Ratio::ONE]);
        let phase = |(from, to): (&Ratio, Ratio)| {
            let known = |active: &&ActiveDrain<'_>| active.remaining <= *from;
            let known = self.active.iter().filter(known).copied().collect();
            (to - *from, known)
        };
        bounds.iter().zip(ends).map(phase).collect()
    }
}

/// Whether `drain` covers `candidate`: it applies to endpoints, and the endpoint is in one of its domains.
pub(super) fn covers(drain: &Drain, candidate: &Candidate<'_>) -> bool {
    if drain.scope == DrainScope::Clients {
        return false;
    }
    match &drain.key {
        LevelKey::Any => true,
        LevelKey::Node => {
            (candidate.endpoint.node.as_ref()).is_some_and(|node| drain.values.contains(node))
        }
        LevelKey::Label(key) => candidate
            .label(key)
            .is_some_and(|value| drain.values.contains(value)),
    }
}

/// Whether `drain` covers this node: it applies to clients, and the node is in one of its domains.
pub(super) fn covers_clients(drain: &Drain, view: &PortView<'_>) -> bool {
    if drain.scope == DrainScope::Endpoints {
        return false;
    }
    match &drain.key {
        LevelKey::Any => true,
        LevelKey::Node => drain.values.contains(&view.me.node),
        LevelKey::Label(key) => {
            let label = view.own_node.and_then(|node| node.labels.get(key));
            label.is_some_and(|value| !value.is_empty() && drain.values.contains(value))
        }
    }
}
