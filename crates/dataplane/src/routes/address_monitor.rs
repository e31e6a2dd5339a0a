//! Waits until an address of this node is added or removed.

use std::collections::BTreeSet;
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

/// Addresses that were removed from a link. They may have been added again since then, but the kernel has changed the
/// routes whose source they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovedAddresses {
    These(BTreeSet<IpAddr>),
    /// Notifications were lost.
    Unknown,
}

impl RemovedAddresses {
    /// Whether the address may be one of them.
    pub fn may_include(&self, address: &IpAddr) -> bool {
        match self {
            Self::These(addresses) => addresses.contains(address),
            Self::Unknown => true,
        }
    }

    fn add(&mut self, more: Self) {
        match (&mut *self, more) {
            (Self::These(addresses), Self::These(more)) => addresses.extend(more),
            (_, Self::Unknown) => *self = Self::Unknown,
            (Self::Unknown, Self::These(_)) => {}
        }
    }
}

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

    /// Waits until an address was added or removed, and takes all other notifications that have arrived. Dropping the
    /// future loses none.
    pub async fn next(&mut self) -> RemovedAddresses {
        let mut removed = self.one().await;
        while let Some(more) = now(self.one()).await {
            removed.add(more);
        }
        removed
    }

    async fn one(&mut self) -> RemovedAddresses {
        while let Some(subscription) = &mut self.subscription {
            match subscription.receive().await {
                Ok(messages) => {
                    if let Some(removed) = removed(messages) {
                        return RemovedAddresses::These(removed);
                    }
                }
                Err(Error::Overrun | Error::Truncated { .. }) => return RemovedAddresses::Unknown,
                Err(error) => {
                    tracing::warn!(%error, "new addresses of this machine are noticed at the periodic check only");
                    self.subscription = None;
                }
            }
        }
        pending().await
    }
}

/// The result of the future, if it completes without waiting.
async fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        })
    })
    .await
}

/// The removed addresses; `None` if no address was added or removed. Ignores link-local IPv6 addresses: the link of
/// every pod brings one, and it has no use outside of that link.
fn removed(messages: Messages<'_>) -> Option<BTreeSet<IpAddr>> {
    let mut removed = None;
    for message in messages {
        let Some((address, is_removed)) = message.ok().and_then(change) else {
            continue;
        };
        let removed = removed.get_or_insert_with(BTreeSet::new);
        removed.extend(Some(address).filter(|_| is_removed));
    }
    removed
}

/// The address of a notification, and whether it was removed.
fn change(message: Message<'_>) -> Option<(IpAddr, bool)> {
    let (message, is_removed) = match rtnl::parse(message)? {
        RouteNetlinkMessage::NewAddress(message) => (message, false),
        RouteNetlinkMessage::DelAddress(message) => (message, true),
        _ => return None,
    };
    let (_, address, ..) = wire::address(&message)?;
    let is_used = match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    };
    is_used.then_some((address, is_removed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `RTM_NEWADDR` and `RTM_DELADDR` of `linux/rtnetlink.h`.
    const NEW: u16 = 20;
    const REMOVED: u16 = 21;

    /// A notification about an address, as the kernel sends it.
    fn notification(kind: u16, address: &str) -> Vec<u8> {
        let (family, octets) = match address.parse().unwrap() {
            IpAddr::V4(address) => (2, address.octets().to_vec()),
            IpAddr::V6(address) => (10, address.octets().to_vec()),
        };
        let attribute = u16::try_from(4 + octets.len()).unwrap();
        let mut bytes = (16 + 8 + u32::from(attribute)).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        // The family, prefix length, flags, scope and link of `ifaddrmsg`; then `IFA_ADDRESS`.
        bytes.extend([family, 24, 0, 0, 2, 0, 0, 0]);
        bytes.extend(attribute.to_ne_bytes());
        bytes.extend(1_u16.to_ne_bytes());
        bytes.extend(octets);
        bytes
    }

    #[test]
    fn an_address_that_is_removed_and_added_again_counts_as_removed() {
        let removed_of = |notifications: &[(u16, &str)]| {
            let bytes = notifications.iter();
            let bytes: Vec<u8> = bytes
                .flat_map(|(kind, ip)| notification(*kind, ip))
                .collect();
            removed(Messages::new(&bytes))
        };
        let (v4, v6) = ("192.0.2.1", "2001:db8::1");
        assert_eq!(removed_of(&[(REMOVED, "fe80::1"), (NEW, "fe80::1")]), None);
        assert_eq!(removed_of(&[(NEW, v4)]), Some(BTreeSet::new()));
        assert_eq!(
            removed_of(&[(REMOVED, v4), (NEW, v4), (REMOVED, v6)]),
            Some([v4, v6].map(|ip| ip.parse().unwrap()).into())
        );
    }

    #[test]
    fn after_lost_notifications_every_address_may_have_been_removed() {
        let (one, other): (IpAddr, IpAddr) =
            ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let mut removed = RemovedAddresses::These([one].into());
        assert!(removed.may_include(&one) && !removed.may_include(&other));
        removed.add(RemovedAddresses::Unknown);
        removed.add(RemovedAddresses::These([one].into()));
        assert!(removed.may_include(&other));
    }
}
