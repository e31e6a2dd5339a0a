//! `TopologyAgent`: what this agent tells of itself, as an object of the API server.
//!
//! ```text
//!  the loop ──(each Service, when it is resolved)──> Ledger ──> Account ──┐
//!  Pulse, collections ────────────────────────────────────────────────────┴─> AgentStatus ──> Pace ──> Desk ──> API server
//! ```
//!
//! The [`Ledger`] is kept up to date Service by Service, so a report costs what it tells, whatever the size of
//! the cluster. `Pace` says when it may be written; [`Desk`] writes it. Nothing here can stop or delay the loop.
//!
//! Reports of all nodes end up in one etcd, so each is bounded: in bytes (`share`) and in how often it is written
//! (`Pace`), both by the number of nodes.

// A source, reason, note or fact that is added must be thought of everywhere, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

pub(crate) mod keeper;
pub(crate) mod ledger;
pub(crate) mod pace;

mod compare;
mod desk;
mod share;
mod told;

#[cfg(test)]
mod tests;

pub use desk::{Desk, Filed};
pub use ledger::{Account, Ledger};
pub use told::Told;
