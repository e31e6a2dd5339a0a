//! Generates random clusters: Nodes with missing labels, keys that do not nest, both families, all options.

mod external;
mod policy;

use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use topology_core::model::{
    Drain, DrainScope, Endpoint, EndpointSlice, Enforcement, Expression, Family, Frontend,
    HardServices, Hints, Labels, Node, ObjectName, OnLastDomain, Operator, OwnerLimits, Protocol,
    Selector, Service, ServicePort, SlicePort, TopologyPolicy, TrafficPolicy,
};
use topology_core::policy::{
    Avoid, Demand, EmptyTier, Level, LevelKey, MinReady, Mode, OnNoMatch, Policy, PolicySource,
    Residual, Weighting,
};
use topology_core::scheduler::Scheduler;

use crate::cluster::Cluster;
pub(crate) use external::node_port_addresses;
pub(crate) use policy::policy_object;
use policy::{added, annotated, topology_keys};

/// The node of the viewpoint; it is not always known.
pub(crate) const ME: &str = "n0";
/// The present, in milliseconds since 1970.
pub(crate) const NOW: i64 = 1_700_000_000_000;

pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const REGION: &str = "topology.kubernetes.io/region";
pub(crate) const RACK: &str = "example.com/rack";
pub(crate) const CAPACITY: &str = "topology.ipvs-topo.io/capacity";
const NODES: [&str; 6] = [ME, "n1", "n2", "n3", "n4", "n5"];

/// Sometimes `other`, otherwise the usual value.
fn rarely<T: Clone + std::fmt::Debug + 'static>(
    usual: T,
    other: impl Strategy<Value = T>,
) -> impl Strategy<Value = T> {
    prop_oneof![2 => Just(usual), 1 => other]
}

fn labels(pairs: &[Option<(&str, &str)>]) -> Labels {
    pairs
        .iter()
        .flatten()
        .map(|(key, value)| (Arc::from(*key), Arc::from(*value)))
        .collect()
}

fn label(
    key: &'static str,
    values: &'static [&'static str],
) -> impl Strategy<Value = Option<(&'static str, &'static str)>> {
    proptest::option::weighted(0.8, select(values).prop_map(move |value| (key, value)))
}

fn node(name: &'static str) -> impl Strategy<Value = Node> {
    let places = (
        label(ZONE, &["a", "a", "b", "b", "c", ""]),
        label(REGION, &["r", "r", "s"]),
        label(RACK, &["1", "2", "3"]),
        proptest::option::weighted(
            0.3,
            select(&["1", "2", "3", "7", "257", "1000", "none"][..])
                .prop_map(|value| (CAPACITY, value)),
        ),
    );
    let rest = (
        select(&[1000_u64, 2000, 4000, 1500, 0][..]),
        proptest::bool::weighted(0.9),
    );
    (places, rest).prop_map(
        move |((zone, region, rack, capacity), (cpu_milli, ready))| Node {
            name: name.into(),
            labels: labels(&[zone, region, rack, capacity]),
            addresses: Vec::new(),
            pod_cidrs: Vec::new(),
            cpu_milli,
            ready,
            leaving: false,
        },
    )
}

pub(crate) fn any_node() -> impl Strategy<Value = Node> {
    select(&NODES[..]).prop_flat_map(node)
}

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let each: Vec<_> = NODES
        .iter()
        .map(|name| proptest::option::weighted(if *name == ME { 0.95 } else { 0.85 }, node(name)))
        .collect();
    each.prop_map(|nodes| nodes.into_iter().flatten().collect())
}

pub(crate) fn drain() -> impl Strategy<Value = Drain> {
    let domains = prop_oneof![
        2 => subsequence(vec!["a", "b", "c"], 1..=3).prop_map(|values| (LevelKey::Label(ZONE.into()), values)),
        1 => subsequence(NODES.to_vec(), 1..=2).prop_map(|values| (LevelKey::Node, values)),
        1 => subsequence(vec!["1", "2", "3"], 1..=2).prop_map(|values| (LevelKey::Label(RACK.into()), values)),
        1 => subsequence(vec!["r", "s"], 1..=2).prop_map(|values| (LevelKey::Label(REGION.into()), values)),
    ];
    let scope = select(
        &[
            DrainScope::Endpoints,
            DrainScope::Endpoints,
            DrainScope::Clients,
            DrainScope::Both,
        ][..],
    );
    let time = (
        0..100_i64,
        rarely(0, select(&[60_u32, 30, 100][..])),
        prop_oneof![9 => Just(3600_i64), 1 => -5..100_i64],
    );
    let choices = (
        rarely(OnLastDomain::Ignore, Just(OnLastDomain::Force)),
        rarely(HardServices::Ignore, Just(HardServices::Apply)),
    );
    (select(&["d0", "d1"][..]), domains, scope, time, choices).prop_map(
        |(
            name,
            (key, values),
            scope,
            (age, ramp_seconds, left),
            (on_last_domain, hard_services),
        )| Drain {
            generation: 1,
            name: name.into(),
            key,
            values: values.into_iter().map(Arc::from).collect(),
            scope,
            starts: NOW - age * 1000,
            expires: NOW + left * 1000,
            ramp_seconds,
            on_last_domain,
            hard_services,
            reason: "a test".into(),
        },
    )
}

/// The settings of a Service.
#[derive(Debug, Clone)]
enum Asks {
    Nothing,
    Policy(Box<Policy>),
    Named(&'static str),
}

pub(crate) fn service(name: &'static str) -> impl Strategy<Value = Service> {
    let asks = prop_oneof![
        1 => Just(Asks::Nothing),
        4 => annotated().prop_map(|policy| Asks::Policy(Box::new(policy))),
        1 => added().prop_map(|policy| Asks::Policy(Box::new(policy))),
        1 => topology_keys().prop_map(|policy| Asks::Policy(Box::new(policy))),
        1 => select(&["p0", "p1", "p3"][..]).prop_map(Asks::Named),
    ];
    let shape = (
        0..3_u8,
        subsequence(
            vec![("http", Protocol::Tcp), ("admin", Protocol::Udp)],
            1..=2,
        ),
        external::external(),
    );
    let app = proptest::option::of(select(&["v", "w"][..]));
    (asks, shape, app, proptest::bool::weighted(0.1)).prop_map(
        move |(asks, (families, ports, external), app, local)| {
            let number = &name[1..];
            let mut cluster_ips: Vec<IpAddr> = Vec::new();
            if families != 1 {
                cluster_ips.push(format!("10.96.0.1{number}").parse().unwrap());
            }
            if families != 0 {
                cluster_ips.push(format!("fd00:10:96::1{number}").parse().unwrap());
            }
            let port = |(name, protocol): (&str, _)| {
                ServicePort::new(name, protocol, 80.try_into().unwrap())
            };
            let (policy, named_policy) = match asks {
                Asks::Nothing => (None, None),
                Asks::Policy(policy) => (Some(policy.into()), None),
                Asks::Named(name) => (None, Some(name.into())),
            };
            let frontends = cluster_ips.into_iter().map(Frontend::cluster_ip);
            let ports = ports.into_iter().map(port);
            let mut service = Service {
                labels: labels(&[app.map(|app| ("app", app))]),
                internal_traffic_policy: if local {
                    TrafficPolicy::Local
                } else {
                    TrafficPolicy::Cluster
                },
                policy,
                named_policy,
                ..Service::new(
                    ObjectName::new("t", name),
                    frontends.collect(),
                    ports.collect(),
                )
            };
            external.add_to(&mut service);
            service
        },
    )
}

fn endpoint(family: Family) -> impl Strategy<Value = Endpoint> {
    let place = (
        1..30_u8,
        proptest::option::weighted(0.9, select(&NODES[..])),
        proptest::option::weighted(0.3, select(&["a", "b", "c", ""][..])),
    );
    let condition = prop_oneof![7 => Just((true, true, false)), 2 => Just((false, false, false)), 1 => Just((false, true, true)), 1 => Just((false, false, true))];
    let hints = proptest::option::weighted(
        0.7,
        (
            subsequence(vec!["a", "b", "c"], 0..=2),
            subsequence(NODES.to_vec(), 0..=1),
        ),
    );
    (place, condition, hints).prop_map(
        move |((number, node, zone), (ready, serving, terminating), hints)| Endpoint {
            address: match family {
                Family::V4 => IpAddr::from([10, 244, 0, number]),
                Family::V6 => IpAddr::from([0xfd00, 0x244, 0, 0, 0, 0, 0, u16::from(number)]),
            },
            node: node.map(Into::into),
            zone: zone.map(Into::into),
            ready,
            serving,
            terminating,
            hints: hints.map(|(zones, nodes)| {
                let texts = |texts: Vec<&str>| texts.into_iter().map(Arc::from).collect();
                Box::new(Hints {
                    zones: texts(zones),
                    nodes: texts(nodes),
                })
            }),
        },
    )
}

pub(crate) fn slice(
    name: &'static str,
    service: &'static str,
    family: Family,
) -> impl Strategy<Value = EndpointSlice> {
    let ports = prop_oneof![
        4 => Just(vec![("http", Protocol::Tcp), ("admin", Protocol::Udp)]),
        1 => subsequence(vec![("http", Protocol::Tcp), ("admin", Protocol::Udp), ("http", Protocol::Udp)], 0..=3),
    ];
    (ports, proptest::collection::vec(endpoint(family), 0..14)).prop_map(
        move |(ports, endpoints)| EndpointSlice {
            name: ObjectName::new("t", name),
            service: service.into(),
            family,
            ports: ports
                .into_iter()
                .map(|(name, protocol)| SlicePort {
                    name: name.into(),
                    protocol,
                    port: 8080.try_into().unwrap(),
                })
                .collect(),
            endpoints,
            hostnames: std::collections::BTreeMap::default(),
        },
    )
}

/// A whole cluster with one Service.
pub(crate) fn cluster() -> impl Strategy<Value = Cluster> {
    let slices = (
        slice("x0", "s0", Family::V4),
        proptest::option::weighted(0.4, slice("x1", "s0", Family::V4)),
        slice("x2", "s0", Family::V6),
    );
    let team = proptest::option::of(select(&["x", "y"][..]));
    let policies = proptest::collection::vec(policy_object(), 0..3);
    let drains = rarely(Vec::new(), proptest::collection::vec(drain(), 1..3));
    let nodes = (nodes(), node_port_addresses());
    (nodes, service("s0"), slices, policies, drains, team).prop_map(
        |((nodes, node_port_addresses), service, slices, policies, drains, team)| {
            let mut cluster = Cluster {
                nodes,
                namespaces: vec![("t".to_owned(), labels(&[team.map(|team| ("team", team))]))],
                services: vec![service],
                slices: [Some(slices.0), slices.1, Some(slices.2)]
                    .into_iter()
                    .flatten()
                    .collect(),
                policies,
                drains,
                node_port_addresses,
            };
            // Of two objects with the same name the later one counts.
            cluster.policies.reverse();
            let mut names = std::collections::BTreeSet::new();
            cluster
                .policies
                .retain(|policy| names.insert((policy.namespace.clone(), policy.name.clone())));
            let mut names = std::collections::BTreeSet::new();
            cluster
                .drains
                .retain(|drain| names.insert(drain.name.clone()));
            cluster
        },
    )
}
