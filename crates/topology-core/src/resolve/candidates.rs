//! Collects the endpoints of one Service port, without duplicates.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::port_view::PortView;
use super::reason::Reason;
use super::targets::PortTarget;
use crate::model::{Endpoint, Family, Node};
use crate::policy::ZONE;
use crate::ratio::Ratio;

/// An endpoint, and what the stages have decided about it so far.
#[derive(Clone)]
pub(super) struct Candidate<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) port: u16,
    pub(super) local: bool,
    /// Whether it could serve, but for its server, which closed its connection to the agent.
    disconnected: bool,
    /// Its Node, if known.
    pub(super) node: Option<&'a Node>,
    /// Its zone, from its Node or otherwise from the slice; never empty.
    pub(super) zone: Option<&'a Arc<str>>,
    /// Index of its level.
    pub(super) level: Option<usize>,
    /// Its weight within its pool.
    pub(super) capacity: u32,
    /// Index of its pool, once it has one.
    pub(super) pool: usize,
    /// Index of its class, once it has one.
    pub(super) class: Option<usize>,
    pub(super) reason: Reason,
    /// Whether it is in a domain that is drained or avoided: it no longer counts, ready or not.
    pub(super) excluded: bool,
    pub(super) share: Ratio,
    pub(super) weight: u32,
}

/// Usable endpoints, and those whose address can never be a real server; both sorted by address and port.
#[derive(Clone)]
pub(super) struct PortCandidates<'a> {
    pub(super) accepted: Vec<Candidate<'a>>,
    pub(super) refused: Vec<Candidate<'a>>,
}

/// Collects all endpoints with the port's name, protocol and family.
///
/// The same address and port in two slices is one endpoint. A copy on this node wins (KP-IN-17), then a ready one, then
/// the one in the first slice by name.
pub(super) fn collect<'a>(view: &PortView<'a>) -> PortCandidates<'a> {
    let endpoints = view
        .targets
        .iter()
        .map(|target| target.slice.endpoints.len());
    let mut all: Vec<Candidate<'a>> = Vec::with_capacity(endpoints.sum());
    for PortTarget { slice, port } in &view.targets {
        let endpoints = slice.endpoints.iter();
        all.extend(endpoints.map(|endpoint| Candidate::new(view, endpoint, *port)));
    }
    let id = |candidate: &Candidate<'_>| (candidate.endpoint.address, candidate.port);
    all.sort_by_key(|candidate| (id(candidate), !candidate.local, !candidate.is_ready()));
    all.dedup_by_key(|candidate| id(candidate));
    let is_refused = |candidate: &mut Candidate<'_>| candidate.reason == Reason::BadAddress;
    let refused = all.extract_if(.., is_refused).collect();
    PortCandidates {
        accepted: all,
        refused,
    }
}

impl<'a> Candidate<'a> {
    fn new(view: &PortView<'a>, endpoint: &'a Endpoint, port: u16) -> Self {
        let name = endpoint.node.as_ref();
        let local = name.is_some_and(|name| **name == *view.me.node);
        let disconnected = local && endpoint.is_usable() && is_disconnected(view, endpoint, port);
        let reason = match unusable(endpoint.address, view.family()) {
            Some(_) => Reason::BadAddress,
            None if disconnected => Reason::Disconnected,
            None => Reason::NotReady,
        };
        let node = name.and_then(|name| view.snapshot.node(name));
        let zone = node.and_then(|node| node.labels.get(ZONE));
        Self {
            endpoint,
            port,
            local,
            disconnected,
            node,
            zone: zone
                .or(endpoint.zone.as_ref())
                .filter(|zone| !zone.is_empty()),
            level: None,
            capacity: 1,
            pool: 0,
            class: None,
            reason,
            excluded: false,
            share: Ratio::ZERO,
            weight: 0,
        }
    }

    /// Whether it is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.endpoint.ready && !self.disconnected
    }

    /// Whether it terminates but still serves.
    pub(super) fn serves_terminating(&self) -> bool {
        self.endpoint.serves_terminating() && !self.disconnected
    }

    /// Whether it could serve, at least as a last resort.
    pub(super) fn is_usable(&self) -> bool {
        self.endpoint.is_usable() && !self.disconnected
    }

    /// Whether kube-proxy's rules consider it.
    pub(super) fn is_considered(&self) -> bool {
        !self.excluded && !self.disconnected
    }

    /// Why it is not used while others are ready.
    pub(super) fn why_unusable(&self) -> Option<Reason> {
        match (self.endpoint.ready, self.endpoint.terminating) {
            _ if self.disconnected => Some(Reason::Disconnected),
            (true, _) => None,
            (false, true) => Some(Reason::Terminating),
            (false, false) => Some(Reason::NotReady),
        }
    }

    /// Whether it counts in the total for percentages: it gets traffic, or will when it is ready.
    pub(super) fn is_there(&self) -> bool {
        self.reason.is_chosen() || (!self.endpoint.terminating && !self.excluded)
    }

    /// The value of the label `key` of its Node; the zone may come from the slice. An empty value counts as absent.
    pub(super) fn label(&self, key: &str) -> Option<&'a Arc<str>> {
        if key == ZONE {
            return self.zone;
        }
        let label = self.node?.labels.get(key);
        label.filter(|value| !value.is_empty())
    }
}

/// Whether its server closed its connection to the agent.
fn is_disconnected(view: &PortView<'_>, endpoint: &Endpoint, port: u16) -> bool {
    let server = SocketAddr::new(endpoint.address, port);
    view.me.disconnected.contains(&server)
}

/// Why `address` can never be a real server of a family; the API server refuses the same addresses in an EndpointSlice.
pub(super) fn unusable(address: IpAddr, family: Family) -> Option<&'static str> {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    if Family::of(address) != family {
        Some("is not of the slice's address family")
    } else if link_local {
        Some("is a link-local address")
    } else {
        special(address)
    }
}

/// Why `address` can be neither a real server nor a cluster IP.
pub(super) fn special(address: IpAddr) -> Option<&'static str> {
    let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    if address.is_loopback() {
        Some("is a loopback address")
    } else if address.is_unspecified() {
        Some("is the unspecified address")
    } else if address.is_multicast() || broadcast {
        Some("is a multicast or broadcast address")
    } else {
        None
    }
}
