//! Applying events one by one gives the same result as starting with the final state.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use topology_core::model::{
    Drain, EndpointSlice, Family, Frontend, IpNetwork, Labels, Node, ObjectName, Service,
    TopologyPolicy,
};
use topology_core::resolve::{Note, Resolution, Viewpoint, resolve};
use topology_core::snapshot::Snapshot;

use crate::generate::{ME, NOW, RACK, REGION, any_node, drain, policy_object, service, slice};

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
    Unread(BTreeSet<Arc<str>>),
    /// A slice of the Service `kubernetes`.
    ApiServers(EndpointSlice),
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
            Self::Slice(slice) | Self::ApiServers(slice) => snapshot.set_slice(slice),
            Self::NoSlice(name) => snapshot.remove_slice(&object(name)),
            Self::Policy(policy) => snapshot.set_policy(*policy),
            Self::NoPolicy(namespace, name) => snapshot.remove_policy(namespace, name),
            Self::Drain(drain) => snapshot.set_drain(drain),
            Self::NoDrain(name) => snapshot.remove_drain(name),
            Self::Namespace(labels) => snapshot.set_namespace("t", labels),
            Self::NoNamespace => snapshot.remove_namespace("t"),
            Self::Cidrs(cidrs) => snapshot.set_service_cidrs(cidrs),
            Self::Unread(labels) => snapshot.set_unread_labels(labels),
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
            Self::Unread(_) => "unread".to_owned(),
            Self::ApiServers(_) => "API servers".to_owned(),
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

/// API servers at external addresses of Services, or at addresses of their endpoints.
fn api_servers() -> impl Strategy<Value = EndpointSlice> {
    let address = select(&["192.0.2.10", "192.168.1.1", "203.0.113.10", "10.244.0.1"][..]);
    let slices = slice("kubernetes", "kubernetes", Family::V4);
    (slices, address).prop_map(|(mut slice, address)| {
        slice.name = ObjectName::new("default", "kubernetes");
        if let Some(endpoint) = slice.endpoints.first_mut() {
            endpoint.address = address.parse().unwrap();
        }
        slice
    })
}

/// Labels that are not loaded for the Nodes yet.
fn unread() -> impl Strategy<Value = BTreeSet<Arc<str>>> {
    subsequence(vec![RACK, REGION], 0..=2)
        .prop_map(|labels| labels.into_iter().map(Arc::from).collect())
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
        2 => unread().prop_map(Event::Unread),
        1 => api_servers().prop_map(Event::ApiServers),
    ]
}

fn batches() -> impl Strategy<Value = Vec<Vec<Event>>> {
    proptest::collection::vec(proptest::collection::vec(events(), 1..5), 1..7)
}

fn view(node: &str) -> Viewpoint {
    Viewpoint {
        now: Some(NOW),
        node_port_addresses: Arc::new(
            NODE_PORTS
                .iter()
                .map(|text| text.parse().unwrap())
                .collect(),
        ),
        ..Viewpoint::new(node)
    }
}

/// The result for each Service.
type Known = BTreeMap<ObjectName, Resolution>;

fn all(snapshot: &Snapshot) -> BTreeSet<ObjectName> {
    let services = snapshot.services();
    services.map(|service| service.name.clone()).collect()
}

/// Resolves some Services again.
fn update(known: &mut Known, snapshot: &Snapshot, view: &Viewpoint, names: BTreeSet<ObjectName>) {
    for name in names {
        match snapshot.service(&name) {
            Some(_) => drop(known.insert(name.clone(), resolve(snapshot, view, &name))),
            None => drop(known.remove(&name)),
        }
    }
}

fn resolve_all(snapshot: &Snapshot, view: &Viewpoint) -> Known {
    let mut known = Known::new();
    update(&mut known, snapshot, view, all(snapshot));
    known
}

/// What must always be current: the state of the kernel and the decisions. The time of the next query may be missing if
/// nothing changes then, and the zone of an endpoint and the proposal for an unknown label may be old.
fn current(mut known: Known) -> Known {
    for resolution in known.values_mut() {
        resolution.resolve_again_at = None;
        for server in &mut resolution.servers {
            for endpoint in &mut server.decision.endpoints {
                endpoint.zone = None;
            }
            for note in &mut server.decision.notes {
                if let Note::LevelUnknown { similar, .. } = note {
                    *similar = None;
                }
            }
        }
    }
    known
}

/// Feeds events, and after each batch resolves the Services in `changed`, as seen from `view`.
fn follow(
    snapshot: &mut Snapshot,
    batches: Vec<Vec<Event>>,
    view: &Viewpoint,
    changed: impl Fn(&mut Snapshot) -> BTreeSet<ObjectName>,
) -> Result<(), TestCaseError> {
    let mut known = Known::new();
    for batch in batches {
        for event in batch {
            event.feed(snapshot);
        }
        let names = changed(snapshot);
        update(&mut known, snapshot, view, names);
        let fresh = resolve_all(snapshot, view);
        prop_assert_eq!(current(known.clone()), current(fresh), "nothing was missed");
    }
    Ok(())
}

proptest! {
    #![proptest_config(crate::cases())]

    #[test]
    fn one_event_after_the_other_equals_a_fresh_start(batches in batches()) {
        let events = batches.iter().flatten().cloned();
        let last: BTreeMap<String, Event> = events.map(|event| (event.about(), event)).collect();
        let (mut snapshot, view) = (Snapshot::default(), view(ME));
        follow(&mut snapshot, batches, &view, |snapshot| snapshot.take_dirty(ME).services)?;
        let mut fresh = Snapshot::default();
        // In alphabetical order, which is not the order of the events.
        for event in last.into_values() {
            event.feed(&mut fresh);
        }
        prop_assert_eq!(resolve_all(&snapshot, &view), resolve_all(&fresh, &view), "the past leaves no trace");
        prop_assert_eq!(snapshot.service_cidrs(), fresh.service_cidrs());
    }

    #[test]
    fn changes_for_all_nodes_miss_nothing_on_any_node(batches in batches(), node in select(&[ME, "n1"][..])) {
        follow(&mut Snapshot::default(), batches, &view(node), |snapshot| {
            let changes = snapshot.take_changes();
            let mut names = changes.services;
            if changes.nodes {
                names.extend(all(snapshot));
            }
            names
        })?;
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
