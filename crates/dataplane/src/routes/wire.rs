//! Converts our route types to and from `NETLINK_ROUTE` messages.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressScope};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use topology_core::model::{Family, range_around};

use super::desired::{LocalRoute, PROTOCOL};

/// `RT_TABLE_LOCAL` of `linux/rtnetlink.h`.
const TABLE_LOCAL: u8 = 255;

/// Documentation addresses (RFC 5737, RFC 3849): no machine has them, but the default route leads there.
const FAR_AWAY: (Ipv4Addr, Ipv6Addr) = (
    Ipv4Addr::new(192, 0, 2, 1),
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
);

/// A `local` route of the table `local`, as the kernel lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedRoute {
    pub(super) route: LocalRoute,
    pub(super) protocol: u8,
}

/// Which routes to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    All,
}

/// The kernel's name for a family.
pub(crate) fn family(family: Family) -> AddressFamily {
    match family {
        Family::V4 => AddressFamily::Inet,
        Family::V6 => AddressFamily::Inet6,
    }
}

/// The message that adds or deletes `route`.
pub(super) fn route_message(route: &LocalRoute, lo: u32) -> RouteMessage {
    let mut message = RouteMessage::default();
    let scope = match Family::of_range(&route.to) {
        Family::V4 => RouteScope::Host,
        Family::V6 => RouteScope::Universe,
    };
    message.header = RouteHeader {
        address_family: family(Family::of_range(&route.to)),
        destination_prefix_length: route.to.prefix(),
        table: TABLE_LOCAL,
        protocol: RouteProtocol::from(PROTOCOL),
        scope,
        kind: RouteType::Local,
        ..RouteHeader::default()
    };
    message
        .attributes
        .push(RouteAttribute::Destination(route.to.ip().into()));
    message.attributes.push(RouteAttribute::Oif(lo));
    if let Some(source) = route.source {
        message
            .attributes
            .push(RouteAttribute::PrefSource(source.into()));
    }
    message
}

/// The request that lists the `local` routes of the table `local` of one family, ours or all.
pub(super) fn list_routes(of: Family, whose: Whose) -> RouteNetlinkMessage {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: family(of),
        table: TABLE_LOCAL,
        kind: RouteType::Local,
        protocol: match whose {
            Whose::Ours => RouteProtocol::from(PROTOCOL),
            Whose::All => RouteProtocol::Unspec,
        },
        ..RouteHeader::default()
    };
    RouteNetlinkMessage::GetRoute(message)
}

/// The request that lists the addresses of the node.
pub(super) fn list_addresses() -> RouteNetlinkMessage {
    RouteNetlinkMessage::GetAddress(AddressMessage::default())
}

/// The request for the route to a documentation address.
pub(super) fn far_away(of: Family) -> RouteNetlinkMessage {
    let mut message = RouteMessage::default();
    let to = match of {
        Family::V4 => IpAddr::V4(FAR_AWAY.0),
        Family::V6 => IpAddr::V6(FAR_AWAY.1),
    };
    message.header.address_family = family(of);
    message.header.destination_prefix_length = of.bits();
    message
        .attributes
        .push(RouteAttribute::Destination(to.into()));
    RouteNetlinkMessage::GetRoute(message)
}

/// The source address of a route.
pub(super) fn source(message: &RouteMessage) -> Option<IpAddr> {
    message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            RouteAttribute::PrefSource(address) => ip(address),
            _ => None,
        })
}

/// Decodes a listed route; `None` for other types and tables.
pub(super) fn listed(message: &RouteMessage) -> Option<ListedRoute> {
    let RouteMessage {
        header, attributes, ..
    } = message;
    if header.kind != RouteType::Local || header.table != TABLE_LOCAL {
        return None;
    }
    let to = attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(address) => ip(address),
        _ => None,
    });
    let to = range_around(to?, header.destination_prefix_length)?;
    let route = LocalRoute {
        to,
        source: source(message),
    };
    Some(ListedRoute {
        route,
        protocol: u8::from(header.protocol),
    })
}

/// Decodes an address: link index, address, prefix length, whether its scope is global.
pub(super) fn address(message: &AddressMessage) -> Option<(u32, IpAddr, u8, bool)> {
    // IFA_LOCAL is the address itself; on point-to-point links IFA_ADDRESS is the peer.
    let (mut local, mut address) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(ip) => local = Some(*ip),
            AddressAttribute::Address(ip) => address = Some(*ip),
            _ => {}
        }
    }
    let global = message.header.scope == AddressScope::Universe;
    Some((
        message.header.index,
        local.or(address)?,
        message.header.prefix_len,
        global,
    ))
}

/// Decodes a message.
#[cfg(fuzzing)]
pub(super) fn fuzz(kind: u16, payload: &[u8]) -> Option<String> {
    match crate::routes::rtnl::parse_payload(kind, payload)? {
        RouteNetlinkMessage::NewRoute(route) => {
            let listed = listed(&route).map(|listed| (listed.route, listed.protocol));
            Some(format!("{listed:?} {:?}", source(&route)))
        }
        RouteNetlinkMessage::NewAddress(message) => Some(format!("{:?}", address(&message))),
        _ => None,
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(ip) => Some(IpAddr::V4(*ip)),
        RouteAddress::Inet6(ip) => Some(IpAddr::V6(*ip)),
        _ => None,
    }
}
