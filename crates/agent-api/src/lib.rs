//! Defines what the agent answers on its unix socket, builds it from decisions, and asks for it.
//!
//! The agent serves these views; the commands of `ipvs-topo` build the same ones from files, so both print the same.

#![allow(
    missing_docs,
    reason = "a crate of this program, not a library for others"
)]

pub mod client;
pub mod describe;
pub mod explain;
pub mod policy_text;
pub mod scope;
pub mod status;
pub mod view;
pub mod words;
