//! Implements kube-proxy's own endpoint selection, as of 1.35 (`pkg/proxy/topology.go`; KEP-2433,
//! KEP-3015, KEP-1669).
//!
//! It decides for Services that none of our policies decides. The oracle tests C1 to C30 compare it
//! with kube-proxy.

use crate::model::{Endpoint, TrafficPolicy};

/// The traffic policies of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficPolicies {
    /// `spec.internalTrafficPolicy`.
    pub internal: TrafficPolicy,
    /// `spec.externalTrafficPolicy`.
    pub external: TrafficPolicy,
    /// Whether it has a node port, load-balancer address or external address.
    pub externally_accessible: bool,
}

/// The location of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLocation<'a> {
    /// The name of the Node.
    pub node: &'a str,
    /// Its zone label; an empty one counts as none.
    pub zone: Option<&'a str>,
}

/// Whether hints that name Nodes count: always since Kubernetes 1.35.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeHints {
    /// They count.
    Honoured,
    /// Only zones count, as up to 1.34 with the feature gate `PreferSameTrafficDistribution` off.
    Ignored,
}

/// The hints that restrict the cluster list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// None.
    Anywhere,
    /// Hints that name this Node.
    SameNode,
    /// Hints that name this zone.
    SameZone,
}

/// Lists of endpoints, by index. A list that no traffic policy uses is `None`; one without
/// endpoints is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Categories {
    /// For traffic policy Cluster.
    pub cluster: Option<Vec<usize>>,
    /// For traffic policy Local.
    pub local: Option<Vec<usize>>,
    /// Whether any endpoint in the cluster could serve.
    pub has_any: bool,
    /// The hints that restrict the cluster list.
    pub topology: Topology,
}

impl Categories {
    /// All endpoints of both lists, in order.
    pub fn union(&self) -> Vec<usize> {
        let lists = self.cluster.iter().chain(&self.local).flatten().copied();
        lists
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect()
    }
}

/// Sorts the endpoints of one Service port into the lists.
pub fn categorize(
    endpoints: &[&Endpoint],
    traffic: TrafficPolicies,
    place: ProxyLocation<'_>,
    node_hints: NodeHints,
) -> Categories {
    let uses_cluster = traffic.internal != TrafficPolicy::Local || traffic.externally_accessible;
    let uses_local = traffic.internal == TrafficPolicy::Local
        || (traffic.external == TrafficPolicy::Local && traffic.externally_accessible);
    let topology = if uses_cluster {
        topology(endpoints, place, node_hints)
    } else {
        Topology::Anywhere
    };
    let ready_near = |endpoint: &Endpoint| endpoint.ready && is_near(endpoint, topology, place);
    let local = |endpoint: &Endpoint| endpoint.node.as_deref() == Some(place.node);
    Categories {
        cluster: uses_cluster
            .then(|| first_list(endpoints, [&ready_near, &Endpoint::serves_terminating])),
        local: uses_local.then(|| {
            first_list(
                endpoints,
                [&|endpoint| endpoint.ready && local(endpoint), &|endpoint| {
                    endpoint.serves_terminating() && local(endpoint)
                }],
            )
        }),
        has_any: endpoints.iter().any(|endpoint| endpoint.is_usable()),
        topology,
    }
}

fn first_list(endpoints: &[&Endpoint], rules: [&dyn Fn(&Endpoint) -> bool; 2]) -> Vec<usize> {
    let matching = |rule: &&dyn Fn(&Endpoint) -> bool| -> Vec<usize> {
        let indices = endpoints
            .iter()
            .enumerate()
            .filter(|(_, endpoint)| rule(endpoint));
        indices.map(|(index, _)| index).collect()
    };
    rules
        .iter()
        .map(matching)
        .find(|list| !list.is_empty())
        .unwrap_or_default()
}

/// Hints count only if every ready endpoint has them and at least one names this Node or zone.
fn topology(endpoints: &[&Endpoint], place: ProxyLocation<'_>, node_hints: NodeHints) -> Topology {
    let usable = |mode: Topology, hinted: fn(&Endpoint) -> bool| {
        let mut ready = endpoints.iter().filter(|endpoint| endpoint.ready);
        ready.clone().all(|endpoint| hinted(endpoint))
            && ready.any(|endpoint| is_near(endpoint, mode, place))
    };
    if node_hints == NodeHints::Honoured && usable(Topology::SameNode, hints_nodes) {
        Topology::SameNode
    } else if usable(Topology::SameZone, hints_zones) {
        Topology::SameZone
    } else {
        Topology::Anywhere
    }
}

fn hints_nodes(endpoint: &Endpoint) -> bool {
    endpoint
        .hints
        .as_ref()
        .is_some_and(|hints| !hints.nodes.is_empty())
}

fn hints_zones(endpoint: &Endpoint) -> bool {
    endpoint
        .hints
        .as_ref()
        .is_some_and(|hints| !hints.zones.is_empty())
}

fn is_near(endpoint: &Endpoint, topology: Topology, place: ProxyLocation<'_>) -> bool {
    let Some(hints) = endpoint.hints.as_ref() else {
        return topology == Topology::Anywhere;
    };
    match topology {
        Topology::Anywhere => true,
        Topology::SameNode => hints.nodes.iter().any(|node| **node == *place.node),
        Topology::SameZone => place
            .zone
            .is_some_and(|zone| !zone.is_empty() && hints.zones.iter().any(|hint| **hint == *zone)),
    }
}
