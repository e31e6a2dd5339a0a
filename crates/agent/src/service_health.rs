//! Serves health check node ports: load balancers ask each node whether it has endpoints of a Service with
//! `externalTrafficPolicy: Local` (KP-HC-10 to KP-HC-14).

mod answer;
mod event_budget;
mod proxy_health;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use telemetry::ConnectionLimit;
use topology_core::health_check::HealthCheck;
use topology_core::model::Family;

use self::answer::router;
use self::event_budget::EventBudget;
use self::proxy_health::ProxyHealth;
use crate::health::HealthSource;
use crate::node_events::{NodeEvent, NodeEvents};
use crate::service_ports::{HealthPorts, OpenFailure};

/// Concurrent connections of all ports. A client that opens connections to many ports and sends nothing loses the oldest
/// ones, and costs this many file descriptors.
const MAX_CONNECTIONS: usize = 1_024;

/// Answers on the ports until the task is dropped. `source` provides the state of the proxy. Ports that cannot be opened
/// cause Events on their Services (KP-HC-13).
pub(crate) async fn serve<S: HealthSource>(
    ports: HealthPorts,
    source: S,
    node: Arc<str>,
    events: NodeEvents,
) {
    let proxy = Arc::new(ProxyHealth::new(source));
    let limit = ConnectionLimit::new(MAX_CONNECTIONS);
    let counts = ports.clone();
    let server = move |listener, place| {
        let router = router(counts.clone(), Arc::clone(&proxy), place);
        telemetry::serve_within(listener, router, limit.clone())
    };
    let mut budget = EventBudget::new();
    let failed = |failure| {
        let OpenFailure {
            place: (service, socket),
            error,
        } = failure;
        if budget.take() {
            let text =
                format!("node {node} cannot open the health check node port {socket}: {error}");
            events.record(NodeEvent::no_health_check(service, text));
        }
    };
    ports.serve("health check port", server, failed).await;
}

/// The sockets of a health check at these addresses, with the local endpoints of their families. An unspecified address
/// stands for all of its family.
pub(crate) fn sockets(
    check: &HealthCheck,
    addresses: &BTreeSet<IpAddr>,
) -> BTreeMap<SocketAddr, usize> {
    let port = check.port.get();
    let socket = |ip: &IpAddr| {
        let endpoints = check.endpoints(Family::of(*ip))?;
        Some((SocketAddr::new(*ip, port), endpoints))
    };
    addresses.iter().filter_map(socket).collect()
}

#[cfg(test)]
mod tests;
