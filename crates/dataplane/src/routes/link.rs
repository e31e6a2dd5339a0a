//! The dummy link `kube-ipvs0`, without addresses.
//!
//! Nothing needs it to forward packets; network plugins look for it to see that Services are
//! served by IPVS (Calico, Cilium and others probe the name), so it is there, down and empty.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage};

/// kube-proxy's name for it (KP-IF-01).
pub(crate) const NAME: &str = "kube-ipvs0";

/// The request that creates the link.
pub(crate) fn create() -> RouteNetlinkMessage {
    let mut message = LinkMessage::default();
    message
        .attributes
        .push(LinkAttribute::IfName(NAME.to_owned()));
    message
        .attributes
        .push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(
            InfoKind::Dummy,
        )]));
    RouteNetlinkMessage::NewLink(message)
}
