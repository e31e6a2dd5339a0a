//! Topology-aware endpoint selection for Kubernetes Services, as values.
//!
//! ```text
//! Snapshot + Dirty -> resolve (stages S0..S11) -> VirtualServer + Decision -> diff against Mirror -> Plan
//! ```
//!
//! This crate never does I/O, never reads a clock, never logs, and knows no Kubernetes or netlink type.

pub mod mirror;
pub mod model;
pub mod plan;
pub mod policy;
pub mod quantise;
pub mod ratio;
pub mod resolve;
pub mod snapshot;
pub mod virtual_server;
