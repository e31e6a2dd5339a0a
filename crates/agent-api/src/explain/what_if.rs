//! Finds single changes that would alter the decision. Tries each of them through the resolver on a copy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use topology_core::model::{Endpoint, EndpointSlice, Family, Node};
use topology_core::policy::{LevelKey, PolicySource, ZONE};
use topology_core::resolve::{Decision, EndpointDecision, Reason, ResolvedServer, Viewpoint};
use topology_core::snapshot::Snapshot;

use super::outcome::difference;
use super::sandbox::Sandbox;
use crate::view::WhatIfView;

/// At most so many endpoints are added or removed in a trial.
const TRIED: usize = 10;

/// Returns every single change with a noticeable effect. Leaves `snapshot` unchanged.
pub(super) fn what_if(
    snapshot: &mut Snapshot,
    me: &Viewpoint,
    resolved: &ResolvedServer,
) -> Vec<WhatIfView> {
    let Some(sandbox) = Sandbox::of(snapshot, me, &resolved.service, resolved.server.key) else {
        return Vec::new();
    };
    let mut trials = Trials {
        sandbox,
        me,
        resolved,
        found: Vec::new(),
    };
    let uniform = resolved.decision.source == PolicySource::Uniform;
    for level in resolved.decision.levels.iter().filter(|_| !uniform) {
        trials.gain(&level.key);
        trials.lose(&level.key);
    }
    trials.undrain();
    trials.without_policy();
    trials.found
}

struct Trials<'a> {
    sandbox: Sandbox<'a>,
    me: &'a Viewpoint,
    resolved: &'a ResolvedServer,
    found: Vec<WhatIfView>,
}

impl Trials<'_> {
    fn decision(&self) -> &Decision {
        &self.resolved.decision
    }

    /// Records the change if its effect is noticeable, and returns whether it is.
    fn record(&mut self, change: impl FnOnce() -> String, after: Option<Decision>) -> bool {
        let effect = after.and_then(|after| difference(&self.resolved.decision, &after));
        let noticed = effect.is_some();
        self.found.extend(effect.map(|effect| WhatIfView {
            change: change(),
            effect,
        }));
        noticed
    }

    /// Makes endpoints of the level ready, or adds some: as few as have an effect.
    fn gain(&mut self, level: &LevelKey) {
        if self.decision().source == PolicySource::Hints {
            return;
        }
        if let Some(unready) = self.first(level, |endpoint| endpoint.reason == Reason::NotReady) {
            let after = self
                .sandbox
                .with_slices(|slices| mark_ready(slices, unready.address));
            if self.record(|| format!("{} becoming ready", place_of(&unready)), after) {
                return;
            }
        }
        let Some((node, zone)) = place(self.sandbox.snapshot(), self.me, self.decision(), level)
        else {
            return;
        };
        let place = level_place(self.sandbox.snapshot(), self.me, level);
        let port = self.resolved.port_of_slices().cloned();
        let family = self.resolved.server.key.family();
        for count in 1..=TRIED {
            let endpoint = |number| new_endpoint(family, number, node.clone(), zone.clone());
            let after = self.sandbox.with_slices(|slices| {
                add(slices, family, port.as_deref(), (1..=count).map(endpoint));
            });
            if self.record(|| format!("{} {place}", more_endpoints(count)), after) {
                return;
            }
        }
    }

    /// Removes endpoints of the level: as few as have an effect.
    fn lose(&mut self, level: &LevelKey) {
        let endpoints = self.decision().endpoints.iter();
        let used = endpoints
            .filter(|endpoint| !endpoint.share.is_zero() && endpoint.level.as_ref() == Some(level));
        let addresses: Vec<IpAddr> = used.map(|endpoint| endpoint.address).collect();
        let place = level_place(self.sandbox.snapshot(), self.me, level);
        for count in 1..=addresses.len().min(TRIED) {
            let gone = addresses.get(..count).unwrap_or_default();
            let after = self.sandbox.with_slices(|slices| remove(slices, gone));
            let change = || match addresses.len() {
                1 => format!("losing the only endpoint {place}"),
                2 if count == 2 => format!("losing both endpoints {place}"),
                all if all == count => format!("losing all {all} endpoints {place}"),
                all => format!("losing {count} of {all} endpoints {place}"),
            };
            if self.record(change, after) {
                return;
            }
        }
    }

    fn undrain(&mut self) {
        let names: Vec<Arc<str>> = self
            .sandbox
            .snapshot()
            .drains()
            .map(|drain| drain.name.clone())
            .collect();
        for name in names {
            let after = self.sandbox.without_drain(&name);
            self.record(|| format!("without TopologyDrain {name}"), after);
        }
    }

    fn without_policy(&mut self) {
        let (what, after) = match (self.decision().source, self.decision().policy.clone()) {
            (PolicySource::Annotation, _) => (
                "the annotations".to_owned(),
                self.sandbox.without_annotations(),
            ),
            (PolicySource::TopologyKeys, _) => (
                "topologyKeys".to_owned(),
                self.sandbox.without_topology_keys(),
            ),
            (_, Some(policy)) => {
                let after = self.sandbox.without_policy(&policy);
                (policy.to_string(), after)
            }
            (_, None) => return,
        };
        self.record(|| format!("without {what}"), after);
    }

    fn first(
        &self,
        level: &LevelKey,
        fits: impl Fn(&EndpointDecision) -> bool,
    ) -> Option<EndpointDecision> {
        let endpoints = self.decision().endpoints.iter();
        endpoints
            .clone()
            .find(|endpoint| endpoint.level.as_ref() == Some(level) && fits(endpoint))
            .cloned()
    }
}

fn more_endpoints(count: usize) -> String {
    match count {
        1 => "one more ready endpoint".to_owned(),
        count => format!("{count} more ready endpoints"),
    }
}

/// `10.244.1.2 on n1`.
fn place_of(endpoint: &EndpointDecision) -> String {
    match &endpoint.node {
        Some(node) => format!("{} on {node}", endpoint.address),
        None => endpoint.address.to_string(),
    }
}

/// Where a level is, seen from this Node: `in zone a`.
fn level_place(snapshot: &Snapshot, me: &Viewpoint, level: &LevelKey) -> String {
    let value = |label: &str| {
        snapshot
            .node(&me.node)
            .and_then(|node| node.labels.get(label))
            .cloned()
    };
    match level {
        LevelKey::Node => format!("on {}", me.node),
        LevelKey::Any => "elsewhere".to_owned(),
        LevelKey::Label(label) => match value(label) {
            Some(value) if level.has_short_name() => format!("in {level} {value}"),
            Some(value) => format!("with {level} {value}"),
            None => format!("in level {level}"),
        },
    }
}

/// The Node and zone of an endpoint.
type NodeAndZone = (Option<Arc<str>>, Option<Arc<str>>);

/// A Node and zone from which an endpoint would be in `level` and in no nearer one.
fn place(
    snapshot: &Snapshot,
    me: &Viewpoint,
    decision: &Decision,
    level: &LevelKey,
) -> Option<NodeAndZone> {
    let nearer: Vec<&LevelKey> = decision
        .levels
        .iter()
        .map(|level| &level.key)
        .take_while(|key| *key != level)
        .collect();
    let own = snapshot.node(&me.node);
    let shares = |node: &Node, key: &LevelKey| match key {
        LevelKey::Node => node.name == me.node,
        LevelKey::Any => true,
        LevelKey::Label(label) => {
            let value = own
                .and_then(|own| own.labels.get(label))
                .filter(|value| !value.is_empty());
            value.is_some() && node.labels.get(label) == value
        }
    };
    let fits = |node: &&Node| shares(node, level) && !nearer.iter().any(|key| shares(node, key));
    let node = snapshot
        .nodes()
        .filter(fits)
        .min_by(|left, right| left.name.cmp(&right.name));
    let zone = |node: &Node| node.labels.get(ZONE).cloned();
    match (node, level) {
        (Some(node), _) => Some((Some(node.name.clone()), zone(node))),
        (None, LevelKey::Label(label)) if **label == *ZONE => {
            Some((None, Some(own.and_then(zone)?)))
        }
        (None, LevelKey::Any) => Some((None, None)),
        (None, _) => None,
    }
}

/// An endpoint with an address from the documentation ranges (RFC 5737, RFC 3849).
fn new_endpoint(
    family: Family,
    number: usize,
    node: Option<Arc<str>>,
    zone: Option<Arc<str>>,
) -> Endpoint {
    let host = u8::try_from(number).unwrap_or(u8::MAX);
    let address = match family {
        Family::V4 => IpAddr::V4(Ipv4Addr::new(203, 0, 113, host)),
        Family::V6 => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into())),
    };
    Endpoint {
        address,
        node,
        zone,
        ready: true,
        serving: true,
        terminating: false,
        hints: None,
    }
}

/// Adds to the first slice of the family that has the port.
fn add(
    slices: &mut [EndpointSlice],
    family: Family,
    port: Option<&str>,
    endpoints: impl Iterator<Item = Endpoint>,
) {
    let has_port = |slice: &&mut EndpointSlice| {
        let mut ports = slice.ports.iter();
        let fits = port.is_none_or(|port| ports.any(|known| *known.name == *port));
        slice.family == family && fits
    };
    if let Some(slice) = slices.iter_mut().find(has_port) {
        slice.endpoints.extend(endpoints);
    }
}

fn remove(slices: &mut [EndpointSlice], gone: &[IpAddr]) {
    for slice in slices {
        slice
            .endpoints
            .retain(|endpoint| !gone.contains(&endpoint.address));
    }
}

fn mark_ready(slices: &mut [EndpointSlice], address: IpAddr) {
    let endpoints = slices.iter_mut().flat_map(|slice| &mut slice.endpoints);
    for endpoint in endpoints.filter(|endpoint| endpoint.address == address) {
        (endpoint.ready, endpoint.serving, endpoint.terminating) = (true, true, false);
    }
}
