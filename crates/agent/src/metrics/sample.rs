//! Fills every metric once, for the reference page and for tests.

use std::time::Duration;

use topology_core::model::Family;

use super::Metrics;
use super::figures::{Figures, Server, Start, TierShare};
use super::record::{DrainEnd, Probe};

/// Metrics in which each kind of event happened once, and figures in which each series has a value.
pub fn eventful() -> (Metrics, Figures) {
    let metrics = Metrics::new();
    let took = Duration::from_millis(3);
    metrics.pass_ended(Family::V4, took);
    metrics.plan_applied(took);
    metrics.kernel_writes("add_real", "done", 1);
    metrics.change_programmed(took);
    metrics.endpoints_programmed(Family::V4, took);
    metrics.input_changed(2, 5);
    metrics.drain_ended(DrainEnd::Idle);
    metrics.repaired("missing", 1);
    metrics.conntrack_cleaned(Family::V6, 7, took);
    metrics.probed(Probe::Healthz, 200);
    metrics.probed(Probe::Livez, 503);
    let share = TierShare {
        service: "shop/cart".to_owned(),
        port: "http".to_owned(),
        family: "IPv4",
        tier: "zone".to_owned(),
        desired: 0.15,
        programmed: 0.152,
    };
    let figures = Figures {
        virtual_servers: [("IPv4", 2)].into(),
        real_servers: [(("IPv4", "active"), 6), (("IPv4", "draining"), 1)].into(),
        foreign: [("virtual-server", 3)].into(),
        warnings: [("Input".to_owned(), 4)].into(),
        shares: vec![share],
        last_pass: [("IPv4", 1.5)].into(),
        last_queued: [("IPv4", 1.25)].into(),
        without_local_endpoints: [(("IPv4", "internal"), 1), (("IPv6", "external"), 2)].into(),
        objects: [("Service".to_owned(), 2)].into(),
        server: Some(server()),
        start: Some(Start::default()),
        ..Figures::default()
    };
    (metrics, figures)
}

/// An API server that answered some requests.
fn server() -> Server {
    let request =
        |verb, resource: &str, code: &str| (verb, "GET", resource.to_owned(), code.to_owned());
    Server {
        address: "https://10.0.0.1:6443/".to_owned(),
        requests: [
            (request("list", "nodes", "200"), 2),
            (request("watch", "nodes", "200"), 3),
            (request("watch", "services", "<error>"), 1),
        ]
        .into(),
        bytes: [("nodes".to_owned(), 4096)].into(),
        last_received: [("nodes", 12.5)].into(),
        doubted: [("services", 1990)].into(),
        behind: [("nodes", false), ("services", true)].into(),
        node_source: "map",
    }
}
