//! Reads and writes what one node's kernel holds for Services.
//!
//! [`ipvs::Kernel`] is the IPVS table, [`host::Host`] is everything beside it: routes, nftables, connection tracking,
//! sysctls, and the record of which virtual servers are ours. The agent's loop decides; this crate carries out.

#![allow(
    missing_docs,
    reason = "a crate of this program, not a library for others"
)]

pub mod conntrack;
pub mod crash_point;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod host;
pub mod ipvs;
pub mod lock;
pub mod nftables;
pub mod other_proxy;
pub mod ownership;
pub mod preflight;
pub mod routes;

mod hash;
mod sysctl;
