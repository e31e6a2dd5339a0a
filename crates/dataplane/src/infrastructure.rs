//! Follows what this node depends on in its network: the gateways of its routes, and its resolvers.
//!
//! A task of its own reads them, so a large routing table delays nothing. A new gateway is known as soon as the kernel
//! reports its route. The kernel does not report each removal (routes of a link that goes down), so all routes are read
//! again some time after a removal and every `period`.

mod gateways;
mod resolvers;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use self::gateways::{GatewayChange, Gateways};
use crate::routes::RouteError;

/// Pause between the removal of a route and the next read: of many removals, one read follows.
const SETTLE: Duration = Duration::from_secs(10);

/// The addresses that this node depends on in its network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeNetwork {
    /// The next hops of the routes in all tables except `local`.
    pub gateways: BTreeSet<IpAddr>,
    /// The name servers in `/etc/resolv.conf`.
    pub resolvers: BTreeSet<IpAddr>,
}

/// Follows these addresses.
#[derive(Debug)]
pub struct NetworkMonitor {
    gateways: Gateways,
    network: watch::Sender<NodeNetwork>,
}

impl NetworkMonitor {
    /// Reads the addresses in the current network namespace.
    pub async fn open() -> Result<Self, RouteError> {
        let mut gateways = Gateways::open()?;
        let network = NodeNetwork {
            gateways: gateways.read().await?,
            resolvers: resolvers::read(),
        };
        Ok(Self {
            gateways,
            network: watch::Sender::new(network),
        })
    }

    /// Receives the present addresses, and each change.
    pub fn changes(&self) -> watch::Receiver<NodeNetwork> {
        self.network.subscribe()
    }

    /// Follows the addresses until nothing receives them.
    pub async fn run(mut self, period: Duration) {
        let mut next_read = Instant::now() + period;
        while !self.network.is_closed() {
            tokio::select! {
                change = self.gateways.next() => match change {
                    GatewayChange::Added(added) => self.add(added),
                    GatewayChange::Uncertain => next_read = next_read.min(Instant::now() + SETTLE),
                },
                () = sleep_until(next_read) => {
                    self.read().await;
                    next_read = Instant::now() + period;
                }
            }
        }
    }

    fn add(&self, added: Vec<IpAddr>) {
        self.network.send_if_modified(|network| {
            let before = network.gateways.len();
            network.gateways.extend(added);
            network.gateways.len() > before
        });
    }

    /// Reads everything again. If the kernel refuses, the gateways stay.
    async fn read(&mut self) {
        let gateways = self.gateways.read().await;
        let resolvers = resolvers::read();
        self.network.send_if_modified(|network| {
            let read = NodeNetwork {
                gateways: gateways.unwrap_or_else(|error| {
                    tracing::debug!("gateways of this node: {error}");
                    network.gateways.clone()
                }),
                resolvers,
            };
            let is_changed = *network != read;
            *network = read;
            is_changed
        });
    }
}
