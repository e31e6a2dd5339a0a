//! Decides which endpoints of a Service a node should use, and with which weights, and explains why.
//!
//! ```text
//!  Nodes, Services, EndpointSlices                 the kernel's IPVS table
//!               |                                             |
//!               v                                             v
//!           Snapshot ---- Dirty: what to decide again      Mirror: what it holds, and whose it is
//!               |                                             |
//!            resolve, for one node                            |
//!            stages S0 .. S11                                 |
//!               |                                             |
//!               +--> Decision: a Reason for every endpoint    |
//!               v                                             |
//!         VirtualServer ---------------> plan::diff <---------+
//!                                            |
//!                                            v
//!                               Plan: Steps in an order that always serves
//! ```
//!
//! The caller does everything else: it adds objects, executes the steps, reports the result of each to the mirror, and
//! passes the time in milliseconds of any clock. A decision and its explanation are computed together, so they cannot
//! disagree.
//!
//! # What it does not do
//!
//! No I/O, no clock, no async, no logging, no serialization, no Kubernetes or netlink types, no panics. The same input
//! gives the same result on every machine and in every run: shares are exact fractions, and nothing depends on the
//! order of a hash map.
//!
//! # Where to start reading
//!
//! [`resolve::resolve`] and [`resolve::STAGES`]; then [`quantise`], which converts shares to weights, and [`plan`],
//! which changes the kernel without an interruption of service.

// A new source, reason, note or fact must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod address_index;
pub mod api_values;
mod hash;
pub mod health_check;
pub mod hints;
pub mod memory;
pub mod mirror;
pub mod model;
pub mod plan;
pub mod policy;
pub mod quantise;
pub mod ratio;
pub mod resolve;
pub mod scheduler;
pub mod snapshot;
pub mod virtual_server;

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
