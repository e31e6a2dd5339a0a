//! Keeps the decisions about headless Services, for the Nodes of the clients that asked.
//!
//! The name of a Service and each of its ports are decided alone, when a client asks: slices of a tenant may have 20,000
//! ports, which must not cost the clients of the name.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use topology_core::memory::Memory;
use topology_core::model::{ObjectName, ServicePort};
use topology_core::resolve::{HeadlessService, Resolution, Viewpoint};
use topology_core::snapshot::Snapshot;

use crate::family_endpoints::{FamilyEndpoints, PublishedEndpoints};
use crate::port_name::PortName;

/// Decisions are kept for this many Nodes. The server of a node has few clients of other nodes.
const MOST_NODES: usize = 64;

/// Decisions are kept for this many ports of a Service, each with all endpoints.
const MOST_PORTS: usize = 100;

/// This many entries are kept together, which take about 50 MB: endpoints of decisions, remembered endpoints, and ports.
const MOST_ENTRIES: usize = 1 << 20;

/// A headless Service about which clients of a Node ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskedService<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) name: &'a ObjectName,
    pub(crate) node: &'a Arc<str>,
    /// In milliseconds since 1970.
    pub(crate) now: i64,
}

impl AskedService<'_> {
    /// The endpoints of a decision about a port; with `None` about the name.
    fn endpoints(&self, resolution: &Resolution, port: Option<&ServicePort>) -> FamilyEndpoints {
        let Some(service) = self.snapshot.service(self.name) else {
            return FamilyEndpoints::default();
        };
        let port = port.map(PortName::of);
        let published = PublishedEndpoints {
            service,
            slices: self.snapshot.slices(self.name),
            port: port.as_ref(),
        };
        let servers: Vec<_> = resolution.servers.iter().collect();
        FamilyEndpoints::of(&servers, published)
    }
}

/// The decision about the name of a headless Service or one of its ports, seen from one Node.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeadlessDecision {
    pub(crate) endpoints: FamilyEndpoints,
    /// When to decide again, in milliseconds since 1970.
    until: Option<i64>,
}

impl HeadlessDecision {
    fn endpoint_count(&self) -> usize {
        self.endpoints.count()
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
    fn entry_count(&self) -> usize {
        let decisions = self.name.iter().chain(self.ports.values());
        let endpoints: usize = decisions.map(|decision| decision.endpoint_count()).sum();
        endpoints + self.all_ports.as_ref().map_or(0, |ports| ports.len())
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

    /// The Services with their entries. A Service may be there twice: what is remembered of it outlives its decisions.
    fn entry_counts(&self) -> impl Iterator<Item = (&ObjectName, usize)> {
        let decided = self.services.iter();
        let decided = decided.map(|(name, service)| (name, service.entry_count()));
        decided.chain(self.memory.sizes())
    }

    fn entry_count(&self) -> usize {
        self.entry_counts().map(|(_, count)| count).sum()
    }

    /// Forgets the Services of a namespace. Returns how many entries they had.
    fn forget_namespace(&mut self, namespace: &str) -> usize {
        let before = self.entry_count();
        self.services
            .retain(|name, _| *name.namespace != *namespace);
        Arc::make_mut(&mut self.memory).forget_namespace(namespace);
        before - self.entry_count()
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
        Arc::new(HeadlessDecision {
            endpoints: asked.endpoints(&resolution, port),
            until: resolution.resolve_again_at,
        })
    }
}

/// The decisions of each Node.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    nodes: FxHashMap<Arc<str>, NodeDecisions>,
    /// Those of all Nodes; see [`MOST_ENTRIES`].
    entries: usize,
}

impl Decisions {
    /// The decision about the name of a Service.
    pub(crate) fn of_name(&mut self, asked: AskedService<'_>) -> Arc<HeadlessDecision> {
        let known = self.of_service(asked).name.clone();
        if let Some(known) = known.filter(|known| known.is_current(asked.now)) {
            return known;
        }
        let decision = self.decide(asked, None);
        let replaced = self.of_service(asked).name.replace(Arc::clone(&decision));
        self.count(&decision, replaced.as_deref());
        decision
    }

    /// The decision about a port; without endpoints if the Service has no such port.
    pub(crate) fn of_port(
        &mut self,
        asked: AskedService<'_>,
        name: &PortName,
    ) -> Arc<HeadlessDecision> {
        let known = self.of_service(asked).ports.get(name).cloned();
        if let Some(known) = known.filter(|known| known.is_current(asked.now)) {
            return known;
        }
        let ports = self.ports(asked);
        let mut ports = ports.iter();
        let Some(port) = ports.find(|port| name.is(&port.name, port.protocol)) else {
            return Arc::default();
        };
        let decision = self.decide(asked, Some(port));
        let kept = &mut self.of_service(asked).ports;
        let cleared = if kept.len() >= MOST_PORTS {
            std::mem::take(kept)
        } else {
            FxHashMap::default()
        };
        let replaced = kept.insert(name.clone(), Arc::clone(&decision));
        self.count(&decision, replaced.as_deref());
        let cleared: usize = cleared.values().map(|one| one.endpoint_count()).sum();
        self.entries = self.entries.saturating_sub(cleared);
        decision
    }

    /// Decides about a port; with `None` about the name. Makes room for the decision.
    fn decide(
        &mut self,
        asked: AskedService<'_>,
        port: Option<&ServicePort>,
    ) -> Arc<HeadlessDecision> {
        let of_node = self.of_node(asked.node);
        let before = of_node.memory.size_of(asked.name);
        let decision = of_node.decide(asked, port);
        let after = of_node.memory.size_of(asked.name);
        self.entries = (self.entries + after).saturating_sub(before);
        self.make_room(decision.endpoint_count());
        decision
    }

    /// Forgets the largest namespaces until there is room for more entries, so that others keep theirs.
    fn make_room(&mut self, more: usize) {
        while self.entries + more > MOST_ENTRIES {
            let Some(largest) = self.largest_namespace() else {
                return;
            };
            for of_node in self.nodes.values_mut() {
                let forgotten = of_node.forget_namespace(&largest);
                self.entries = self.entries.saturating_sub(forgotten);
            }
        }
    }

    /// The namespace with the most entries.
    fn largest_namespace(&self) -> Option<Arc<str>> {
        let mut namespaces = FxHashMap::<&Arc<str>, usize>::default();
        let nodes = self.nodes.values();
        for (name, count) in nodes.flat_map(NodeDecisions::entry_counts) {
            *namespaces.entry(&name.namespace).or_default() += count;
        }
        let largest = namespaces.into_iter().max_by_key(|(_, count)| *count);
        largest.map(|(namespace, _)| Arc::clone(namespace))
    }

    fn count(&mut self, kept: &HeadlessDecision, replaced: Option<&HeadlessDecision>) {
        let replaced = replaced.map_or(0, HeadlessDecision::endpoint_count);
        self.entries = (self.entries + kept.endpoint_count()).saturating_sub(replaced);
    }

    /// The ports of a Service, and those that only its slices have.
    fn ports(&mut self, asked: AskedService<'_>) -> Arc<[ServicePort]> {
        if let Some(known) = &self.of_service(asked).all_ports {
            return Arc::clone(known);
        }
        let me = viewpoint(asked.node, asked.now);
        let service = HeadlessService::find(asked.snapshot, &me, asked.name);
        let ports: Arc<[ServicePort]> =
            service.map_or_else(Arc::default, |service| service.ports().into());
        self.make_room(ports.len());
        self.of_service(asked).all_ports = Some(Arc::clone(&ports));
        self.entries += ports.len();
        ports
    }

    fn of_service(&mut self, asked: AskedService<'_>) -> &mut ServiceDecisions {
        self.of_node(asked.node).service(asked.name)
    }

    fn of_node(&mut self, node: &Arc<str>) -> &mut NodeDecisions {
        if self.nodes.len() >= MOST_NODES && !self.nodes.contains_key(node) {
            self.forget_smallest_node();
        }
        self.nodes.entry(Arc::clone(node)).or_default()
    }

    /// Forgets the Node with the fewest entries. Most clients are on the Node of the server, so it is rarely that one.
    fn forget_smallest_node(&mut self) {
        let nodes = self.nodes.iter();
        let counts = nodes.map(|(node, of_node)| (of_node.entry_count(), node));
        let Some((count, node)) = counts.min() else {
            return;
        };
        let node = Arc::clone(node);
        self.nodes.remove(&node);
        self.entries = self.entries.saturating_sub(count);
    }

    /// Decides about a Service again when a client asks.
    pub(crate) fn forget(&mut self, snapshot: &Snapshot, service: &ObjectName) {
        let is_gone = snapshot.service(service).is_none();
        for of_node in self.nodes.values_mut() {
            let forgotten = of_node.services.remove(service);
            let mut entries = forgotten.map_or(0, |service| service.entry_count());
            if is_gone {
                entries += of_node.memory.size_of(service);
                Arc::make_mut(&mut of_node.memory).store(service, &Resolution::default());
            }
            self.entries = self.entries.saturating_sub(entries);
        }
    }

    /// Decides about every Service again when a client asks.
    pub(crate) fn forget_all(&mut self) {
        for of_node in self.nodes.values_mut() {
            of_node.services.clear();
        }
        self.entries = self.nodes.values().map(NodeDecisions::entry_count).sum();
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
        carts_with("", ports)
    }

    /// The same with annotations.
    fn carts_with(annotations: &str, ports: usize) -> Snapshot {
        let ports = (1..=ports).map(|number| format!("{{name: p{number}, port: {number}}}"));
        let ports = ports.collect::<Vec<_>>().join(", ");
        let cart = |namespace| {
            format!(
                "
---
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: {namespace}, annotations: {{{annotations}}}}}
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
        assert_eq!(decisions.entries, 4 + 3);
        decisions.forget(&snapshot, &name);
        assert!(!decisions.nodes[&node].services.contains_key(&name));
        assert_eq!(decisions.entries, 0);
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
        assert_eq!(decisions.entries, 20 + MOST_PORTS + 10);
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
        decisions.entries = MOST_ENTRIES;
        decisions.of_port(large, &tcp("p2"));
        assert_eq!(decisions.entries, MOST_ENTRIES - 4 - 3 + 2);
        let of_large = &decisions.nodes[&node].services[large.name];
        assert!(of_large.name.is_none());
        assert_eq!(of_large.ports.keys().collect::<Vec<_>>(), [&tcp("p2")]);
        assert!(Arc::ptr_eq(&of_small, &decisions.of_name(small)));
    }

    #[test]
    fn endpoints_that_are_remembered_for_slow_start_need_room_too() {
        let slow = "topology.ipvs-topo.io/keys: '*', topology.ipvs-topo.io/slow-start: '100'";
        let snapshot = carts_with(slow, 3);
        let node = Arc::from("n1");
        let names = ["shop", "other"].map(|namespace| ObjectName::new(namespace, "cart"));
        let [large, small] = names.each_ref().map(|name| AskedService {
            snapshot: &snapshot,
            name,
            node: &node,
            now: 0,
        });
        let mut decisions = Decisions::default();
        decisions.of_name(large);
        decisions.of_port(large, &tcp("p1"));
        assert_eq!(decisions.entries, 2 * 4 + 3);
        decisions.forget(&snapshot, large.name);
        assert_eq!(decisions.entries, 4);
        decisions.forget_all();
        assert_eq!(decisions.entries, 4);
        decisions.entries = MOST_ENTRIES;
        decisions.of_name(small);
        let memory = &decisions.nodes[&node].memory;
        assert_eq!(
            (memory.size_of(large.name), memory.size_of(small.name)),
            (0, 2)
        );
        assert_eq!(decisions.entries, MOST_ENTRIES - 4 + 4);

        let mut gone = carts(0);
        gone.remove_service(small.name);
        decisions.forget(&gone, small.name);
        assert_eq!(decisions.entries, MOST_ENTRIES - 4);
        assert_eq!(decisions.nodes[&node].entry_count(), 0);
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
        assert_eq!(decisions.entries, 2 * MOST_NODES + 2 + 1);
        assert!(Arc::ptr_eq(&first, &decisions.of_name(asked(&nodes[0]))));
    }
}
