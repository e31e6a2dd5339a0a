//! Endpoints of this node whose servers closed their connections to the agent.
//!
//! Such an endpoint gets no traffic from the moment at which its server ends, instead of seconds later, when the
//! EndpointSlice has the news. It counts again when a server connects, or when the EndpointSlice has caught up: after the
//! endpoint was not ready there, or absent, its conditions count as those of any other endpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use topology_core::model::{Endpoint, EndpointSlice, ObjectName};
use topology_core::snapshot::Snapshot;

use super::pass::Work;
use super::reconciler::Reconciler;

/// The endpoints, each with the Services whose EndpointSlices say that it is usable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DisconnectedEndpoints(BTreeMap<SocketAddr, BTreeSet<ObjectName>>);

impl DisconnectedEndpoints {
    pub(super) fn endpoints(&self) -> BTreeSet<SocketAddr> {
        self.0.keys().copied().collect()
    }

    /// Takes over the endpoints whose connections `ended`, and the conditions of `changed` Services. Returns the Services
    /// of endpoints that were added or removed.
    pub(super) fn update(
        &mut self,
        ended: &BTreeSet<SocketAddr>,
        changed: &BTreeSet<ObjectName>,
        snapshot: &Snapshot,
        node: &str,
    ) -> BTreeSet<ObjectName> {
        let is_usable = |server: SocketAddr, service: &ObjectName| {
            let slices = snapshot.slices(service).iter();
            let mut slices = slices.filter(|_| snapshot.service(service).is_some());
            slices.any(|slice| has_usable(slice, server, node))
        };
        let mut affected = BTreeSet::new();
        self.0.retain(|server, services| {
            let is_kept = ended.contains(server);
            if !is_kept {
                affected.append(services);
            }
            is_kept
        });
        for &server in ended {
            let known = self.0.remove(&server);
            let is_new = known.is_none();
            let mut services = match known {
                Some(known) => known.union(changed).cloned().collect(),
                None => snapshot
                    .services()
                    .map(|one| one.name.clone())
                    .collect::<BTreeSet<_>>(),
            };
            services.retain(|service| is_usable(server, service));
            if is_new {
                affected.extend(services.iter().cloned());
            }
            if !services.is_empty() {
                self.0.insert(server, services);
            }
        }
        affected
    }
}

/// Whether the slice has a usable endpoint at `server` on the node.
fn has_usable(slice: &EndpointSlice, server: SocketAddr, node: &str) -> bool {
    let is_usable = |endpoint: &Endpoint| {
        endpoint.address == server.ip()
            && endpoint.node.as_deref() == Some(node)
            && (endpoint.ready || (endpoint.serving && endpoint.terminating))
    };
    slice
        .ports
        .iter()
        .any(|port| port.port.get() == server.port())
        && slice.endpoints.iter().any(is_usable)
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Takes over the present connections of servers, and the conditions of `changed` Services. Returns the Services
    /// that this affects.
    pub(super) fn update_disconnected(
        &mut self,
        changed: &BTreeSet<ObjectName>,
    ) -> BTreeSet<ObjectName> {
        let ended = self.endpoint_connections.ended();
        let before = &self.me.disconnected;
        if ended.is_empty() && before.is_empty() {
            return BTreeSet::new();
        }
        let snapshot = self.index.snapshot();
        let affected = self
            .disconnected
            .update(&ended, changed, snapshot, &self.me.node);
        let now = self.disconnected.endpoints();
        for server in now.difference(before) {
            tracing::warn!(
                "the server at {server} closed its connection to this agent: it gets no traffic until it connects again \
                 or its EndpointSlice changes"
            );
        }
        for server in before.difference(&now) {
            let cause = if ended.contains(server) {
                "its EndpointSlice has changed"
            } else {
                "it is connected again"
            };
            tracing::info!("the conditions of the server at {server} count again: {cause}");
        }
        self.endpoint_connections
            .forget(&ended.difference(&now).copied().collect());
        if now != **before {
            self.me.disconnected = Arc::new(now);
        }
        affected
    }

    /// Handles servers that connected or ended.
    pub(super) async fn connections_changed(&mut self) {
        let work = Work {
            services: self.update_disconnected(&BTreeSet::new()),
            ..Work::default()
        };
        if work.is_nothing() {
            return;
        }
        let done = self.pass(work).await;
        self.report(&done, None);
    }
}
