//! `ipvs-topo dns`: the real program on loopback, with real queries over UDP and TCP.
//!
//! Loopback addresses stand for pods: 127.0.N.0/24 is the pod range of the node `nN`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "dns/agent_connection.rs"]
mod agent_connection;
#[path = "dns/api_server.rs"]
mod api_server;
#[path = "dns/arguments.rs"]
mod arguments;
#[path = "dns/client.rs"]
mod client;
#[path = "dns/explained.rs"]
mod explained;
#[path = "dns/forwarding.rs"]
mod forwarding;
#[path = "dns/limits.rs"]
mod limits;
#[path = "dns/nodes.rs"]
mod nodes;
#[path = "dns/offline.rs"]
mod offline;
#[path = "dns/program.rs"]
mod program;
#[path = "dns/scrape.rs"]
mod scrape;
#[path = "dns/status.rs"]
mod status;
