//! What one process per cluster does for ipvs-topo.
//!
//! ```text
//!  follow ──Change──> World ──plan──> writes ──Budget──> API server
//!  (collections)      (pure)          (differences)
//!  lease ──who leads──────────────────────^
//! ```
//!
//! - [`lease`]: one of several replicas leads; pure.
//! - [`world`]: what is known, and what should be written; pure.
//! - [`budget`]: how much of that may be written now; pure.
//! - [`chronicle`]: what is said in Events, once for all Nodes; pure.
//! - [`run`]: the loop that joins them, and everything that touches the network.
//!
//! It never sits in the way of traffic: agents go on without it, with what they know.

// A source, reason, note or fact that is added must be thought of everywhere, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod budget;
pub mod chronicle;
pub mod cli;
pub mod elect;
pub mod lease;
pub mod log;
pub mod metrics;
pub mod run;
pub mod serve;
mod trouble;
pub mod world;
