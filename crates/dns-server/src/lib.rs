//! Serves the names of a cluster over UDP and TCP, and forwards other names.
//!
//! ```text
//!  UDP: hickory_server::Server ──┐
//!                                ├──> handler ──> cluster_state: dns::Responder
//!  TCP: connections, limited ────┘       │
//!                                        └──────> forwarder ──> upstream
//!  cluster::source::Watch ──> cluster_state
//! ```
//!
//! It decides nothing: [`dns`] does. It does not know the command line.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

mod cluster_state;
mod connections;
mod forwarder;
mod handler;
mod reply;
mod serve;

pub use serve::{NameServer, NameServerOptions, ServeError};
