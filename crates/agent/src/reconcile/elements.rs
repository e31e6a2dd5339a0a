//! Computes the elements of nftables sets for one virtual server.

use std::collections::BTreeSet;

use dataplane::nftables::{Element, SetElement, SetId};
use topology_core::model::{Family, FrontendKind, Service, TrafficPolicy};
use topology_core::policy::OnNoMatch;
use topology_core::resolve::{Decision, Refusal, ResolvedServer};
use topology_core::snapshot::FrontendKey;
use topology_core::virtual_server::VirtualServerKey;

/// Returns the elements for `resolved`, a virtual server of `service` on the node `node`. Outside clients of the frontends
/// `marked` have a virtual server of their own.
pub(super) fn elements(
    resolved: &ResolvedServer,
    service: &Service,
    node: &str,
    marked: &BTreeSet<FrontendKey>,
) -> BTreeSet<SetElement> {
    let endpoints = resolved.decision.endpoints.iter();
    let local = endpoints.filter(|endpoint| endpoint.node.as_deref() == Some(node));
    let mut elements: BTreeSet<SetElement> = local
        .map(|endpoint| (SetId::Hairpin, Element::Pair(endpoint.address)))
        .collect();
    match resolved.server.key {
        VirtualServerKey::Address {
            protocol,
            address,
            port,
        } => {
            let listener = Element::Listener(address, protocol, port);
            if is_silent(&resolved.decision) {
                elements.insert((SetId::Silent, listener));
            }
            let frontend = FrontendKey {
                address,
                protocol,
                port,
            };
            // Without a mark outside clients get endpoints of other nodes, too.
            let keeps_clients = service.external_traffic_policy == TrafficPolicy::Local
                && marked.contains(&frontend);
            if resolved.kind.is_external() && !keeps_clients {
                elements.insert((SetId::Masquerade, listener));
            }
            if resolved.kind == FrontendKind::LoadBalancer {
                elements.extend(source_ranges(service, frontend));
            }
        }
        VirtualServerKey::FirewallMark { mark, .. } => {
            elements.extend(outside_clients(resolved, mark));
        }
    }
    elements
}

/// Whether the virtual server `key` must not exist before the element: without it, other clients could connect, or
/// clients would get replies from an address that they do not know.
pub(super) fn comes_before(key: &VirtualServerKey, (set, element): &SetElement) -> bool {
    let VirtualServerKey::Address {
        protocol,
        address,
        port,
    } = *key
    else {
        return false;
    };
    let is_of_key = match *element {
        Element::Listener(ip, of, number) | Element::SourceRange(ip, of, number, _) => {
            (ip, of, number) == (address, protocol, port)
        }
        Element::Range(_) | Element::Address(_) | Element::Pair(_) | Element::Mark(..) => false,
    };
    is_of_key
        && [
            SetId::Masquerade,
            SetId::Firewalled,
            SetId::SourceRanges,
            SetId::DropOutside,
        ]
        .contains(set)
}

/// The clients that may use a load balancer address, unless all may.
fn source_ranges(service: &Service, frontend: FrontendKey) -> Vec<SetElement> {
    let FrontendKey {
        address,
        protocol,
        port,
    } = frontend;
    let family = Family::of(address);
    let ranges = service.source_ranges.iter().flatten();
    let mut of_family = ranges.filter(|range| Family::of_range(range) == family);
    let is_open = service.source_ranges.is_none() || of_family.clone().any(|r| r.prefix() == 0);
    if is_open {
        return Vec::new();
    }
    let listener = Element::Listener(address, protocol, port);
    let ranges = of_family
        .by_ref()
        .map(|range| Element::SourceRange(address, protocol, port, *range));
    let ranges = ranges.map(|element| (SetId::SourceRanges, element));
    std::iter::once((SetId::Firewalled, listener))
        .chain(ranges)
        .collect()
}

/// The mark for packets of outside clients. They are dropped if only other nodes have endpoints, so that a load balancer
/// tries those nodes; without any endpoint IPVS refuses them.
fn outside_clients(resolved: &ResolvedServer, mark: u32) -> Vec<SetElement> {
    let is_dropped = match resolved.decision.refusal {
        None | Some(Refusal::NoEndpoints | Refusal::NoneReady) => false,
        Some(_) => true,
    };
    let mut elements: Vec<SetElement> = Vec::new();
    for FrontendKey {
        address,
        protocol,
        port,
    } in resolved.marked.iter().copied()
    {
        elements.push((SetId::Marks, Element::Mark(address, protocol, port, mark)));
        if is_dropped {
            let listener = Element::Listener(address, protocol, port);
            elements.push((SetId::DropOutside, listener));
        }
    }
    elements
}

/// Whether clients that cannot be served get no reply.
fn is_silent(decision: &Decision) -> bool {
    let no_match = matches!(
        decision.refusal,
        Some(
            Refusal::NoMatch | Refusal::OwnNodeUnknown | Refusal::Avoided | Refusal::BoundaryUnread
        )
    );
    no_match && decision.on_no_match == OnNoMatch::Drop
}
