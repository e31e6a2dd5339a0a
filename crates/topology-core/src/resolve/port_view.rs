//! A Service port at one address, seen from one node.

use super::targets::PortTargets;
use super::viewpoint::Viewpoint;
use crate::model::{Family, Frontend, Node, Service, ServicePort};
use crate::snapshot::Snapshot;
use crate::virtual_server::VirtualServerKey;

/// A Service port at one address, seen from one node.
pub(crate) struct PortView<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) me: &'a Viewpoint,
    pub(crate) service: &'a Service,
    /// The slices with endpoints of the port.
    pub(super) targets: PortTargets<'a>,
    pub(crate) port: &'a ServicePort,
    pub(crate) frontend: Frontend,
    /// The Node of the viewpoint, if known.
    pub(crate) own_node: Option<&'a Node>,
}

impl PortView<'_> {
    pub(crate) fn family(&self) -> Family {
        Family::of(self.frontend.address)
    }

    pub(crate) fn key(&self) -> VirtualServerKey {
        VirtualServerKey::Address {
            protocol: self.port.protocol,
            address: self.frontend.address,
            port: self.frontend.port_of(self.port),
        }
    }
}
