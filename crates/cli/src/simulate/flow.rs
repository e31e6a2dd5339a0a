//! Computes the traffic of one Service when every Node decides for itself.

use std::net::IpAddr;
use std::sync::Arc;

use agent_api::{describe, policy_text};
use topology_core::model::ObjectName;
use topology_core::policy::LevelKey;
use topology_core::resolve::{
    Clients, Decision, EndpointDecision, Reason, ResolvedServer, Viewpoint, resolve_for_clients,
};
use topology_core::snapshot::Snapshot;
use topology_core::virtual_server::VirtualServerKey;

use super::group::{Client, Group};
use super::matrix::Matrix;
use super::node_zones::NodeZones;

/// The traffic of one virtual server, or of the clients that ask DNS for a headless Service, from all Nodes.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) key: VirtualServerKey,
    /// The kind of the address, or `DNS`.
    pub(crate) kind: &'static str,
    /// Empty for the name of a headless Service.
    pub(crate) port_name: Arc<str>,
    /// The policy as text, as seen from the first group.
    pub(crate) policy: String,
    /// The levels of that policy, nearest first; empty without a policy.
    pub(crate) levels: Vec<LevelKey>,
    /// From zone to zone, as parts of the traffic; the sum is 1 with `refused`.
    pub(crate) matrix: Matrix,
    pub(crate) refused: f64,
    /// Every endpoint that could serve.
    pub(crate) endpoints: Vec<Load>,
    /// Levels with a share and without endpoints, with the part of the traffic that they affect.
    pub(crate) empty: Vec<(String, f64)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    pub(crate) node: Option<Arc<str>>,
    pub(crate) zone: usize,
    /// Its part of the traffic relative to an even split among all that could serve.
    pub(crate) relative: f64,
}

/// Decides `service` for one Node of each group, and for all of a group if distant endpoints are
/// thinned out, because each Node then keeps others.
pub(crate) fn flows(
    snapshot: &Snapshot,
    node_zones: &NodeZones,
    me: &Viewpoint,
    service: &ObjectName,
    groups: &[Group],
) -> Vec<Flow> {
    let mut flows: Vec<Flow> = Vec::new();
    let ask = |client: &Client| {
        let me = Viewpoint {
            node: client.node.clone(),
            ..me.clone()
        };
        let mut servers = resolve_for_clients(snapshot, &me, service).servers;
        servers.retain(starts_at_pods);
        servers
    };
    for group in groups {
        let Some((first, others)) = group.clients.split_first() else {
            continue;
        };
        let servers = ask(first);
        if flows.is_empty() {
            let begin = |server| Flow::begin(server, node_zones);
            flows = servers.iter().map(begin).collect();
        }
        let mut add = |servers: &[ResolvedServer], part: f64| {
            for (flow, server) in flows.iter_mut().zip(servers) {
                flow.add(&server.decision, group.zone, part, node_zones);
            }
        };
        let parts = others.iter().map(|client| client.part);
        if servers.iter().any(is_thinned) {
            add(&servers, first.part);
            for client in others {
                add(&ask(client), client.part);
            }
        } else {
            add(&servers, first.part + parts.sum::<f64>());
        }
    }
    for flow in &mut flows {
        flow.finish();
    }
    flows
}

impl Flow {
    fn begin(server: &ResolvedServer, node_zones: &NodeZones) -> Self {
        let decision = &server.decision;
        let load = |endpoint: &EndpointDecision| Load {
            address: endpoint.address,
            port: endpoint.port,
            node: endpoint.node.clone(),
            zone: node_zones.zone(endpoint.zone.as_deref()),
            relative: 0.0,
        };
        let usable = decision
            .endpoints
            .iter()
            .filter(|endpoint| could_serve(endpoint));
        Self {
            key: server.server.key,
            kind: describe::kind(server),
            port_name: server.port_of_slices().cloned().unwrap_or_default(),
            policy: policy_text::policy(decision),
            levels: levels(decision),
            matrix: Matrix::new(node_zones.zones.len()),
            refused: 0.0,
            endpoints: usable.map(load).collect(),
            empty: Vec::new(),
        }
    }

    /// Adds the `part` of the traffic that starts in `zone`, with this decision.
    fn add(&mut self, decision: &Decision, zone: usize, part: f64, node_zones: &NodeZones) {
        if decision.refusal.is_some() {
            self.refused += part;
        }
        for endpoint in decision
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.is_chosen())
        {
            let part = endpoint.share.to_f64() * part;
            self.matrix
                .add(zone, node_zones.zone(endpoint.zone.as_deref()), part);
            let id = (endpoint.address, endpoint.port);
            let at = self
                .endpoints
                .binary_search_by_key(&id, |load| (load.address, load.port));
            if let Some(load) = at.ok().and_then(|at| self.endpoints.get_mut(at)) {
                load.relative += part;
            }
        }
        let wanting = decision
            .levels
            .iter()
            .filter(|level| level.usable == 0 && !level.desired.is_zero());
        for level in wanting {
            self.meet_empty(&level.key.to_string(), part);
        }
    }

    fn meet_empty(&mut self, level: &str, part: f64) {
        match self.empty.iter_mut().find(|(known, _)| known == level) {
            Some((_, sum)) => *sum += part,
            None => self.empty.push((level.to_owned(), part)),
        }
    }

    /// Converts parts of the traffic to loads relative to an even split.
    fn finish(&mut self) {
        let count = f64::from(u32::try_from(self.endpoints.len()).unwrap_or(u32::MAX));
        for load in &mut self.endpoints {
            load.relative *= count;
        }
    }
}

/// Whether pods are its clients. Those of a headless Service ask for its name, hardly ever for a port.
fn starts_at_pods(server: &ResolvedServer) -> bool {
    let is_of_port = server.server.key.is_for_dns() && server.port_of_slices().is_some();
    server.clients != Clients::Outside && !is_of_port
}

fn is_thinned(server: &ResolvedServer) -> bool {
    let mut endpoints = server.decision.endpoints.iter();
    endpoints.any(|endpoint| endpoint.reason == Reason::Subset)
}

/// The levels of a policy.
fn levels(decision: &Decision) -> Vec<LevelKey> {
    let levels = decision.levels.iter();
    let asked = levels.filter(|_| decision.source.is_policy());
    asked.map(|level| level.key.clone()).collect()
}

/// Whether the endpoint could serve, chosen or not.
fn could_serve(endpoint: &EndpointDecision) -> bool {
    !matches!(
        endpoint.reason,
        Reason::NotReady | Reason::Terminating | Reason::Disconnected | Reason::BadAddress
    )
}
