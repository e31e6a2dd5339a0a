//! Reads and follows the next hops of this node's routes.

use std::collections::BTreeSet;
use std::future::pending;
use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteType, RouteVia,
};
use netlink_pipeline::{AsyncSubscription, Error, Message, NetlinkProtocol, Options};
use topology_core::model::Family;

use crate::routes::RouteError;
use crate::routes::rtnl::{self, Rtnl};

/// `RTNLGRP_IPV4_ROUTE` and `RTNLGRP_IPV6_ROUTE` of `linux/rtnetlink.h`.
const GROUPS: [u32; 2] = [7, 11];
/// Receive buffer for notifications. On overflow all routes are read again.
const BUFFER: usize = 64 << 10;
/// `RT_TABLE_LOCAL`. The header has the numbers of tables below 256, and one of them for all others.
const TABLE_LOCAL: u8 = 255;
/// The places of `rtm_table` and `rtm_type` in `struct rtmsg`.
const TABLE_OFFSET: usize = 4;
const TYPE_OFFSET: usize = 7;
/// `RTN_UNICAST`, the type of routes to a next hop.
const UNICAST: u8 = 1;

/// A change of the gateways.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GatewayChange {
    /// Routes with these gateways were added.
    Added(Vec<IpAddr>),
    /// A route was removed, or notifications were lost.
    Uncertain,
}

/// The gateways in the kernel.
#[derive(Debug)]
pub(super) struct Gateways {
    rtnl: Rtnl,
    /// `None` after a failure; the routes are still read from time to time.
    subscription: Option<AsyncSubscription>,
}

impl Gateways {
    /// Subscribes in the current network namespace.
    pub(super) fn open() -> Result<Self, RouteError> {
        let mut options = Options::default();
        options.receive_buffer = BUFFER;
        let subscription = AsyncSubscription::open(NetlinkProtocol::ROUTE, &GROUPS, &options)?;
        Ok(Self {
            rtnl: Rtnl::open()?,
            subscription: Some(subscription),
        })
    }

    /// Reads all of them.
    pub(super) async fn read(&mut self) -> Result<BTreeSet<IpAddr>, RouteError> {
        let mut found = BTreeSet::new();
        for family in [Family::V4, Family::V6] {
            let read = |message| match message {
                RouteNetlinkMessage::NewRoute(route) => Some(gateways(&route)),
                _ => None,
            };
            let listed = self.rtnl.dump(&list(family), read).await?;
            found.extend(listed.into_iter().flatten());
        }
        Ok(found)
    }

    /// Waits for the next change. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> GatewayChange {
        while let Some(subscription) = &mut self.subscription {
            match subscription.receive().await {
                Ok(messages) => {
                    let mut messages = messages.filter_map(Result::ok);
                    if let Some(change) = change(&mut messages) {
                        return change;
                    }
                }
                Err(Error::Overrun | Error::Truncated { .. }) => return GatewayChange::Uncertain,
                Err(error) => {
                    tracing::warn!(%error, "new gateways of this machine are noticed at the periodic check only");
                    self.subscription = None;
                }
            }
        }
        pending().await
    }
}

/// The change that the notifications report. Every message of a datagram counts: added gateways come first, since a
/// removal is not urgent and all routes are read again every period.
fn change(messages: &mut dyn Iterator<Item = Message<'_>>) -> Option<GatewayChange> {
    let mut added = Vec::new();
    let mut is_uncertain = false;
    for message in messages.filter(|message| may_have_gateway(message.payload)) {
        match rtnl::parse(message) {
            Some(RouteNetlinkMessage::NewRoute(route)) => added.extend(gateways(&route)),
            Some(RouteNetlinkMessage::DelRoute(route)) => {
                is_uncertain |= !gateways(&route).is_empty();
            }
            _ => {}
        }
    }
    if added.is_empty() {
        is_uncertain.then_some(GatewayChange::Uncertain)
    } else {
        Some(GatewayChange::Added(added))
    }
}

/// Whether a route may have a gateway. Most routes of a large node are those of Services, which are local.
fn may_have_gateway(payload: &[u8]) -> bool {
    payload.get(TYPE_OFFSET) == Some(&UNICAST) && payload.get(TABLE_OFFSET) != Some(&TABLE_LOCAL)
}

/// The request for the routes of all tables. The kernel omits those of other types, so it sends none of Services.
fn list(family: Family) -> RouteNetlinkMessage {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: crate::routes::address_family(family),
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    RouteNetlinkMessage::GetRoute(message)
}

/// The next hops of a route, except link-local ones, which no Service can have.
fn gateways(route: &RouteMessage) -> Vec<IpAddr> {
    if route.header.table == TABLE_LOCAL || route.header.kind != RouteType::Unicast {
        return Vec::new();
    }
    let paths = route
        .attributes
        .iter()
        .filter_map(|attribute| match attribute {
            RouteAttribute::MultiPath(paths) => Some(paths),
            _ => None,
        });
    let of_paths = paths.flatten().flat_map(|path| &path.attributes);
    let all = route.attributes.iter().chain(of_paths);
    all.filter_map(gateway).filter(is_global).collect()
}

fn gateway(attribute: &RouteAttribute) -> Option<IpAddr> {
    match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(ip))
        | RouteAttribute::Via(RouteVia::Inet(ip)) => Some(IpAddr::V4(*ip)),
        RouteAttribute::Gateway(RouteAddress::Inet6(ip))
        | RouteAttribute::Via(RouteVia::Inet6(ip)) => Some(IpAddr::V6(*ip)),
        _ => None,
    }
}

fn is_global(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_link_local() && !ip.is_unspecified(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local() && !ip.is_unspecified(),
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::NetlinkSerializable as _;
    use netlink_packet_route::route::RouteNextHop;
    use netlink_pipeline::Messages;

    use super::*;

    /// `RT_TABLE_COMPAT`, which the header has for tables from 256 on.
    const TABLE_COMPAT: u8 = 252;

    /// A route of table 1000.
    fn route(attributes: Vec<RouteAttribute>) -> RouteMessage {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: crate::routes::address_family(Family::V4),
            table: TABLE_COMPAT,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes = attributes;
        message.attributes.push(RouteAttribute::Table(1000));
        message
    }

    /// A route of the table `local`, as that of a Service.
    fn local(kind: RouteType, attributes: Vec<RouteAttribute>) -> RouteMessage {
        let mut local = route(attributes);
        (local.header.table, local.header.kind) = (TABLE_LOCAL, kind);
        local
    }

    /// The change in a datagram with these notifications.
    fn change_of(notifications: &[RouteNetlinkMessage]) -> Option<GatewayChange> {
        let mut datagram = Vec::new();
        for notification in notifications {
            let mut payload = vec![0; notification.buffer_len()];
            notification.serialize(&mut payload);
            let length = u32::try_from(16 + payload.len()).unwrap();
            datagram.extend(length.to_ne_bytes());
            datagram.extend(notification.message_type().to_ne_bytes());
            datagram.extend([0; 10]);
            datagram.extend(payload);
        }
        change(&mut Messages::new(&datagram).filter_map(Result::ok))
    }

    fn via(text: &str) -> RouteAttribute {
        RouteAttribute::Gateway(RouteAddress::from(text.parse::<IpAddr>().unwrap()))
    }

    fn texts(route: &RouteMessage) -> Vec<String> {
        gateways(route).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_path_of_a_route_has_its_gateway() {
        assert_eq!(texts(&route(vec![via("192.0.2.1")])), ["192.0.2.1"]);
        let other_family = RouteVia::Inet6("2001:db8::1".parse().unwrap());
        let other_family = vec![RouteAttribute::Via(other_family)];
        assert_eq!(texts(&route(other_family)), ["2001:db8::1"]);
        let paths = ["192.0.2.1", "192.0.2.2"].map(|text| {
            let mut path = RouteNextHop::default();
            path.attributes = vec![via(text)];
            path
        });
        let paths = vec![RouteAttribute::MultiPath(paths.to_vec())];
        assert_eq!(texts(&route(paths)), ["192.0.2.1", "192.0.2.2"]);
    }

    #[test]
    fn local_routes_and_link_local_gateways_do_not_count() {
        let via_gateway = || vec![via("192.0.2.1")];
        for kind in [RouteType::Local, RouteType::Unicast] {
            assert_eq!(texts(&local(kind, via_gateway())), [""; 0]);
        }
        assert_eq!(texts(&route(vec![via("fe80::1")])), [""; 0]);
        assert_eq!(texts(&route(vec![RouteAttribute::Oif(2)])), [""; 0]);
    }

    #[test]
    fn notifications_of_any_table_with_a_gateway_are_changes_and_those_of_services_are_none() {
        use RouteNetlinkMessage::{DelRoute, NewRoute};
        let service = || local(RouteType::Local, vec![RouteAttribute::Oif(1)]);
        let with_gateway = || route(vec![via("192.0.2.1")]);
        assert_eq!(change_of(&[NewRoute(service()), DelRoute(service())]), None);
        assert_eq!(
            change_of(&[DelRoute(with_gateway()), NewRoute(service())]),
            Some(GatewayChange::Uncertain)
        );
        let added = vec!["192.0.2.1".parse().unwrap()];
        assert_eq!(
            change_of(&[DelRoute(with_gateway()), NewRoute(with_gateway())]),
            Some(GatewayChange::Added(added))
        );
    }
}
