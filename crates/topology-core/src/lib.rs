//! Which endpoints of a Service a node should use, with which weights, and why.
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
//! The caller owns everything that is not a value: it feeds objects in, executes the steps, tells the mirror how each
//! one went, and brings the time along as milliseconds of any clock. The explanation of a decision is a by-product of
//! taking it, so the two cannot disagree.
//!
//! # What it never does
//!
//! No I/O, no clock, no async, no logging, no serialization, no Kubernetes or netlink types, no panics. The same input gives
//! the same answer on every machine and in every run: shares are exact fractions, and nothing hangs on the order of a
//! hash map.
//!
//! # Where to start reading
//!
//! [`resolve::resolve`] and [`resolve::STAGES`]; then [`quantise`] for how shares become weights, and [`plan`] for how the
//! kernel is changed without a moment in which nothing serves.

// A source, reason, note or fact that is added must be thought of everywhere, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

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
pub mod words;

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
