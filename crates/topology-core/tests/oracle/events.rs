//! Applying events one by one gives the same result as starting with the final state.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use topology_core::model::{
    Drain, EndpointSlice, Family, Frontend, IpNetwork, Labels, Node, ObjectName, Service,
    TopologyPolicy,
};
use topology_core::resolve::{Resolution, Viewpoint, resolve};
use topology_core::snapshot::Snapshot;

use crate::generate::{ME, NOW, any_node, drain, policy_object, service, slice};

/// Addresses for node ports of the node of the viewpoint.
const NODE_PORTS: [&str; 2] = ["192.168.1.1", "2001:db8::1"];

#[derive(Debug, Clone)]
enum Event {
    Node(Node),
    NoNode(&'static str),
    Service(Box<Service>),
    NoService(&'static str),
    Slice(EndpointSlice),
    NoSlice(&'static str),
    Policy(Box<TopologyPolicy>),
    NoPolicy(Option<&'static str>, &'static str),
    Drain(Drain),
    NoDrain(&'static str),
    Namespace(Labels),
    NoNamespace,
    Cidrs(Vec<IpNetwork>),
}

fn object(name: &str) -> ObjectName {
    ObjectName::new("t", name)
}

impl Event {
    fn feed(self, snapshot: &mut Snapshot) {
        match self {
            Self::Node(node) => snapshot.set_node(node),
            Self::NoNode(name) => snapshot.remove_node(name),
            Self::Service(service) => snapshot.set_service(*service),
            Self::NoService(name) => snapshot.remove_service(&object(name)),
            Self::Slice(slice) => snapshot.set_slice(slice),
            Self::NoSlice(name) => snapshot.remove_slice(&object(name)),
            Self::Policy(policy) => snapshot.set_policy(*policy),
            Self::NoPolicy(namespace, name) => snapshot.remove_policy(namespace, name),
            Self::Drain(drain) => snapshot.set_drain(drain),
            Self::NoDrain(name) => snapshot.remove_drain(name),
            Self::Namespace(labels) => snapshot.set_namespace("t", labels),
            Self::NoNamespace => snapshot.remove_namespace("t"),
            Self::Cidrs(cidrs) => snapshot.set_service_cidrs(cidrs),
        }
    }

    /// The object of the event; of two events about the same object only the later one counts.
    fn about(&self) -> String {
        let policy = |namespace: Option<&str>, name: &str| {
            format!("policy {} {name}", namespace.unwrap_or("-"))
        };
        match self {
            Self::Node(node) => format!("node {}", node.name),
            Self::NoNode(name) => format!("node {name}"),
            Self::Service(service) => format!("service {}", service.name.name),
            Self::NoService(name) => format!("service {name}"),
            Self::Slice(slice) => format!("slice {}", slice.name.name),
            Self::NoSlice(name) => format!("slice {name}"),
            Self::Policy(object) => policy(object.namespace.as_deref(), &object.name),
            Self::NoPolicy(namespace, name) => policy(*namespace, name),
            Self::Drain(drain) => format!("drain {}", drain.name),
            Self::NoDrain(name) => format!("drain {name}"),
            Self::Namespace(_) | Self::NoNamespace => "namespace".to_owned(),
            Self::Cidrs(_) => "cidrs".to_owned(),
        }
    }
}

/// A Node; sometimes it has a virtual address by mistake.
fn nodes() -> impl Strategy<Value = Node> {
    let address = proptest::option::weighted(
        0.1,
        select(&["10.96.0.10", "10.96.0.11", "192.0.2.10", "192.168.1.1"][..]),
    );
    (any_node(), address).prop_map(|(mut node, address)| {
        node.addresses
            .extend(address.map(|address| address.parse::<IpAddr>().unwrap()));
        node
    })
}

/// A Service; sometimes it claims the address of another one.
fn services() -> impl Strategy<Value = Service> {
    let either = prop_oneof![service("s0"), service("s1"), service("s2")];
    (
        either,
        proptest::bool::weighted(0.2),
        proptest::option::of(0..3_i64),
    )
        .prop_map(|(mut service, claims, created)| {
            if claims {
                service.frontends = vec![Frontend::cluster_ip("10.96.0.10".parse().unwrap())];
            }
            service.created = created;
            service
        })
}

fn slices() -> impl Strategy<Value = EndpointSlice> {
    let name = select(&["x0", "x1", "x2", "x3"][..]);
    let service = select(&["s0", "s0", "s1", "s2", "nobody"][..]);
    let family = select(&[Family::V4, Family::V4, Family::V6][..]);
    let slices = (name, service, family)
        .prop_flat_map(|(name, service, family)| slice(name, service, family));
    // An address that can never be a real server.
    (slices, proptest::bool::weighted(0.1)).prop_map(|(mut slice, spoil)| {
        if let Some(endpoint) = slice.endpoints.first_mut().filter(|_| spoil) {
            endpoint.address = IpAddr::from([127, 0, 0, 1]);
        }
        slice
    })
}

fn namespaces() -> impl Strategy<Value = Labels> {
    select(&["x", "y", "z"][..])
        .prop_map(|team| [("team".into(), team.into())].into_iter().collect())
}

fn events() -> impl Strategy<Value = Event> {
    let names = |names: &'static [&'static str]| select(names);
    prop_oneof![
        4 => nodes().prop_map(Event::Node),
        1 => names(&[ME, "n1", "n2"]).prop_map(Event::NoNode),
        4 => services().prop_map(|service| Event::Service(Box::new(service))),
        1 => names(&["s0", "s1"]).prop_map(Event::NoService),
        5 => slices().prop_map(Event::Slice),
        1 => names(&["x0", "x1"]).prop_map(Event::NoSlice),
        3 => policy_object().prop_map(|policy| Event::Policy(Box::new(policy))),
        1 => (prop_oneof![Just(None), Just(Some("t"))], names(&["p0", "p1", "p2"])).prop_map(|(namespace, name)| Event::NoPolicy(namespace, name)),
        2 => drain().prop_map(Event::Drain),
        1 => names(&["d0", "d1"]).prop_map(Event::NoDrain),
        1 => namespaces().prop_map(Event::Namespace),
        1 => Just(Event::NoNamespace),
        1 => names(&["10.96.0.0/16", "10.0.0.0/8"]).prop_map(|cidr| Event::Cidrs(vec![cidr.parse().unwrap()])),
    ]
}

fn view() -> Viewpoint {
    Viewpoint {
        now: Some(NOW),
        node_port_addresses: Arc::new(
            NODE_PORTS
                .iter()
                .map(|text| text.parse().unwrap())
                .collect(),
        ),
        ..Viewpoint::new(ME)
    }
}

fn resolve_all(snapshot: &Snapshot) -> BTreeMap<ObjectName, Resolution> {
    let names = snapshot.services().map(|service| service.name.clone());
    names
        .map(|name| (name.clone(), resolve(snapshot, &view(), &name)))
        .collect()
}

/// The state of the kernel, without texts.
fn programmed(resolutions: &BTreeMap<ObjectName, Resolution>) -> Vec<String> {
    let servers = resolutions
        .values()
        .flat_map(|resolution| &resolution.servers);
    servers
        .map(|server| format!("{:?}", server.server))
        .collect()
}

proptest! {
    #![proptest_config(crate::cases())]

    #[test]
    fn one_event_after_the_other_equals_a_fresh_start(
        batches in proptest::collection::vec(proptest::collection::vec(events(), 1..5), 1..7)
    ) {
        let (mut snapshot, mut known) = (Snapshot::default(), BTreeMap::new());
        let mut last: BTreeMap<String, Event> = BTreeMap::new();
        for batch in batches {
            for event in batch {
                last.insert(event.about(), event.clone());
                event.feed(&mut snapshot);
            }
            for name in snapshot.take_dirty(ME).services {
                match snapshot.service(&name) {
                    Some(_) => drop(known.insert(name.clone(), resolve(&snapshot, &view(), &name))),
                    None => drop(known.remove(&name)),
                }
            }
            prop_assert_eq!(programmed(&known), programmed(&resolve_all(&snapshot)), "nothing was missed");
        }
        let mut fresh = Snapshot::default();
        // In alphabetical order, which is not the order of the events.
        for event in last.into_values() {
            event.feed(&mut fresh);
        }
        prop_assert_eq!(resolve_all(&snapshot), resolve_all(&fresh), "the past leaves no trace");
        prop_assert_eq!(snapshot.service_cidrs(), fresh.service_cidrs());
    }

    #[test]
    fn an_identical_event_makes_nothing_dirty(events in proptest::collection::vec(events(), 1..20)) {
        let mut snapshot = Snapshot::default();
        events.iter().cloned().for_each(|event| event.feed(&mut snapshot));
        snapshot.take_dirty(ME);
        let last: BTreeMap<String, Event> = events.into_iter().map(|event| (event.about(), event)).collect();
        for event in last.into_values() {
            event.feed(&mut snapshot);
        }
        prop_assert!(snapshot.take_dirty(ME).is_empty());
    }
}
