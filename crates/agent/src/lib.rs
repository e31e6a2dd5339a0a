//! The node agent: the loop over the data plane, the node's report, health, metrics and the local
//! API.

#![allow(
    missing_docs,
    reason = "a crate of this program, not a library for others"
)]

pub mod agent_config;
pub mod agent_status;
mod api;
mod health;
pub mod metrics;
pub mod node_events;
mod node_warning;
mod run;
pub mod start;
mod start_error;
mod state;

mod endpoint_connections;
mod inputs;
mod loopback_node_ports;
mod reconcile;
mod serve;
mod server_header;
mod service_health;
mod service_ports;
