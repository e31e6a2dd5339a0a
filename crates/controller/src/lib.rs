//! The controller of ipvs-topo: one leader per cluster.
//!
//! ```text
//!  follow ──Update──> State ──plan──> writes ──Budget──> API server
//!  (collections)      (pure)          (differences)
//!  leader_election ────────────────────^
//! ```
//!
//! - [`lease`]: leader election by a Lease; pure.
//! - [`state`]: the objects that are known, and the writes that follow from them; pure.
//! - [`budget`]: the limit on the rate of writes; pure.
//! - [`event_recorder`]: Events on Services, one for all Nodes; pure.
//! - [`run`]: the loop that joins them, and everything that touches the network.
//!
//! Traffic does not depend on it: without it agents go on with the state that they have.

#![allow(missing_docs, reason = "binary crate")]
// A source, reason, note or fact that is added must be thought of everywhere, and not fall under `_`.
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
