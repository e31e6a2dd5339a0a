//! The second engine: slow and simple, written from the specification, without code of the first one.
//!
//! It answers one question: which endpoints of a Service port does a node use, and with which weights. It caches
//! nothing between steps, and walks every list from the beginning.

pub(crate) mod claims;
mod hold;
mod levels;
mod place;
pub(crate) mod quantise;
pub(crate) mod servers;
mod source;
mod subset;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use topology_core::model::{
    Drain, DrainScope, Endpoint, FrontendKind, HardServices, Service, ServicePort, TrafficPolicy,
};
use topology_core::policy::{LevelKey, Policy};
use topology_core::resolve::ResolvedServer;
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::VirtualServerKey;

use crate::cluster::Cluster;
use crate::frac::{Frac, ONE, ZERO, frac};
use place::Placed;
use source::Rule;

pub(crate) type Id = (IpAddr, u16);

/// The node of the viewpoint, and what it knows of the past.
pub(crate) struct View<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) me: &'a str,
    /// Milliseconds since 1970; `None` offline.
    pub(crate) now: Option<i64>,
    /// Endpoints that became ready while others were, and when.
    pub(crate) new: BTreeMap<Id, i64>,
    /// The times of earlier queries, with the clusters then.
    pub(crate) past: Vec<(i64, &'a Cluster)>,
}

/// One Service port at one address, or the outside clients of all its external addresses of a family.
pub(crate) struct Port<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) service: &'a Service,
    pub(crate) of: &'a ServicePort,
    pub(crate) address: IpAddr,
    /// Whether only endpoints of this node are permitted.
    pub(crate) local: bool,
}

/// An endpoint of the port.
#[derive(Clone, Copy)]
pub(crate) struct Ep<'a> {
    pub(crate) id: Id,
    pub(crate) endpoint: &'a Endpoint,
}

/// The desired state of the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) scheduler: Scheduler,
    /// Weight 0: only finishes its connections.
    pub(crate) weights: BTreeMap<Id, u32>,
    /// Whether clients are refused.
    pub(crate) refused: bool,
}

impl<'a> Port<'a> {
    /// The port of `resolved`.
    pub(crate) fn of(view: &'a View<'a>, resolved: &ResolvedServer) -> Self {
        let service = view
            .cluster
            .services
            .iter()
            .find(|service| service.name == resolved.service)
            .unwrap();
        let of = service
            .ports
            .iter()
            .find(|port| port.name == resolved.port_name)
            .unwrap();
        let (address, local) = match resolved.server.key {
            VirtualServerKey::Address { address, .. } => {
                let local = service.internal_traffic_policy == TrafficPolicy::Local;
                (address, local && resolved.kind == FrontendKind::ClusterIp)
            }
            VirtualServerKey::FirewallMark { .. } => (resolved.marked[0].address, true),
        };
        Self {
            view,
            service,
            of,
            address,
            local,
        }
    }

    /// The desired state of the kernel.
    pub(crate) fn decide(&self) -> Outcome {
        let endpoints = self.endpoints();
        let rule = self.rule();
        let phases = self.phases(&rule, &endpoints);
        let several = phases.len() > 1;
        let mut share: BTreeMap<Id, Frac> = BTreeMap::new();
        let mut last = Placed::default();
        let mut placed_part = ZERO;
        for (part, drains) in phases {
            let mut placed = self.place(&rule, &endpoints, &drains);
            if let Some(limit) = rule.policy().and_then(|policy| policy.subset_max_weight) {
                self.thin_out(limit, &mut placed);
            }
            if !placed.share.is_empty() {
                placed_part = placed_part + part;
            }
            for (id, of_phase) in &placed.share {
                let sum = share.get(id).copied().unwrap_or(ZERO);
                share.insert(*id, sum + *of_phase * part);
            }
            last = placed;
        }
        for share in share.values_mut() {
            *share = *share / placed_part;
        }
        // In the combined result an endpoint is in the level that it shares with this node, even if that level merged.
        let tier = share.keys().map(|id| {
            let tier = if several && !last.level.is_empty() {
                last.level.get(id)
            } else {
                last.tier.get(id)
            };
            (*id, tier.copied().unwrap_or(0))
        });
        let scheduler = self.scheduler();
        let mut weights = quantise::weights(scheduler, &share, &tier.collect());
        for id in last.drained {
            weights.entry(id).or_insert(0);
        }
        Outcome {
            scheduler,
            refused: share.is_empty(),
            weights,
        }
    }

    /// All endpoints with the port's name, protocol and family, without duplicates.
    pub(crate) fn endpoints(&self) -> Vec<Ep<'a>> {
        let family = topology_core::model::Family::of(self.address);
        let mut slices: Vec<_> = (self.view.cluster.slices.iter())
            .filter(|slice| {
                slice.name.namespace == self.service.name.namespace
                    && slice.service == self.service.name.name
                    && slice.family == family
            })
            .collect();
        slices.sort_by_key(|slice| slice.name.clone());
        let mut best: BTreeMap<Id, &Endpoint> = BTreeMap::new();
        for slice in slices {
            for port in &slice.ports {
                if port.name != self.of.name || port.protocol != self.of.protocol {
                    continue;
                }
                for endpoint in &slice.endpoints {
                    let id = (endpoint.address, port.port.get());
                    let rank = |endpoint: &Endpoint| (self.is_here(endpoint), endpoint.ready);
                    let better = best
                        .get(&id)
                        .is_none_or(|known| rank(endpoint) > rank(known));
                    if better {
                        best.insert(id, endpoint);
                    }
                }
            }
        }
        best.into_iter()
            .map(|(id, endpoint)| Ep { id, endpoint })
            .collect()
    }

    /// Which endpoints are ready.
    pub(crate) fn ready(&self) -> BTreeSet<Id> {
        self.endpoints()
            .iter()
            .filter(|ep| ep.endpoint.ready)
            .map(|ep| ep.id)
            .collect()
    }

    /// What clients get if no endpoint matches.
    pub(crate) fn on_no_match(&self) -> Option<topology_core::policy::OnNoMatch> {
        self.rule().policy().map(|policy| policy.on_no_match)
    }

    fn is_here(&self, endpoint: &Endpoint) -> bool {
        endpoint.node.as_deref() == Some(self.view.me)
    }

    /// The drains that apply, in parts of the traffic: while a drain ramps, a part of the traffic is distributed
    /// without it.
    fn phases(&self, rule: &Rule, endpoints: &[Ep<'_>]) -> Vec<(Frac, Vec<&'a Drain>)> {
        let hard = rule.policy().is_some_and(is_hard);
        let mut left: Vec<(&Drain, Frac)> = Vec::new();
        for drain in &self.view.cluster.drains {
            if hard && drain.hard_services == HardServices::Ignore {
                continue;
            }
            // A drain without an effect here does not split the traffic.
            let drained = |ep: &Ep<'_>| self.is_drained(drain, ep.endpoint);
            if !self.moves_me(drain) && !endpoints.iter().any(drained) {
                continue;
            }
            let remaining = match self.view.now {
                None => ZERO,
                Some(now) if now >= drain.expires || now < drain.starts => ONE,
                Some(_) if drain.ramp_seconds == 0 => ZERO,
                Some(now) => {
                    let ramp = i128::from(drain.ramp_seconds) * 1000;
                    let steps = (i128::from(now - drain.starts) * 10 / ramp).min(10);
                    frac(10 - steps, 10)
                }
            };
            left.push((drain, remaining));
        }
        // For the traffic between two bounds, the drains apply that leave no more than the lower bound.
        let mut bounds: Vec<Frac> = left.iter().map(|(_, remaining)| *remaining).collect();
        bounds.extend([ZERO, ONE]);
        bounds.sort();
        bounds.dedup();
        let mut phases = Vec::new();
        for pair in bounds.windows(2) {
            let known = left.iter().filter(|(_, remaining)| *remaining <= pair[0]);
            phases.push((pair[1] - pair[0], known.map(|(drain, _)| *drain).collect()));
        }
        // The last part has the most drains.
        phases
    }

    /// Whether `drain` excludes `endpoint`.
    pub(crate) fn is_drained(&self, drain: &Drain, endpoint: &Endpoint) -> bool {
        drain.scope != DrainScope::Clients
            && match &drain.key {
                LevelKey::Any => true,
                LevelKey::Node => endpoint
                    .node
                    .as_ref()
                    .is_some_and(|node| drain.values.contains(node)),
                LevelKey::Label(key) => self
                    .label_of(endpoint, key)
                    .is_some_and(|value| drain.values.iter().any(|drained| **drained == *value)),
            }
    }

    /// Whether `drain` makes clients on this node leave its domain.
    pub(crate) fn moves_me(&self, drain: &Drain) -> bool {
        drain.scope != DrainScope::Endpoints
            && match &drain.key {
                LevelKey::Any => true,
                LevelKey::Node => drain.values.iter().any(|value| **value == *self.view.me),
                LevelKey::Label(key) => self
                    .own_label(key)
                    .is_some_and(|value| drain.values.iter().any(|drained| **drained == *value)),
            }
    }

    /// This node's value of a label, unless it is empty.
    pub(crate) fn own_label(&self, key: &str) -> Option<String> {
        let node = self.view.cluster.node(self.view.me)?;
        node.labels
            .get(key)
            .map(ToString::to_string)
            .filter(|value| !value.is_empty())
    }

    /// The value of a label for an endpoint; the zone may come from the slice.
    pub(crate) fn label_of(&self, endpoint: &Endpoint, key: &str) -> Option<String> {
        let node = endpoint
            .node
            .as_ref()
            .and_then(|name| self.view.cluster.node(name));
        let mut value = node
            .and_then(|node| node.labels.get(key))
            .map(ToString::to_string);
        if value.is_none() && key == ZONE {
            value = endpoint.zone.as_ref().map(ToString::to_string);
        }
        value.filter(|value| !value.is_empty())
    }

    /// Whether `endpoint` and this node are in one domain of `key`.
    pub(crate) fn is_near(&self, endpoint: &Endpoint, key: &LevelKey) -> bool {
        match key {
            LevelKey::Any => true,
            LevelKey::Node => self.is_here(endpoint),
            LevelKey::Label(key) => {
                let mine = self.own_label(key);
                mine.is_some() && mine == self.label_of(endpoint, key)
            }
        }
    }
}

pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";

/// Whether a policy forbids endpoints outside its levels.
pub(crate) fn is_hard(policy: &Policy) -> bool {
    policy.mode != topology_core::policy::Mode::None
        && !policy.levels.iter().any(|level| level.key == LevelKey::Any)
}
