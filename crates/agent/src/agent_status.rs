//! `TopologyAgent`: what this agent tells of itself, as an object of the API server.
//!
//! ```text
//!  the loop ──(each Service, when it is resolved)──> Aggregate ──> DecisionSummary ──┐
//!  Pulse, collections ────────────────────────────────────────────────────┴─> AgentStatus ──> RateLimit ──> StatusClient ──> API server
//! ```
//!
//! The [`Aggregate`] is kept up to date Service by Service, so a report costs what it tells, whatever the size of
//! the cluster. `RateLimit` says when it may be written; [`StatusClient`] writes it. Nothing here can stop or delay the loop.
//!
//! Reports of all nodes end up in one etcd, so each is bounded: in bytes (`share`) and in how often it is written
//! (`RateLimit`), both by the number of nodes.

// A source, reason, note or fact that is added must be thought of everywhere, and not fall under `_`.
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
