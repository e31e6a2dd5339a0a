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
use super::source::Sources;
use super::targets::{PortTarget, PortTargets, Targets};
use super::{Resolution, Viewpoint};
use crate::model::{
    EndpointSlice, Family, Frontend, ObjectName, Protocol, Service, ServicePort, SlicePort,
};
use crate::snapshot::Snapshot;

/// The port number in the key of the server that stands for the name of the Service, and in its endpoints.
const NO_PORT: u16 = 0;

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// A headless Service as seen from one node. A caller that needs few of its ports resolves each alone: slices may have
/// 20,000.
#[derive(Debug)]
pub struct HeadlessService<'a> {
    snapshot: &'a Snapshot,
    me: &'a Viewpoint,
    service: &'a Service,
    /// With all endpoints ready, if the Service publishes endpoints that are not ready.
    slices: Cow<'a, [EndpointSlice]>,
}

/// Resolves the name and all ports of the Service `name` as seen from `me`; an empty result if it does not exist.
///
/// The servers are at the unspecified address of each family that has slices. Those with port 0 are for the name of the
/// Service, the others for its ports. No kernel gets them: the scheduler is always `wrr`, and session affinity has no
/// effect.
pub fn resolve_headless(snapshot: &Snapshot, me: &Viewpoint, name: &ObjectName) -> Resolution {
    let mut resolution = Resolution::default();
    let Some(service) = HeadlessService::find(snapshot, me, name) else {
        return resolution;
    };
    let ports = service.ports();
    let by_port = Targets::of(ports.len(), &service.slices);
    let of_name = service.port_of_name();
    let names = ports.iter().chain([&*of_name]).map(|port| &*port.name);
    let mut sources = service.sources(&names.collect::<Vec<_>>());
    for family in FAMILIES {
        let targets = without_ports(&service.slices, family);
        let name = (&*of_name, NO_PORT);
        service.add(name, targets, family, &mut sources, &mut resolution);
        for port in &*ports {
            let targets = by_port.of_port(port, family);
            let port = (port, port.port.get());
            service.add(port, targets, family, &mut sources, &mut resolution);
        }
    }
    resolution
}

impl<'a> HeadlessService<'a> {
    /// The Service `name` as seen from `me`, if it exists.
    pub fn find(snapshot: &'a Snapshot, me: &'a Viewpoint, name: &ObjectName) -> Option<Self> {
        let service = snapshot.service(name)?;
        Some(Self {
            snapshot,
            me,
            service,
            slices: published(service, snapshot.slices(name)),
        })
    }

    /// The ports of the Service, and those that only slices have, each with a number of its own.
    pub fn ports(&self) -> Cow<'a, [ServicePort]> {
        ports_of(self.service, &self.slices)
    }

    /// Resolves the name alone, as [`resolve_headless`] does with all ports.
    pub fn resolve_name(&self) -> Resolution {
        let mut resolution = Resolution::default();
        let port = self.port_of_name();
        let mut sources = self.sources(&[&port.name]);
        for family in FAMILIES {
            let targets = without_ports(&self.slices, family);
            let name = (&*port, NO_PORT);
            self.add(name, targets, family, &mut sources, &mut resolution);
        }
        resolution
    }

    /// Resolves one of [`ports`](Self::ports) alone, as [`resolve_headless`] does with all others.
    pub fn resolve_port(&self, port: &ServicePort) -> Resolution {
        let mut resolution = Resolution::default();
        let by_port = Targets::of(1, &self.slices);
        let mut sources = self.sources(&[&port.name]);
        for family in FAMILIES {
            let targets = by_port.of_port(port, family);
            let port = (port, port.port.get());
            self.add(port, targets, family, &mut sources, &mut resolution);
        }
        resolution
    }

    /// The port as which the name is decided.
    fn port_of_name(&self) -> Cow<'_, ServicePort> {
        let unnamed = || Cow::Owned(ServicePort::new("", Protocol::Tcp, NonZeroU16::MIN));
        let first = self.service.ports.first();
        first.map_or_else(unnamed, Cow::Borrowed)
    }

    /// What may decide the ports with these names.
    fn sources(&self, ports: &[&str]) -> Sources<'_> {
        let own_node = self.snapshot.node(&self.me.node);
        Sources::of(self.snapshot, self.service, own_node, ports)
    }

    /// Adds the server for these endpoints, if there are any.
    fn add<'v>(
        &'v self,
        (port, number): (&'v ServicePort, u16),
        targets: PortTargets<'v>,
        family: Family,
        sources: &mut Sources<'v>,
        resolution: &mut Resolution,
    ) {
        if targets.is_empty() {
            return;
        }
        let view = PortView {
            snapshot: self.snapshot,
            me: self.me,
            service: self.service,
            targets,
            port,
            frontend: Frontend::cluster_ip(Frontend::node_port(family).address),
            number,
            outside: None,
            own_node: self.snapshot.node(&self.me.node),
        };
        view.resolve(sources, resolution);
    }
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

/// The slices, with all endpoints ready if the Service publishes endpoints that are not ready.
fn published<'s>(service: &Service, slices: &'s [EndpointSlice]) -> Cow<'s, [EndpointSlice]> {
    if !service.publish_not_ready_addresses {
        return Cow::Borrowed(slices);
    }
    let mut slices = slices.to_vec();
    for endpoint in slices.iter_mut().flat_map(|slice| &mut slice.endpoints) {
        endpoint.ready = true;
    }
    Cow::Owned(slices)
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
