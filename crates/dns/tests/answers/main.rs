//! Answers about clusters in YAML.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod agree;
mod changes;
mod cluster_of;
mod dual_stack;
mod headless;
mod name_servers;
mod names;
mod ports;
mod shares;
