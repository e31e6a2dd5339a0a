//! The node agent: the loop over the data plane, the node's report, health, metrics and the local
//! API.

#![allow(
    missing_docs,
    reason = "a crate of this program, not a library for others"
)]

pub mod agent_config;
pub mod agent_status;
pub mod api;
pub mod health;
pub mod metrics;
pub mod node_events;
pub mod node_warning;
pub mod run;
pub mod start;
pub mod start_error;
pub mod state;

mod endpoint_connections;
mod inputs;
mod loopback_node_ports;
mod reconcile;
mod serve;
mod server_header;
mod service_health;
mod service_ports;
