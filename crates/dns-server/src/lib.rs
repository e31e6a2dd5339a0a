//! Serves the names of a cluster over UDP and TCP, and forwards other names.
//!
//! ```text
//!  UDP: hickory_server::Server ──┐
//!                                ├──> handler ──> cluster_state: dns::Responder
//!  TCP: connections, limited ────┘       │
//!                                        └──────> forwarder ──> upstream
//!  cluster::source::Watch ──> cluster_state
//!
//!  HTTP: http_status ──> metrics of all of them, health
//! ```
//!
//! It decides nothing: [`dns`] does. It does not know the command line.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

mod client_limit;
mod cluster_state;
mod connections;
mod exchange;
mod forwarder;
mod handler;
mod http_status;
mod metrics;
mod reply;
mod serve;
mod tcp_message;

pub use dns::ResponderOptions;
pub use handler::Handler;
pub use hickory_server::net::xfer::Protocol;
pub use metrics::DnsMetrics;
pub use serve::{NameServer, NameServerOptions, ServeError, SocketPurpose};
