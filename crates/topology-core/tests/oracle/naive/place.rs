//! S0 to S3: the endpoints that may get traffic, and the cases without levels.

use std::collections::{BTreeMap, BTreeSet};

use topology_core::model::{Drain, DrainScope, Endpoint, OnLastDomain};
use topology_core::policy::{Avoid, LevelKey, Mode, Policy};

use super::source::Rule;
use super::{Ep, Id, Port, ZONE, is_hard};
use crate::frac::{Frac, ONE, whole};

/// The distribution of one part of the traffic over endpoints.
#[derive(Default)]
pub(crate) struct Placed {
    pub(crate) share: BTreeMap<Id, Frac>,
    /// The level that it counts in.
    pub(crate) tier: BTreeMap<Id, usize>,
    /// The level that each endpoint shares with this node; empty without levels.
    pub(crate) level: BTreeMap<Id, usize>,
    /// The group that divides a share: the endpoints of a level, or of one zone of it; `None` for endpoints without a
    /// zone.
    pub(crate) pool: BTreeMap<Id, (usize, Option<String>)>,
    /// The weight in that group.
    pub(crate) capacity: BTreeMap<Id, Frac>,
    pub(crate) drained: BTreeSet<Id>,
}

/// The endpoints of a policy after S0 to S3.
pub(super) struct Remaining<'a, 'd> {
    /// Those that may get traffic.
    pub(super) rest: Vec<Ep<'a>>,
    /// Those that finish their connections.
    drained: Vec<Ep<'a>>,
    /// Those that count in the total.
    present: Vec<Ep<'a>>,
    /// The drains in force.
    holding: Vec<&'d Drain>,
    /// Whether levels do not count.
    uniform: bool,
}

impl Placed {
    fn alike(endpoints: &[Ep<'_>]) -> Self {
        let mut placed = Self::default();
        for ep in endpoints {
            placed.share.insert(ep.id, ONE / whole(endpoints.len()));
            placed.tier.insert(ep.id, 0);
        }
        placed
    }
}

fn finishes(endpoint: &Endpoint) -> bool {
    !endpoint.ready && endpoint.serving && endpoint.terminating
}

/// The ready ones, otherwise those that terminate but serve.
fn usable<'a>(endpoints: &[Ep<'a>]) -> Vec<Ep<'a>> {
    let ready: Vec<_> = endpoints
        .iter()
        .filter(|ep| ep.endpoint.ready)
        .copied()
        .collect();
    if ready.is_empty() {
        endpoints
            .iter()
            .filter(|ep| finishes(ep.endpoint))
            .copied()
            .collect()
    } else {
        ready
    }
}

impl<'a> Port<'a> {
    /// Distributes all traffic, with `drains` in force.
    pub(crate) fn place(&self, rule: &Rule, all: &[Ep<'a>], drains: &[&Drain]) -> Placed {
        match rule {
            Rule::Local => {
                let here: Vec<_> = all
                    .iter()
                    .filter(|ep| self.is_near(ep.endpoint, &LevelKey::Node))
                    .copied()
                    .collect();
                Placed::alike(&usable(&here))
            }
            Rule::KubeProxy(avoid) => {
                let used = usable(all);
                let wanted: BTreeSet<Id> = self.hinted(&used).iter().map(|ep| ep.id).collect();
                let (rest, mut drained) = self.drain(used, drains);
                let (rest, _) = self.avoid(avoid, rest);
                let mut placed = Placed::alike(&self.hinted(&rest));
                // An endpoint that hints excluded has no connections to finish.
                drained.retain(|ep| wanted.contains(&ep.id));
                placed.drained = drained.iter().map(|ep| ep.id).collect();
                placed
            }
            Rule::Policy(policy) => self.place_by(policy, all, drains),
        }
    }

    fn place_by(&self, policy: &Policy, all: &[Ep<'a>], drains: &[&Drain]) -> Placed {
        if self.view.cluster.node(self.view.me).is_none() && is_hard(policy) {
            return Placed::default();
        }
        let remaining = self.remaining(policy, all, drains);
        let mut placed = if remaining.uniform {
            Placed::alike(&remaining.rest)
        } else {
            let Remaining {
                rest,
                present,
                holding,
                ..
            } = &remaining;
            let mut placed = self.by_levels(policy, rest, present, holding);
            for ep in all {
                let first = policy
                    .levels
                    .iter()
                    .position(|level| self.is_near(ep.endpoint, &level.key));
                placed.level.extend(first.map(|at| (ep.id, at)));
            }
            placed
        };
        placed.drained = remaining.drained.iter().map(|ep| ep.id).collect();
        placed
    }

    /// S0 to S3.
    pub(super) fn remaining<'d>(
        &self,
        policy: &Policy,
        all: &[Ep<'a>],
        drains: &[&'d Drain],
    ) -> Remaining<'a, 'd> {
        let hard = is_hard(policy);
        let unknown = self.view.cluster.node(self.view.me).is_none();
        let inside = |ep: &&Ep<'_>| {
            !hard
                || policy
                    .levels
                    .iter()
                    .any(|level| self.is_near(ep.endpoint, &level.key))
        };
        let allowed: Vec<_> = all.iter().filter(inside).copied().collect();
        let may = usable(&allowed);
        let mut uniform = policy.mode == Mode::None || (unknown && !hard);
        uniform |= !hard && !may.iter().any(|ep| ep.endpoint.ready);
        let (rest, drained) = self.drain(may, drains);
        let (rest, avoided) = self.avoid(&policy.avoid, rest);
        let holding = self.holding(&allowed, drains);
        // The total are those that do not terminate and are neither drained nor avoided.
        let gone = |ep: &Ep<'_>| {
            holding
                .iter()
                .any(|drain| self.is_drained(drain, ep.endpoint))
                || avoided.iter().any(|key| self.is_near(ep.endpoint, key))
        };
        let used: BTreeSet<Id> = rest.iter().map(|ep| ep.id).collect();
        let present: Vec<Ep<'_>> = allowed
            .iter()
            .filter(|ep| !gone(ep) && (!ep.endpoint.terminating || used.contains(&ep.id)))
            .copied()
            .collect();
        if !hard && !rest.is_empty() {
            let panics = rest.len() * 100 < present.len() * usize::from(policy.panic_percent);
            uniform |= panics || rest.len() < usize::try_from(policy.min_endpoints).unwrap();
        }
        Remaining {
            rest,
            drained,
            present,
            holding,
            uniform,
        }
    }

    /// S1: the remaining endpoints, and those that finish their connections.
    fn drain(&self, may: Vec<Ep<'a>>, drains: &[&Drain]) -> (Vec<Ep<'a>>, Vec<Ep<'a>>) {
        let holding = Self::in_force(&may, drains, self);
        may.into_iter().partition(|ep| {
            !holding
                .iter()
                .any(|drain| self.is_drained(drain, ep.endpoint))
        })
    }

    fn in_force<'d>(may: &[Ep<'_>], drains: &[&'d Drain], port: &Port<'_>) -> Vec<&'d Drain> {
        let is_left = |ep: &Ep<'_>| {
            !drains
                .iter()
                .any(|drain| port.is_drained(drain, ep.endpoint))
        };
        if may.iter().any(is_left) {
            return drains.to_vec();
        }
        drains
            .iter()
            .filter(|drain| {
                drain.on_last_domain == OnLastDomain::Force || drain.scope == DrainScope::Clients
            })
            .copied()
            .collect()
    }

    fn holding<'d>(&self, allowed: &[Ep<'_>], drains: &[&'d Drain]) -> Vec<&'d Drain> {
        Self::in_force(&usable(allowed), drains, self)
    }

    /// S2: the remaining endpoints, and the avoided keys.
    fn avoid<'p>(
        &self,
        all: &'p [Avoid],
        mut rest: Vec<Ep<'a>>,
    ) -> (Vec<Ep<'a>>, Vec<&'p LevelKey>) {
        let mut avoided = Vec::new();
        for soft in [false, true] {
            for avoid in all.iter().filter(|avoid| avoid.soft == soft) {
                let outside: Vec<_> = rest
                    .iter()
                    .filter(|ep| !self.is_near(ep.endpoint, &avoid.key))
                    .copied()
                    .collect();
                if !soft || !outside.is_empty() {
                    rest = outside;
                    avoided.push(&avoid.key);
                }
            }
        }
        (rest, avoided)
    }

    /// kube-proxy 1.35: hints count if all ready endpoints have them and some name this Node or zone.
    fn hinted(&self, rest: &[Ep<'a>]) -> Vec<Ep<'a>> {
        if !rest.iter().any(|ep| ep.endpoint.ready) {
            return rest.to_vec();
        }
        let for_me = |ep: &&Ep<'_>| {
            let hints = ep.endpoint.hints.as_ref();
            hints.is_some_and(|hints| hints.nodes.iter().any(|node| **node == *self.view.me))
        };
        let zone = self.own_label(ZONE);
        let for_zone = |ep: &&Ep<'_>| {
            let hints = ep.endpoint.hints.as_ref();
            hints.is_some_and(|hints| {
                hints
                    .zones
                    .iter()
                    .any(|hint| Some(&**hint) == zone.as_deref())
            })
        };
        let has = |count: fn(&topology_core::model::Hints) -> usize| {
            rest.iter().all(|ep| {
                ep.endpoint
                    .hints
                    .as_ref()
                    .is_some_and(|hints| count(hints) > 0)
            })
        };
        if has(|hints| hints.nodes.len()) && rest.iter().any(|ep| for_me(&ep)) {
            return rest.iter().filter(for_me).copied().collect();
        }
        if has(|hints| hints.zones.len()) && rest.iter().any(|ep| for_zone(&ep)) {
            return rest.iter().filter(for_zone).copied().collect();
        }
        rest.to_vec()
    }
}
