//! `TopologyAgent`: reports this agent's state as an object of the API server.
//!
//! ```text
//!  the loop ──(each Service, when it is resolved)──> Aggregate ──> DecisionSummary ──┐
//!  Pulse, collections ────────────────────────────────────────────────────┴─> AgentStatus ──> RateLimit ──> StatusClient ──> API server
//! ```
//!
//! The [`Aggregate`] is updated Service by Service, so the cost of a report depends on its own size, not on that of the
//! cluster. `RateLimit` says when a report may be written; [`StatusClient`] writes it. Nothing here can stop or delay
//! the loop.
//!
//! The reports of all nodes are in one etcd. So each is limited in bytes (`share`) and in how often it is written
//! (`RateLimit`), both by the number of nodes.

// A new source, reason, note or fact must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

pub(crate) mod aggregate;
pub(crate) mod rate_limit;
pub(crate) mod reporter;

mod client;
mod compare;
mod contribution;
mod share;

#[cfg(test)]
mod tests;

pub use aggregate::{Aggregate, DecisionSummary};
pub use client::{StatusClient, WriteResult};
pub use contribution::Contribution;
