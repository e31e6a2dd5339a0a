//! The agent on a real kernel. Each test runs as root in its own network namespace inside a QEMU
//! guest, started by `cargo xtask vm test`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests say what they expect by failing loudly"
)]

#[path = "kernel/agent.rs"]
mod agent;
#[path = "kernel/lab.rs"]
mod lab;
#[path = "kernel/yaml.rs"]
mod yaml;

#[path = "kernel/arp.rs"]
mod arp;
#[path = "kernel/coexist.rs"]
mod coexist;
#[path = "kernel/conntrack.rs"]
mod conntrack;
#[path = "kernel/disconnected.rs"]
mod disconnected;
#[path = "kernel/drain.rs"]
mod drain;
#[path = "kernel/external.rs"]
mod external;
#[path = "kernel/external_changes.rs"]
mod external_changes;
#[path = "kernel/external_ips.rs"]
mod external_ips;
#[path = "kernel/forwarding.rs"]
mod forwarding;
#[path = "kernel/health_ports.rs"]
mod health_ports;
#[path = "kernel/loopback_ports.rs"]
mod loopback_ports;
#[path = "kernel/masquerade.rs"]
mod masquerade;
#[path = "kernel/mode_proxy.rs"]
mod mode_proxy;
#[path = "kernel/nftables.rs"]
mod nftables;
#[path = "kernel/one_kernel.rs"]
mod one_kernel;
#[path = "kernel/packets.rs"]
mod packets;
#[path = "kernel/reused_ports.rs"]
mod reused_ports;
#[path = "kernel/sctp.rs"]
mod sctp;
#[path = "kernel/services.rs"]
mod services;
#[path = "kernel/settings.rs"]
mod settings;
#[path = "kernel/shares.rs"]
mod shares;
#[path = "kernel/traffic.rs"]
mod traffic;
#[path = "kernel/wrr.rs"]
mod wrr;
