//! The endpoints of one Service port, each once.

use std::net::IpAddr;

use super::PortView;
use super::reason::Reason;
use crate::model::Endpoint;
use crate::ratio::Ratio;

/// An endpoint and what the stages have decided about it so far.
pub(super) struct Candidate<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) port: u16,
    pub(super) local: bool,
    /// Index of its level.
    pub(super) tier: Option<usize>,
    pub(super) reason: Reason,
    pub(super) share: Ratio,
    pub(super) weight: u32,
}

/// Endpoints that may be considered, and those whose address can never be a real server.
pub(super) struct Candidates<'a> {
    /// By address and port.
    pub(super) accepted: Vec<Candidate<'a>>,
    pub(super) refused: Vec<(IpAddr, &'static str)>,
}

/// Every endpoint of the port's name, protocol and family.
///
/// The same address and port in two slices is one endpoint; a copy on this node wins (KP-IN-17).
pub(super) fn collect<'a>(view: &PortView<'a>) -> Candidates<'a> {
    let mut candidates = Candidates {
        accepted: Vec::new(),
        refused: Vec::new(),
    };
    for slice in view.snapshot.slices(&view.service.name) {
        if slice.family != view.family() {
            continue;
        }
        let same = |port: &&crate::model::SlicePort| {
            port.name == view.port.name && port.protocol == view.port.protocol
        };
        for port in slice.ports.iter().filter(same) {
            for endpoint in &slice.endpoints {
                candidates.add(view, endpoint, port.port.get());
            }
        }
    }
    let order =
        |candidate: &Candidate<'_>| (candidate.endpoint.address, candidate.port, !candidate.local);
    candidates.accepted.sort_by_key(order);
    candidates
        .accepted
        .dedup_by_key(|candidate| (candidate.endpoint.address, candidate.port));
    candidates.refused.sort_unstable();
    candidates.refused.dedup();
    candidates
}

impl<'a> Candidates<'a> {
    fn add(&mut self, view: &PortView<'a>, endpoint: &'a Endpoint, port: u16) {
        if let Some(problem) = unusable(view, endpoint.address) {
            self.refused.push((endpoint.address, problem));
            return;
        }
        self.accepted.push(Candidate {
            endpoint,
            port,
            local: endpoint.node.as_deref() == Some(&*view.me.node),
            tier: None,
            reason: Reason::NotReady,
            share: Ratio::ZERO,
            weight: 0,
        });
    }
}

/// Why `address` can never be a real server.
fn unusable(view: &PortView<'_>, address: IpAddr) -> Option<&'static str> {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    if crate::model::Family::of(address) != view.family() {
        Some("is not of the slice's address family")
    } else if address.is_loopback() {
        Some("is a loopback address")
    } else if link_local {
        Some("is a link-local address")
    } else if address.is_unspecified() {
        Some("is the unspecified address")
    } else if address.is_multicast() {
        Some("is a multicast address")
    } else {
        None
    }
}
