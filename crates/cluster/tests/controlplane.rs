//! Against a real API server: `cargo xtask controlplane test` starts it and says where it is.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "controlplane/crds.rs"]
mod crds;
#[path = "controlplane/follower.rs"]
mod follower;
#[path = "controlplane/following.rs"]
mod following;
#[path = "controlplane/itself.rs"]
mod itself;
#[path = "controlplane/kubectl.rs"]
mod kubectl;
#[path = "controlplane/manifests.rs"]
mod manifests;
#[path = "controlplane/report.rs"]
mod report;
#[path = "controlplane/rows.rs"]
mod rows;
#[path = "controlplane/written.rs"]
mod written;
