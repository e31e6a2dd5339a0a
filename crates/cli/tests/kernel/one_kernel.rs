//! Tests of the agent that do not depend on the kernel's version, and counts that take a minute on
//! each kernel (`shares_counted`): `cargo xtask test` runs these on 6.12 only.
//!
//! Tests of the kernel's own work (connections, shares, drains, tables, kinds of Services) are
//! outside of this module and run on every kernel.

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
#[path = "shares_counted.rs"]
mod shares_counted;
#[path = "source_ranges.rs"]
mod source_ranges;
#[path = "trouble.rs"]
mod trouble;
