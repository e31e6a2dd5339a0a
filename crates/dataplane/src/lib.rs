//! Reads and writes the kernel state of one node: its IPVS table, routes, nftables tables, connection tracking and
//! sysctls.
//!
//! [`ipvs::Kernel`] is the interface to the IPVS table. [`host::Host`] is the interface to everything else, including
//! the record of which virtual servers are ours. The agent's loop decides what to write, and calls this crate.

#![allow(
    missing_docs,
    reason = "a crate of this program, not a library for others"
)]

pub mod conntrack;
pub mod crash_point;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod host;
pub mod infrastructure;
pub mod ipvs;
pub mod lock;
pub mod nftables;
pub mod other_proxy;
pub mod ownership;
pub mod preflight;
pub mod routes;
pub mod sysctl;

mod hash;
