//! The controller of ipvs-topo: one leader per cluster.
//!
//! ```text
//!  follow ──Update──> State ──plan──> writes ──Budget──> API server
//!  (collections)      (pure)          (differences)
//!  leader_election ────────────────────^
//! ```
//!
//! - [`lease`]: leader election with a Lease; pure.
//! - [`state`]: the observed objects and the writes that follow from them; pure.
//! - [`budget`]: the limit on the rate of writes; pure.
//! - [`event_recorder`]: Events on Services, one for all Nodes; pure.
//! - [`run`]: the loop that connects them, and all network code.
//!
//! Traffic does not depend on the controller: without it agents keep the state that they have.

#![allow(missing_docs, reason = "binary crate")]
// A new variant must be handled everywhere and not match `_`.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod budget;
pub mod cli;
pub mod event_recorder;
pub mod leader_election;
pub mod lease;
mod log_once;
pub mod metrics;
pub mod run;
pub mod serve;
pub mod state;
