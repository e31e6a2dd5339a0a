//! What the agent itself does, whatever the kernel: `cargo xtask test` runs these on 6.12 only.
//!
//! What is about the kernel's own work (where connections go, drains, the tables, kinds of Services)
//! stays outside and runs on every kernel.

#[path = "addresses.rs"]
mod addresses;
#[path = "crash.rs"]
mod crash;
#[path = "foreign.rs"]
mod foreign;
#[path = "half_open.rs"]
mod half_open;
#[path = "input.rs"]
mod input;
#[path = "render.rs"]
mod render;
#[path = "restart.rs"]
mod restart;
#[path = "trouble.rs"]
mod trouble;
