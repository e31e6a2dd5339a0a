//! The agent's local API: its response types, their construction from decisions, and the client.
//!
//! The agent serves these views. The commands of `ipvs-topo` build the same views from files, so both print the same.

#![allow(
    missing_docs,
    reason = "a crate of this program, not a library for others"
)]

pub mod client;
pub mod describe;
pub mod explain;
pub mod numbers;
pub mod policy_text;
pub mod scope;
pub mod status;
pub mod view;
