//! The controller with a real API server: `cargo xtask controlplane test --package controller`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "controlplane/audit.rs"]
mod audit;
#[path = "controlplane/days.rs"]
mod days;
#[path = "../../cluster/tests/controlplane/follower.rs"]
#[expect(dead_code, reason = "the tests of `cluster` use the rest")]
mod follower;
#[path = "../../cluster/tests/controlplane/gate.rs"]
#[expect(dead_code, reason = "the tests of `cluster` use the rest")]
mod gate;
#[path = "controlplane/hints.rs"]
mod hints;
#[path = "../../cluster/tests/controlplane/kubectl.rs"]
#[expect(dead_code, reason = "the tests of `cluster` use the rest")]
mod kubectl;
#[path = "controlplane/pods.rs"]
mod pods;
#[path = "controlplane/process.rs"]
mod process;
#[path = "../../cli/tests/controlplane/random.rs"]
#[expect(dead_code, reason = "the tests of `agent` use the rest")]
mod random;
#[path = "controlplane/renewals.rs"]
mod renewals;
#[path = "controlplane/same.rs"]
mod same;
#[path = "controlplane/work.rs"]
mod work;
