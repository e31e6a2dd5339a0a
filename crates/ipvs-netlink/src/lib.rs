//! The Linux kernel's IP virtual server (IPVS) over generic netlink: the whole family, many commands at a time.
//!
//! ```text
//!   Service, Destination, Command      values: no kernel names, equal if the kernel state is equal
//!           │
//!         codec                        one table of attributes for writing and reading
//!           │
//!   netlink_pipeline                   a crate of its own: sans-I/O pipeline and dumps, for any netlink protocol
//!        ╱     ╲
//!   Client   AsyncClient               blocking, tokio (feature `tokio`)
//! ```
//!
//! | to | use | as in `ipvsadm` |
//! |---|---|---|
//! | change services, destinations, timeouts, counters, daemons | [`Client::execute`] with [`Command`]s | `-A -E -D -a -e -d -C -Z --set --start-daemon` |
//! | read them | [`Client::dump`], [`Client::services`], [`Client::destinations`] | `-L`, `-S` |
//! | read timeouts, daemons, version | [`Client::timeouts`], [`Client::daemons`], [`Client::info`] | `-L --timeout`, `-L --daemon` |
//! | read connections | [`connections::read`] | `-L -c` |
//!
//! It does no load balancing of its own, does not watch or repair the table, does not know Kubernetes, and needs a
//! kernel with generic netlink for IPVS (2.6.28 or newer).

/// The examples of the README, compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod codec;
pub mod connections;

mod client;
mod command;
mod daemon;
mod destination;
mod error;
mod service;
mod settings;
mod stats;
mod wire;

#[cfg(feature = "tokio")]
pub use client::AsyncClient;
pub use client::Client;
pub use command::Command;
pub use daemon::{Daemon, DaemonState};
pub use destination::{Destination, DestinationEntry, Forward, Tunnel, TunnelFlags, TunnelKind};
pub use error::{Error, ErrorKind};
pub use netlink_pipeline;
pub use netlink_pipeline::{UnknownAttribute, UnknownAttributes};
pub use service::{Family, Netmask, Protocol, Service, ServiceEntry, ServiceFlags, ServiceId};
pub use settings::{Info, Timeouts};
pub use stats::{Rates, Stats};
