//! Inputs for the benches of decisions.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU16;
use std::sync::Arc;

use benches::{Shape, write_cluster};
use cluster::source::{Options, read_text};
use guest_wire::ServiceType;
use topology_core::model::{
    CAPACITY_LABEL, Drain, DrainScope, EndpointSlice, HardServices, Node, ObjectName, OnLastDomain,
    Protocol, Service, ServicePort, SlicePort,
};
use topology_core::policy::{LevelKey, Policy};
use topology_core::quantise::Class;
use topology_core::ratio::Ratio;
use topology_core::resolve::{Viewpoint, resolve};
use topology_core::snapshot::Snapshot;

/// The policy of the measured Services: three levels, so that every stage has work.
const WEIGHTS: &str = "node=80,zone=15,*=5";

/// A cluster, and the view of its first node.
pub(crate) struct Seen {
    pub(crate) snapshot: Snapshot,
    names: Vec<ObjectName>,
    me: Viewpoint,
}

impl Seen {
    /// Creates a number of Services with a number of endpoints each.
    pub(crate) fn new(services: u32, endpoints: u32) -> Self {
        Self::of(&Shape {
            services,
            endpoints,
            weights: Some(WEIGHTS.to_owned()),
            ..Shape::default()
        })
    }

    /// Creates a number of Services of 10 endpoints with node ports, seen from a node with a number of addresses.
    pub(crate) fn node_ports(services: u32, addresses: u8) -> Self {
        let mut seen = Self::of(&Shape {
            services,
            service_type: ServiceType::NodePort,
            weights: Some(WEIGHTS.to_owned()),
            ..Shape::default()
        });
        let address = |number| IpAddr::from(Ipv4Addr::new(172, 16, 0, number));
        seen.me.node_port_addresses = Arc::new((1..=addresses).map(address).collect());
        seen
    }

    fn of(shape: &Shape) -> Self {
        let mut text = Vec::new();
        let written = write_cluster(shape, &mut text);
        let loaded = written.map(|()| read_text("generated", &text, &Options::default()));
        let snapshot = match loaded {
            Ok(Ok(loaded)) => loaded.snapshot,
            other => unreachable!("a generated cluster is read without trouble: {other:?}"),
        };
        let names = snapshot.services().map(|service| service.name.clone());
        Self {
            names: names.collect(),
            snapshot,
            me: Viewpoint::new(shape.node(0).name),
        }
    }

    /// Resolves every Service.
    pub(crate) fn resolve(&self) {
        for name in &self.names {
            black_box(resolve(&self.snapshot, &self.me, name));
        }
    }

    /// Sets a slightly different policy for every Service.
    fn with_policy(mut self, change: impl Fn(&mut Policy)) -> Self {
        let mut services: Vec<Service> = self.snapshot.services().cloned().collect();
        for policy in services.iter_mut().filter_map(|one| one.policy.as_mut()) {
            change(Arc::make_mut(policy));
        }
        for service in services {
            self.snapshot.set_service(service);
        }
        self
    }

    /// Adds UDP ports to Services and slices. The slices list them backwards.
    pub(crate) fn many_ports(mut self, ports: u16) -> Self {
        let name = |port: NonZeroU16| Arc::from(format!("p{port}"));
        let numbers = || (1..=ports).filter_map(NonZeroU16::new);
        let services: Vec<Service> = self.snapshot.services().cloned().collect();
        for mut service in services {
            for slice in self.snapshot.slices(&service.name).to_vec() {
                let ports = numbers().rev().map(|port| SlicePort {
                    name: name(port),
                    protocol: Protocol::Udp,
                    port,
                });
                self.snapshot.set_slice(EndpointSlice {
                    ports: ports.collect(),
                    ..slice
                });
            }
            let ports = numbers().map(|port| ServicePort::new(name(port), Protocol::Udp, port));
            service.ports = ports.collect();
            self.snapshot.set_service(service);
        }
        self
    }

    /// Sets a limit for the overload of near endpoints.
    pub(crate) fn capped(self) -> Self {
        self.with_policy(|policy| policy.max_overload = Some(20))
    }

    /// Adds a drain of a zone that takes a minute and began `seconds` ago.
    pub(crate) fn draining(mut self, seconds: i64) -> Self {
        self.snapshot.set_drain(Drain {
            name: "shift".into(),
            generation: 1,
            key: LevelKey::Label("topology.kubernetes.io/zone".into()),
            values: vec!["zone-1".into()],
            scope: DrainScope::Both,
            starts: 0,
            expires: i64::MAX,
            ramp_seconds: 60,
            on_last_domain: OnLastDomain::Ignore,
            hard_services: HardServices::Ignore,
            reason: "bench".into(),
        });
        self.me.now = Some(seconds * 1_000);
        self
    }

    /// Sets a hundred different capacities on the Nodes.
    pub(crate) fn uneven(mut self) -> Self {
        let nodes: Vec<Node> = self.snapshot.nodes().cloned().collect();
        for node in nodes {
            let number = node.name.trim_start_matches("node-").to_owned();
            let number: u32 = number.parse().unwrap_or(1);
            let capacity = (Arc::from(CAPACITY_LABEL), Arc::from(number.to_string()));
            let labels = node.labels.iter();
            let labels = labels.map(|(key, value)| (key.clone(), value.clone()));
            self.snapshot.set_node(Node {
                labels: labels.chain([capacity]).collect(),
                ..node.clone()
            });
        }
        self
    }
}

pub(crate) fn typical() -> Vec<Class> {
    classes(&[(80, 1), (15, 3), (5, 6)])
}

pub(crate) fn large() -> Vec<Class> {
    classes(&[(80, 11), (15, 327), (5, 662)])
}

/// The slowest of 100,000 inputs of a local search: many weights grow with every step, and no step is sufficient.
pub(crate) fn crowded() -> Vec<Class> {
    let weights = [
        3_923, 2_885, 8_862, 5_514, 6_963, 1_746, 5_122, 8_584, 2_139, 6_202, 7_467, 8_416, 5_782,
        3_129, 2_539, 1_914,
    ];
    let sizes = [8, 3, 8, 317, 3, 453, 2, 585, 1, 5, 1_748, 1_624, 4, 1, 1, 5];
    let tiers: Vec<_> = weights.into_iter().zip(sizes).collect();
    classes(&tiers)
}

/// A similar input for which no weights exist.
pub(crate) fn hopeless() -> Vec<Class> {
    let weights = [
        2_453, 13, 9_106, 6_050, 2, 7_348, 4_502, 5_758, 8_912, 1_812, 7_138, 9_020, 7_207, 8_027,
        4_141, 9_894,
    ];
    let sizes = [8, 475, 1, 6, 2_477, 354, 3, 62, 832, 4, 2, 185, 4, 2, 2, 3];
    let tiers: Vec<_> = weights.into_iter().zip(sizes).collect();
    classes(&tiers)
}

/// Levels of coprime sizes whose shares fall from half of all traffic to a hundredth, so that the search runs to its
/// end and finds nothing.
pub(crate) fn worst() -> Vec<Class> {
    let sizes = [
        1, 2, 3, 5, 7, 11, 13, 17, 199, 211, 307, 401, 503, 701, 809, 1_810,
    ];
    let percents = [50, 17, 9, 5, 4, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1];
    let tiers: Vec<_> = percents.into_iter().zip(sizes).collect();
    classes(&tiers)
}

/// One class for each level of (weight, number of endpoints).
fn classes(tiers: &[(u64, u32)]) -> Vec<Class> {
    let all: u64 = tiers.iter().map(|(weight, _)| weight).sum();
    let class = |(level, (weight, count)): (usize, &(u64, u32))| Class {
        level,
        share: Ratio::new(*weight, all * u64::from(*count)),
        count: *count,
    };
    tiers.iter().enumerate().map(class).collect()
}
