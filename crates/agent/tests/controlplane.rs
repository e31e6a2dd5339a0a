//! Against a real API server: `cargo xtask controlplane test` starts it and says where it is.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what it expects by failing loudly"
)]

#[path = "controlplane/random.rs"]
mod random;
#[path = "controlplane/report.rs"]
mod report;
#[path = "controlplane/same.rs"]
mod same;
#[path = "controlplane/server.rs"]
mod server;
