//! Tests in a real cluster of three nodes, which `cargo xtask lab test` starts.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "lab/alone.rs"]
mod alone;
#[path = "lab/announcer.rs"]
mod announcer;
#[path = "lab/cluster.rs"]
mod cluster;
#[path = "lab/cluster_dns.rs"]
mod cluster_dns;
#[path = "lab/document.rs"]
mod document;
#[path = "lab/installed.rs"]
mod installed;
#[path = "lab/itself.rs"]
mod itself;
#[path = "lab/metallb.rs"]
mod metallb;
#[path = "lab/migration.rs"]
mod migration;
#[path = "lab/outsider.rs"]
mod outsider;
#[path = "lab/refusal.rs"]
mod refusal;
#[path = "lab/traffic.rs"]
mod traffic;
#[path = "lab/two_proxies.rs"]
mod two_proxies;
#[path = "lab/web.rs"]
mod web;
