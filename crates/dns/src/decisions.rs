//! Keeps the decisions about headless Services, for the Nodes of the clients that asked.
//!
//! The name of a Service and each of its ports are decided alone, when a client asks: slices of a tenant may have 20,000
//! ports, which must not cost the clients of the name.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use topology_core::memory::Memory;
use topology_core::model::{Family, ObjectName, ServicePort};
use topology_core::resolve::{HeadlessService, Resolution, Viewpoint};
use topology_core::snapshot::Snapshot;

use crate::port_name::PortName;
use crate::weighted_endpoints::WeightedEndpoints;

/// Decisions are kept for this many Nodes. The server of a node has few clients of other nodes.
const MOST_NODES: usize = 64;

/// Decisions are kept for this many ports of a Service, each with all endpoints.
const MOST_PORTS: usize = 100;

/// Decisions are kept with this many endpoints together, which take about 50 MB.
const MOST_ENDPOINTS: usize = 1 << 20;

/// A headless Service about which clients of a Node ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskedService<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) name: &'a ObjectName,
    pub(crate) node: &'a Arc<str>,
    /// In milliseconds since 1970.
    pub(crate) now: i64,
}

/// The decision about the name of a headless Service or one of its ports, seen from one Node.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeadlessDecision {
    families: Vec<(Family, WeightedEndpoints)>,
    /// When to decide again, in milliseconds since 1970.
    until: Option<i64>,
}

impl HeadlessDecision {
    fn of(resolution: &Resolution) -> Self {
        let servers = resolution.servers.iter();
        let families = servers.map(|resolved| {
            let family = resolved.server.key.family();
            (family, WeightedEndpoints::of(&resolved.decision))
        });
        Self {
            families: families.collect(),
            until: resolution.resolve_again_at,
        }
    }

    /// The endpoints of a family.
    pub(crate) fn of_family(&self, family: Family) -> Option<&WeightedEndpoints> {
        let mut families = self.families.iter();
        let (_, endpoints) = families.find(|(known, _)| *known == family)?;
        Some(endpoints)
    }

    /// The endpoints of each family.
    pub(crate) fn families(&self) -> impl Iterator<Item = &WeightedEndpoints> {
        self.families.iter().map(|(_, endpoints)| endpoints)
    }

    fn endpoint_count(&self) -> usize {
        self.families().map(|family| family.all().len()).sum()
    }

    fn is_current(&self, now: i64) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// Where the clients of a Node get their answers from at the time `now`, in milliseconds since 1970. The server also
/// remembers its earlier decisions.
pub fn viewpoint(node: &Arc<str>, now: i64) -> Viewpoint {
    Viewpoint {
        now: Some(now),
        ..Viewpoint::new(Arc::clone(node))
    }
}

/// What the clients of one Node asked about a Service.
#[derive(Debug, Default)]
struct ServiceDecisions {
    name: Option<Arc<HeadlessDecision>>,
    ports: FxHashMap<PortName, Arc<HeadlessDecision>>,
    /// All ports that there are.
    all_ports: Option<Arc<[ServicePort]>>,
}

impl ServiceDecisions {
    fn endpoint_count(&self) -> usize {
        let all = self.name.iter().chain(self.ports.values());
        all.map(|decision| decision.endpoint_count()).sum()
    }
}

/// The decisions for the clients of one Node, and what the next ones need to know of them.
#[derive(Debug, Default)]
struct NodeDecisions {
    services: FxHashMap<ObjectName, ServiceDecisions>,
    memory: Arc<Memory>,
}

impl NodeDecisions {
    fn service(&mut self, name: &ObjectName) -> &mut ServiceDecisions {
        self.services.entry(name.clone()).or_default()
    }

    fn endpoint_count(&self) -> usize {
        let services = self.services.values();
        services.map(ServiceDecisions::endpoint_count).sum()
    }

    /// Forgets the Services of a namespace and how many endpoints they had, which it returns.
    fn forget_namespace(&mut self, namespace: &str) -> usize {
        let services = &mut self.services;
        let forgotten = services.extract_if(|name, _| &*name.namespace == namespace);
        let mut endpoints = 0;
        for (name, service) in forgotten {
            endpoints += service.endpoint_count();
            Arc::make_mut(&mut self.memory).store(&name, &Resolution::default());
        }
        endpoints
    }

    /// Decides about a port; with `None` about the name.
    fn decide(
        &mut self,
        asked: AskedService<'_>,
        port: Option<&ServicePort>,
    ) -> Arc<HeadlessDecision> {
        let me = Viewpoint {
            memory: Arc::clone(&self.memory),
            ..viewpoint(asked.node, asked.now)
        };
        let service = HeadlessService::find(asked.snapshot, &me, asked.name);
        let resolution = service.map(|service| match port {
            Some(port) => service.resolve_port(port),
            None => service.resolve_name(),
        });
        drop(me);
        let resolution = resolution.unwrap_or_default();
        Arc::make_mut(&mut self.memory).store_part(asked.name, &resolution);
        Arc::new(HeadlessDecision::of(&resolution))
    }
}

/// The decisions of each Node.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    nodes: FxHashMap<Arc<str>, NodeDecisions>,
    /// The endpoints of all decisions.
    endpoints: usize,
}

impl Decisions {
    /// The decision about the name of a Service.
    pub(crate) fn of_name(&mut self, asked: AskedService<'_>) -> Arc<HeadlessDecision> {
        let of_node = self.of_node(asked.node);
        let known = of_node.service(asked.name).name.clone();
        if let Some(known) = known.filter(|known| known.is_current(asked.now)) {
            return known;
        }
        let decision = of_node.decide(asked, None);
        self.make_room(&decision);
        let kept = &mut self.of_node(asked.node).service(asked.name).name;
        let replaced = kept.replace(Arc::clone(&decision));
        self.count(&decision, replaced.as_deref());
        decision
    }

    /// The decision about a port; without endpoints if the Service has no such port.
    pub(crate) fn of_port(
        &mut self,
        asked: AskedService<'_>,
        name: &PortName,
    ) -> Arc<HeadlessDecision> {
        let of_service = self.of_node(asked.node).service(asked.name);
        let known = of_service.ports.get(name).cloned();
        if let Some(known) = known.filter(|known| known.is_current(asked.now)) {
            return known;
        }
        let ports = self.ports(asked);
        let mut ports = ports.iter();
        let Some(port) = ports.find(|port| name.is(&port.name, port.protocol)) else {
            return Arc::default();
        };
        let decision = self.of_node(asked.node).decide(asked, Some(port));
        self.make_room(&decision);
        let kept = &mut self.of_node(asked.node).service(asked.name).ports;
        let cleared = if kept.len() >= MOST_PORTS {
            std::mem::take(kept)
        } else {
            FxHashMap::default()
        };
        let replaced = kept.insert(name.clone(), Arc::clone(&decision));
        self.count(&decision, replaced.as_deref());
        let cleared: usize = cleared.values().map(|one| one.endpoint_count()).sum();
        self.endpoints = self.endpoints.saturating_sub(cleared);
        decision
    }

    /// Forgets the largest namespaces until there is room for this decision, so that others keep theirs.
    fn make_room(&mut self, decision: &HeadlessDecision) {
        while self.endpoints + decision.endpoint_count() > MOST_ENDPOINTS {
            let Some(largest) = self.largest_namespace() else {
                return;
            };
            for of_node in self.nodes.values_mut() {
                let forgotten = of_node.forget_namespace(&largest);
                self.endpoints = self.endpoints.saturating_sub(forgotten);
            }
        }
    }

    /// The namespace with the most endpoints.
    fn largest_namespace(&self) -> Option<Arc<str>> {
        let mut namespaces = FxHashMap::<&Arc<str>, usize>::default();
        for (name, service) in self.nodes.values().flat_map(|of_node| &of_node.services) {
            *namespaces.entry(&name.namespace).or_default() += service.endpoint_count();
        }
        let largest = namespaces.into_iter().max_by_key(|(_, count)| *count);
        largest.map(|(namespace, _)| Arc::clone(namespace))
    }

    fn count(&mut self, kept: &HeadlessDecision, replaced: Option<&HeadlessDecision>) {
        let replaced = replaced.map_or(0, HeadlessDecision::endpoint_count);
        self.endpoints = (self.endpoints + kept.endpoint_count()).saturating_sub(replaced);
    }

    /// The ports of a Service, and those that only its slices have.
    fn ports(&mut self, asked: AskedService<'_>) -> Arc<[ServicePort]> {
        let of_service = self.of_node(asked.node).service(asked.name);
        let ports = of_service.all_ports.get_or_insert_with(|| {
            let me = viewpoint(asked.node, asked.now);
            let service = HeadlessService::find(asked.snapshot, &me, asked.name);
            service.map_or_else(Arc::default, |service| service.ports().into())
        });
        Arc::clone(ports)
    }

    fn of_node(&mut self, node: &Arc<str>) -> &mut NodeDecisions {
        if self.nodes.len() >= MOST_NODES && !self.nodes.contains_key(node) {
            self.forget_smallest_node();
        }
        self.nodes.entry(Arc::clone(node)).or_default()
    }

    /// Forgets the Node with the fewest endpoints. Most clients are on the Node of the server, so it is rarely that one.
    fn forget_smallest_node(&mut self) {
        let nodes = self.nodes.iter();
        let counts = nodes.map(|(node, of_node)| (of_node.endpoint_count(), node));
        let Some((count, node)) = counts.min() else {
            return;
        };
        let node = Arc::clone(node);
        self.nodes.remove(&node);
        self.endpoints = self.endpoints.saturating_sub(count);
    }

    /// Decides about a Service again when a client asks.
    pub(crate) fn forget(&mut self, snapshot: &Snapshot, service: &ObjectName) {
        let is_gone = snapshot.service(service).is_none();
        for of_node in self.nodes.values_mut() {
            let forgotten = of_node.services.remove(service);
            let endpoints = forgotten.map_or(0, |service| service.endpoint_count());
            self.endpoints = self.endpoints.saturating_sub(endpoints);
            if is_gone {
                Arc::make_mut(&mut of_node.memory).store(service, &Resolution::default());
            }
        }
    }

    /// Decides about every Service again when a client asks.
    pub(crate) fn forget_all(&mut self) {
        for of_node in self.nodes.values_mut() {
            of_node.services.clear();
        }
        self.endpoints = 0;
    }
}

#[cfg(test)]
mod tests {
    use cluster::ServiceSelection;
    use cluster::source::{Options, read_text};
    use topology_core::model::Protocol;

    use super::*;

    /// A headless Service with two endpoints and the ports `p1`, `p2` and so on, in each of two namespaces.
    fn carts(ports: usize) -> Snapshot {
        let ports = (1..=ports).map(|number| format!("{{name: p{number}, port: {number}}}"));
        let ports = ports.collect::<Vec<_>>().join(", ");
        let cart = |namespace| {
            format!(
                "
---
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: {namespace}}}
spec: {{clusterIP: None}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-1, namespace: {namespace}, labels: {{kubernetes.io/service-name: cart}}}}
addressType: IPv4
ports: [{ports}]
endpoints: [{{addresses: [10.244.1.10]}}, {{addresses: [10.244.1.11]}}]
"
            )
        };
        let yaml = ["shop", "other"].map(cart).concat();
        let options = Options {
            services: ServiceSelection::All,
            ..Options::default()
        };
        let loaded = read_text("a.yaml", yaml.as_bytes(), &options);
        loaded.unwrap().snapshot
    }

    fn tcp(name: &str) -> PortName {
        PortName {
            name: name.into(),
            protocol: Protocol::Tcp,
        }
    }

    #[test]
    fn only_what_a_client_asks_for_is_decided() {
        let snapshot = carts(3);
        let (name, node) = (ObjectName::new("shop", "cart"), Arc::from("n1"));
        let asked = AskedService {
            snapshot: &snapshot,
            name: &name,
            node: &node,
            now: 0,
        };
        let mut decisions = Decisions::default();
        let decided = |decisions: &Decisions| decisions.nodes[&node].services[&name].ports.len();
        assert_eq!(decisions.of_name(asked).endpoint_count(), 2);
        assert_eq!(decided(&decisions), 0);
        let first = decisions.of_port(asked, &tcp("p2"));
        assert_eq!((first.endpoint_count(), decided(&decisions)), (2, 1));
        let second = decisions.of_port(asked, &tcp("p2"));
        assert!(Arc::ptr_eq(&first, &second));
        let absent = decisions.of_port(asked, &tcp("p4"));
        assert_eq!((absent.endpoint_count(), decided(&decisions)), (0, 1));
        assert_eq!(decisions.endpoints, 4);
        decisions.forget(&snapshot, &name);
        assert!(!decisions.nodes[&node].services.contains_key(&name));
        assert_eq!(decisions.endpoints, 0);
    }

    #[test]
    fn the_ports_of_a_service_with_decisions_are_bounded() {
        let snapshot = carts(MOST_PORTS + 10);
        let (name, node) = (ObjectName::new("shop", "cart"), Arc::from("n1"));
        let asked = AskedService {
            snapshot: &snapshot,
            name: &name,
            node: &node,
            now: 0,
        };
        let mut decisions = Decisions::default();
        for number in 1..=MOST_PORTS + 10 {
            let decision = decisions.of_port(asked, &tcp(&format!("p{number}")));
            assert_eq!(decision.endpoint_count(), 2);
        }
        assert_eq!(decisions.nodes[&node].services[&name].ports.len(), 10);
        assert_eq!(decisions.endpoints, 20);
    }

    #[test]
    fn without_room_the_largest_namespace_is_decided_again() {
        let snapshot = carts(3);
        let node = Arc::from("n1");
        let names = ["shop", "other"].map(|namespace| ObjectName::new(namespace, "cart"));
        let [large, small] = names.each_ref().map(|name| AskedService {
            snapshot: &snapshot,
            name,
            node: &node,
            now: 0,
        });
        let mut decisions = Decisions::default();
        let of_small = decisions.of_name(small);
        decisions.of_name(large);
        decisions.of_port(large, &tcp("p1"));
        decisions.endpoints = MOST_ENDPOINTS;
        decisions.of_port(large, &tcp("p2"));
        assert_eq!(decisions.endpoints, MOST_ENDPOINTS - 4 + 2);
        let of_large = &decisions.nodes[&node].services[large.name];
        assert!(of_large.name.is_none());
        assert_eq!(of_large.ports.keys().collect::<Vec<_>>(), [&tcp("p2")]);
        assert!(Arc::ptr_eq(&of_small, &decisions.of_name(small)));
    }

    #[test]
    fn without_room_the_node_with_the_fewest_endpoints_is_decided_again() {
        let snapshot = carts(1);
        let name = ObjectName::new("shop", "cart");
        let nodes = (0..=MOST_NODES).map(|number| Arc::<str>::from(format!("n{number}")));
        let nodes = nodes.collect::<Vec<_>>();
        let asked = |node| AskedService {
            snapshot: &snapshot,
            name: &name,
            node,
            now: 0,
        };
        let mut decisions = Decisions::default();
        let first = decisions.of_name(asked(&nodes[0]));
        decisions.of_port(asked(&nodes[0]), &tcp("p1"));
        for node in &nodes[1..] {
            decisions.of_name(asked(node));
        }
        assert_eq!(decisions.nodes.len(), MOST_NODES);
        assert_eq!(decisions.endpoints, 2 * MOST_NODES + 2);
        assert!(Arc::ptr_eq(&first, &decisions.of_name(asked(&nodes[0]))));
    }
}
