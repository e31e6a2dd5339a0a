//! Waits until an address of this node is added or removed.

use std::future::{pending, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::task::Poll;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_pipeline::{AsyncSubscription, Error, Message, Messages, NetlinkProtocol, Options};

use super::wire;
use crate::routes::rtnl;

/// `RTNLGRP_IPV4_IFADDR` and `RTNLGRP_IPV6_IFADDR` of `linux/rtnetlink.h`.
const GROUPS: [u32; 2] = [5, 9];

/// Receive buffer for notifications. On overflow all addresses are read again, as after any notification.
const BUFFER: usize = 64 << 10;

/// Notifications about added and removed addresses.
#[derive(Debug)]
pub struct AddressMonitor {
    /// `None` after a failure; the periodic comparison still reads the addresses.
    subscription: Option<AsyncSubscription>,
}

impl AddressMonitor {
    /// Subscribes in the current network namespace.
    pub fn open() -> Result<Self, Error> {
        let mut options = Options::default();
        options.receive_buffer = BUFFER;
        let subscription = AsyncSubscription::open(NetlinkProtocol::ROUTE, &GROUPS, &options)?;
        Ok(Self {
            subscription: Some(subscription),
        })
    }

    /// Waits until an address was added or removed, and drops all other notifications. Dropping the future loses none.
    pub async fn next(&mut self) {
        self.one().await;
        while is_done(self.one()).await {}
    }

    async fn one(&mut self) {
        while let Some(subscription) = &mut self.subscription {
            match subscription.receive().await {
                Ok(messages) if !concerns_us(messages.clone()) => {}
                Ok(_) | Err(Error::Overrun | Error::Truncated { .. }) => return,
                Err(error) => {
                    tracing::warn!(%error, "new addresses of this machine are noticed at the periodic check only");
                    self.subscription = None;
                }
            }
        }
        pending::<()>().await;
    }
}

/// Whether the future completes without waiting.
async fn is_done(future: impl Future<Output = ()>) -> bool {
    let mut future = pin!(future);
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

/// Ignores link-local IPv6 addresses: the link of every pod brings one, and it has no use outside of that link.
fn concerns_us(messages: Messages<'_>) -> bool {
    let address = |message: Message<'_>| match rtnl::parse(message)? {
        RouteNetlinkMessage::NewAddress(address) | RouteNetlinkMessage::DelAddress(address) => {
            wire::address(&address)
        }
        _ => None,
    };
    let mut addresses = messages.filter_map(|message| address(message.ok()?));
    addresses.any(|(_, address, ..)| match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    })
}
