//! Resolves a Service whose clients get the addresses of endpoints from DNS.
//!
//! A DNS answer for the name of the Service has addresses without ports. It is decided as the first port of the Service
//! is, for the endpoints of all slices, whatever their ports are. An answer with ports is decided for each port, as a
//! virtual server is.

use std::num::NonZeroU16;

use super::port_view::PortView;
use super::targets::{PortTarget, PortTargets, Targets};
use super::{Resolution, Viewpoint};
use crate::model::{EndpointSlice, Family, Frontend, ObjectName, Protocol, Service, ServicePort};
use crate::snapshot::Snapshot;

/// The port number in the key of the server that stands for the name of the Service, and in its endpoints.
const NO_PORT: u16 = 0;

/// Resolves the endpoints of the Service `name` as seen from `me`; an empty result if it does not exist.
///
/// The servers are at the unspecified address of each family that has slices. Those with port 0 are for the name of the
/// Service, the others for its ports. No kernel gets them: the scheduler is always `wrr`, and session affinity has no
/// effect.
pub fn resolve_headless(snapshot: &Snapshot, me: &Viewpoint, name: &ObjectName) -> Resolution {
    let mut resolution = Resolution::default();
    let Some(service) = snapshot.service(name) else {
        return resolution;
    };
    let published = published(service, snapshot.slices(name));
    let slices = published.as_deref().unwrap_or(snapshot.slices(name));
    let unnamed = ServicePort::new("", Protocol::Tcp, NonZeroU16::MIN);
    let first = service.ports.first().unwrap_or(&unnamed);
    let by_port = Targets::of(service, slices);
    for family in [Family::V4, Family::V6] {
        let of_name = (first, NO_PORT, without_ports(slices, family));
        let of_ports = service.ports.iter().map(|port| {
            let targets = by_port.of_port(port, family);
            (port, port.port.get(), targets)
        });
        let views = std::iter::once(of_name).chain(of_ports);
        for (port, number, targets) in views.filter(|(_, _, targets)| !targets.is_empty()) {
            let view = PortView {
                snapshot,
                me,
                service,
                targets,
                port,
                frontend: Frontend::cluster_ip(Frontend::node_port(family).address),
                number,
                outside: None,
                own_node: snapshot.node(&me.node),
            };
            view.resolve(&mut resolution);
        }
    }
    resolution
}

/// The slices with all endpoints ready, if the Service publishes endpoints that are not ready.
fn published(service: &Service, slices: &[EndpointSlice]) -> Option<Vec<EndpointSlice>> {
    let mut slices = service
        .publish_not_ready_addresses
        .then(|| slices.to_vec())?;
    for endpoint in slices.iter_mut().flat_map(|slice| &mut slice.endpoints) {
        endpoint.ready = true;
    }
    Some(slices)
}

fn without_ports(slices: &[EndpointSlice], family: Family) -> PortTargets<'_> {
    let of_family = slices.iter().filter(|slice| slice.family == family);
    of_family
        .map(|slice| PortTarget {
            slice,
            port: NO_PORT,
        })
        .collect()
}
