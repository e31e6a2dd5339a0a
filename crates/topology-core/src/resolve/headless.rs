//! Resolves a Service whose clients get the addresses of endpoints from DNS.
//!
//! A DNS answer for the name of the Service has addresses without ports. It is decided as the first port of the Service
//! is, for the endpoints of all slices, whatever their ports are. An answer with ports is decided for each port, as a
//! virtual server is. The ports are those of the slices: the Service may have none, and slices of other programs may have
//! more.

use std::borrow::Cow;
use std::num::NonZeroU16;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::port_view::PortView;
use super::targets::{PortTarget, PortTargets, Targets};
use super::{Resolution, Viewpoint};
use crate::model::{
    EndpointSlice, Family, Frontend, ObjectName, Protocol, Service, ServicePort, SlicePort,
};
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
    let ports = ports_of(service, slices);
    let by_port = Targets::of(ports.len(), slices);
    for family in [Family::V4, Family::V6] {
        let of_name = (first, NO_PORT, without_ports(slices, family));
        let of_ports = ports.iter().map(|port| {
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

/// The ports of the Service, and those that only slices have.
///
/// Each has a number of its own, for the keys of servers. A port that only slices have gets the number of the pods, or
/// another one if that is taken.
fn ports_of<'s>(service: &'s Service, slices: &[EndpointSlice]) -> Cow<'s, [ServicePort]> {
    let own = service.ports.iter();
    let mut known: FxHashSet<_> = own.map(|port| (port.protocol, &*port.name)).collect();
    let of_slices = slices.iter().flat_map(|slice| &slice.ports);
    let new = of_slices.filter(|port| known.insert((port.protocol, &*port.name)));
    let new: Vec<&SlicePort> = new.collect();
    if new.is_empty() {
        return Cow::Borrowed(&service.ports);
    }
    let mut ports = service.ports.clone();
    let mut taken: FxHashSet<NonZeroU16> = ports.iter().map(|port| port.port).collect();
    let mut others = (1..=u16::MAX).rev().filter_map(NonZeroU16::new);
    for port in new {
        let mut candidates = std::iter::once(port.port).chain(&mut others);
        let Some(number) = candidates.find(|number| taken.insert(*number)) else {
            break;
        };
        ports.push(ServicePort::new(
            Arc::clone(&port.name),
            port.protocol,
            number,
        ));
    }
    Cow::Owned(ports)
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
