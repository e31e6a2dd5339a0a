//! The controller against a real API server: `cargo xtask controlplane test --package controller`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../../cluster/tests/controlplane/kubectl.rs"]
#[expect(dead_code, reason = "the tests of `cluster` use the rest")]
mod kubectl;
#[path = "controlplane/process.rs"]
mod process;
#[path = "controlplane/work.rs"]
mod work;
