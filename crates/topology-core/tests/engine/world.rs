//! Helpers to build small clusters.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use topology_core::hints::HintMode;
use topology_core::model::{
    Drain, Endpoint, EndpointSlice, Enforcement, Family, Faults, Frontend, Hints, Labels, Node,
    ObjectName, Protocol, Selector, Service, ServicePort, SlicePort, TopologyPolicy, TrafficPolicy,
};
use topology_core::policy::{Level, LevelKey, Mode, Policy, PolicySource};
use topology_core::resolve::{Resolution, ResolvedServer, Viewpoint, resolve};
use topology_core::snapshot::Snapshot;

pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const REGION: &str = "topology.kubernetes.io/region";
pub(crate) const RACK: &str = "example.com/rack";

/// A cluster with one Service, `t/s`, seen from one node.
pub(crate) struct World {
    pub(crate) snapshot: Snapshot,
    pub(crate) service: Service,
    pub(crate) me: Viewpoint,
}

impl World {
    /// Without nodes and endpoints, seen from `me`.
    pub(crate) fn new(me: &str) -> Self {
        Self {
            snapshot: Snapshot::default(),
            service: service("s", "10.96.0.10"),
            me: Viewpoint::new(me),
        }
    }

    pub(crate) fn node(mut self, name: &str, labels: &[(&str, &str)]) -> Self {
        self.snapshot.set_node(node(name, labels));
        self
    }

    pub(crate) fn policy(mut self, policy: Policy) -> Self {
        self.service.policy = Some(policy.into());
        self
    }

    pub(crate) fn endpoints(mut self, endpoints: impl IntoIterator<Item = Ep>) -> Self {
        self.snapshot.set_slice(slice("s-1", "s", endpoints));
        self
    }

    pub(crate) fn resolve(&mut self) -> Resolution {
        self.snapshot.set_service(self.service.clone());
        resolve(&self.snapshot, &self.me, &self.service.name)
    }

    /// The only virtual server.
    pub(crate) fn server(&mut self) -> ResolvedServer {
        let mut servers = self.resolve().servers;
        assert_eq!(servers.len(), 1);
        servers.remove(0)
    }
}

/// A Service in namespace `t` with one TCP port 80 named `http`.
pub(crate) fn service(name: &str, address: &str) -> Service {
    Service {
        name: ObjectName::new("t", name),
        created: None,
        frontends: vec![Frontend::cluster_ip(address.parse().unwrap())],
        ports: vec![service_port("http", Protocol::Tcp, 80)],
        session_affinity: None,
        internal_traffic_policy: TrafficPolicy::Cluster,
        external_traffic_policy: TrafficPolicy::Cluster,
        source_ranges: None,
        health_check_node_port: None,
        policy: None,
        named_policy: None,
        faults: Faults::None,
        labels: Labels::default(),
        topology_keys: None,
        hint_mode: HintMode::Nothing,
        external_name: None,
        publish_not_ready_addresses: false,
        unprogrammed: Vec::new(),
    }
}

pub(crate) fn service_port(name: &str, protocol: Protocol, port: u16) -> ServicePort {
    ServicePort::new(name, protocol, port.try_into().unwrap())
}

pub(crate) fn node(name: &str, labels: &[(&str, &str)]) -> Node {
    Node {
        labels: labels
            .iter()
            .map(|(key, value)| (Arc::from(*key), Arc::from(*value)))
            .collect::<Labels>(),
        ..Node::new(name)
    }
}

/// A slice in namespace `t` whose endpoints listen on 8080 for port `http`.
pub(crate) fn slice(
    name: &str,
    service: &str,
    endpoints: impl IntoIterator<Item = Ep>,
) -> EndpointSlice {
    EndpointSlice {
        name: ObjectName::new("t", name),
        service: service.into(),
        family: Family::V4,
        ports: vec![slice_port("http", Protocol::Tcp, 8080)],
        endpoints: endpoints.into_iter().map(|ep| ep.0).collect(),
        hostnames: BTreeMap::default(),
    }
}

pub(crate) fn slice_port(name: &str, protocol: Protocol, port: u16) -> SlicePort {
    SlicePort {
        name: name.into(),
        protocol,
        port: port.try_into().unwrap(),
    }
}

/// An endpoint: ready unless said otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Ep(pub(crate) Endpoint);

/// The endpoint `10.244.0.N`.
pub(crate) fn ep(number: u8) -> Ep {
    at(IpAddr::from([10, 244, 0, number]))
}

pub(crate) fn at(address: IpAddr) -> Ep {
    Ep(Endpoint {
        address,
        node: None,
        zone: None,
        ready: true,
        serving: true,
        terminating: false,
        hints: None,
    })
}

impl Ep {
    pub(crate) fn on(mut self, node: &str) -> Self {
        self.0.node = Some(node.into());
        self
    }

    pub(crate) fn zone(mut self, zone: &str) -> Self {
        self.0.zone = Some(zone.into());
        self
    }

    pub(crate) fn unready(mut self) -> Self {
        (self.0.ready, self.0.serving) = (false, false);
        self
    }

    /// Terminating, but still serving.
    pub(crate) fn leaving(mut self) -> Self {
        (self.0.ready, self.0.serving, self.0.terminating) = (false, true, true);
        self
    }

    pub(crate) fn for_zones(mut self, zones: &[&str]) -> Self {
        let hints = self.0.hints.get_or_insert_default();
        hints.zones = zones.iter().map(|zone| Arc::from(*zone)).collect();
        self
    }

    pub(crate) fn for_nodes(mut self, nodes: &[&str]) -> Self {
        let hints: &mut Box<Hints> = self.0.hints.get_or_insert_default();
        hints.nodes = nodes.iter().map(|node| Arc::from(*node)).collect();
        self
    }
}

/// Levels in the notation of the vectors; a list that ends in `*` is soft.
pub(crate) fn weighted(levels: &[(&str, u32)]) -> Policy {
    let levels = levels.iter().map(|(key, weight)| {
        let key = match *key {
            "*" => LevelKey::Any,
            "node" | "kubernetes.io/hostname" => LevelKey::Node,
            label => LevelKey::Label(label.into()),
        };
        Level::new(key, *weight)
    });
    Policy::new(PolicySource::Annotation, Mode::Weighted, levels.collect())
}

/// A drain of endpoints without a ramp, at all times.
pub(crate) fn drain(key: &str, values: &[&str]) -> Drain {
    let values = values.iter().map(|value| Arc::from(*value)).collect();
    Drain {
        reason: "maintenance".into(),
        ..Drain::of("shift", LevelKey::parse(key).unwrap(), values)
    }
}

/// A `ClusterTopologyPolicy` for everything.
pub(crate) fn cluster_policy(name: &str, policy: Policy) -> TopologyPolicy {
    TopologyPolicy {
        namespace: None,
        name: name.into(),
        created: None,
        generation: 1,
        priority: 0,
        enforcement: Enforcement::Default,
        namespace_selector: Selector::default(),
        service_selector: Selector::default(),
        node_selector: Selector::default(),
        port_names: Vec::new(),
        policy,
        owner_limits: None,
    }
}
