//! The command line `ipvs-topo`: its arguments, its commands, and how results are shown.

#![allow(
    missing_docs,
    reason = "a crate of this program, not a library for others"
)]

pub mod args;
pub mod diff;
pub mod dns;
pub mod dns_answers;
pub mod exit;
pub mod explain;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod locate;
pub mod offline;
pub mod origin;
pub mod output;
pub mod render;
pub mod simulate;
pub mod start;
pub mod status;

mod runtime;
mod services;
