//! Creates the dummy link `kube-ipvs0`, without addresses.
//!
//! Packet forwarding does not need it. Network plugins (Calico, Cilium and others) look for the name to detect IPVS, so
//! the link exists, down and without addresses.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage};

/// kube-proxy's name for the link (KP-IF-01).
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
