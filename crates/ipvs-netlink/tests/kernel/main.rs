//! The crate on real kernels: `cargo xtask vm test ipvs-netlink`.
//!
//! Every test is a process in a network namespace of its own, with an empty IPVS table and `lo` up.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what they expect by failing loudly"
)]

mod alone;
mod errors;
mod examples;
mod options;
mod other_families;
mod settings;
mod support;
mod traffic;
#[path = "../golden/words.rs"]
mod words;
