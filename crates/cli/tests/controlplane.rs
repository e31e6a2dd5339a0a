//! Tests against a real API server, which `cargo xtask controlplane test` starts.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what it expects by failing loudly"
)]

#[path = "controlplane/access.rs"]
mod access;
#[path = "../../controller/tests/controlplane/audit.rs"]
mod audit;
#[path = "dns/client.rs"]
#[expect(dead_code, reason = "the tests of `dns` use the rest")]
mod client;
#[path = "controlplane/coredns.rs"]
mod coredns;
#[path = "../../cluster/tests/controlplane/follower.rs"]
#[expect(dead_code, reason = "the tests of `cluster` use the rest")]
mod follower;
#[path = "../../cluster/tests/controlplane/gate.rs"]
#[expect(dead_code, reason = "the tests of `cluster` use the rest")]
mod gate;
#[path = "controlplane/kube_proxy.rs"]
mod kube_proxy;
#[path = "../../cluster/tests/controlplane/kubectl.rs"]
#[expect(dead_code, reason = "the tests of `cluster` use the rest")]
mod kubectl;
#[path = "dns/program.rs"]
#[expect(dead_code, reason = "the tests of `dns` use the rest")]
mod program;
#[path = "controlplane/random.rs"]
mod random;
#[path = "controlplane/report.rs"]
mod report;
#[path = "controlplane/rules.rs"]
mod rules;
#[path = "controlplane/same.rs"]
mod same;
#[path = "controlplane/server.rs"]
mod server;
#[path = "controlplane/slices.rs"]
mod slices;
