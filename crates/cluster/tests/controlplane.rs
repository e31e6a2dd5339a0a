//! Tests against a real API server. `cargo xtask controlplane test` starts it and sets its address.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[macro_use]
#[path = "following/cases.rs"]
mod cases;

#[path = "controlplane/accounts.rs"]
mod accounts;
#[path = "controlplane/bound.rs"]
mod bound;
#[path = "controlplane/crds.rs"]
mod crds;
#[path = "controlplane/days.rs"]
mod days;
#[path = "controlplane/definitions.rs"]
mod definitions;
#[path = "following/fake.rs"]
#[expect(dead_code, reason = "the tests of `following` use the rest")]
mod fake;
#[path = "controlplane/faults.rs"]
mod faults;
#[path = "controlplane/follower.rs"]
mod follower;
#[path = "controlplane/following.rs"]
mod following;
#[path = "controlplane/gate.rs"]
mod gate;
#[path = "controlplane/hints.rs"]
mod hints;
#[path = "controlplane/itself.rs"]
mod itself;
#[path = "controlplane/kubectl.rs"]
mod kubectl;
#[path = "controlplane/manifests.rs"]
mod manifests;
#[path = "controlplane/map_rows.rs"]
mod map_rows;
#[path = "controlplane/mapped.rs"]
mod mapped;
#[path = "controlplane/placement.rs"]
mod placement;
#[path = "controlplane/report.rs"]
mod report;
#[path = "controlplane/rows.rs"]
mod rows;
#[path = "controlplane/written.rs"]
mod written;
