//! DNS and a virtual server choose the same endpoints with the same shares.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;

use dns::{AnswerCycle, viewpoint};
use proptest::prelude::*;
use proptest::sample::select;
use topology_core::model::{Frontend, ObjectName};
use topology_core::resolve::{Viewpoint, resolve, resolve_headless};

use crate::cluster_of::{DRAIN, Dns, NODES, NOW};

const POLICIES: &[&str] = &[
    "",
    "topology.ipvs-topo.io/keys: 'node'",
    "topology.ipvs-topo.io/keys: 'zone'",
    "topology.ipvs-topo.io/keys: 'node,zone,*'",
    "topology.ipvs-topo.io/weights: 'node=80,zone=15,*=5'",
    "topology.ipvs-topo.io/weights: 'zone=70,*=30', topology.ipvs-topo.io/max-overload: '20'",
    "topology.ipvs-topo.io/weights: 'zone=1,*=2', topology.ipvs-topo.io/weighting: endpoint-bias",
    "topology.ipvs-topo.io/weights: 'node=60,zone=40'",
];

const SPECS: &[&str] = &["", ", internalTrafficPolicy: Local"];

fn endpoint() -> impl Strategy<Value = String> {
    let conditions = prop_oneof![
        6 => Just("ready: true"),
        2 => Just("ready: false, serving: false"),
        1 => Just("ready: false, serving: true, terminating: true"),
    ];
    let zones = select(&["a", "b"][..]);
    let hints = proptest::option::weighted(0.7, zones);
    (1..=3_u8, 1..40_u8, conditions, hints).prop_map(|(node, number, conditions, hint)| {
        let hint = hint.map_or(String::new(), |zone| {
            format!(", hints: {{forZones: [{{name: {zone}}}]}}")
        });
        format!(
            "{{addresses: [10.244.{node}.{number}], nodeName: n{node}, conditions: {{{conditions}}}{hint}}}"
        )
    })
}

fn yaml() -> impl Strategy<Value = String> {
    let endpoints = proptest::collection::vec(endpoint(), 0..12);
    let slices = proptest::collection::vec(endpoints, 1..3);
    let drained = proptest::bool::weighted(0.3);
    (select(POLICIES), select(SPECS), slices, drained).prop_map(
        |(policy, spec, slices, drained)| {
            let mut yaml = format!(
                "{NODES}---
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop, annotations: {{{policy}}}}}
spec: {{clusterIP: None, ports: [{{name: http, port: 80}}]{spec}}}
"
            );
            for (at, endpoints) in slices.iter().enumerate() {
                write!(
                    yaml,
                    "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-{at}, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}
addressType: IPv4
ports: [{{name: http, port: 8080}}]
endpoints: [{}]
",
                    endpoints.join(", ")
                )
                .unwrap();
            }
            yaml + if drained { DRAIN } else { "" }
        },
    )
}

/// The real servers of the same Service with a cluster IP, with their weights.
fn real_servers(dns: &Dns, node: &str) -> BTreeMap<IpAddr, u32> {
    let name = ObjectName::new("shop", "cart");
    let mut service = dns.snapshot.service(&name).unwrap().clone();
    service.frontends = vec![Frontend::cluster_ip([10, 96, 0, 1].into())];
    let mut snapshot = topology_core::snapshot::Snapshot::default();
    for node in dns.snapshot.nodes() {
        snapshot.set_node(node.clone());
    }
    for drain in dns.snapshot.drains() {
        snapshot.set_drain(drain.clone());
    }
    for slice in dns.snapshot.slices(&name) {
        snapshot.set_slice(slice.clone());
    }
    snapshot.set_service(service);
    let me = Viewpoint {
        now: Some(NOW),
        ..Viewpoint::new(node)
    };
    let servers = resolve(&snapshot, &me, &name).servers;
    let [server] = &servers[..] else {
        panic!("one virtual server, not {servers:?}");
    };
    let real = server.server.real_servers.iter();
    let real = real.filter(|real| real.weight > 0);
    real.map(|real| (real.address, real.weight)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// In one cycle of turns each endpoint is the first as often as its weight says.
    #[test]
    fn the_endpoints_and_shares_are_those_of_a_virtual_server(yaml in yaml()) {
        let mut dns = Dns::of(&yaml);
        for (node, client) in [("n1", "10.244.1.200"), ("n2", "10.244.2.200"), ("n3", "10.244.3.200")] {
            let expected = real_servers(&dns, node);
            let cycle = expected.values().sum::<u32>().max(1);
            let mut firsts = BTreeMap::<IpAddr, u32>::new();
            for _ in 0..cycle {
                let addresses = dns.addresses(client);
                for address in &addresses {
                    prop_assert!(expected.contains_key(&address.parse().unwrap()));
                }
                if let Some(first) = addresses.first() {
                    *firsts.entry(first.parse().unwrap()).or_default() += 1;
                }
            }
            prop_assert_eq!(firsts, expected, "{} {}", node, yaml);
        }
    }

    /// One cycle of answers holds each level as often as the explanation says, and no other address.
    #[test]
    fn a_cycle_of_answers_has_the_levels_that_an_explanation_shows(yaml in yaml()) {
        let mut dns = Dns::of(&yaml);
        for (node, client) in [("n1", "10.244.1.200"), ("n2", "10.244.2.200"), ("n3", "10.244.3.200")] {
            let cycle = explained(&dns, node);
            let mut answered = BTreeMap::<BTreeSet<IpAddr>, u64>::new();
            for _ in 0..cycle.answers {
                let addresses = dns.addresses(client);
                let addresses = addresses.iter().map(|address| address.parse().unwrap());
                *answered.entry(addresses.collect()).or_default() += 1;
            }
            let levels = cycle.levels.iter().map(|level| {
                let addresses = level.endpoints.iter().map(|(address, _)| *address);
                (addresses.collect(), level.answers)
            });
            prop_assert_eq!(answered, levels.collect::<BTreeMap<_, _>>(), "{} {}", node, yaml);
        }
    }
}

fn explained(dns: &Dns, node: &str) -> AnswerCycle {
    let name = ObjectName::new("shop", "cart");
    let me = viewpoint(&node.into(), NOW);
    let servers = resolve_headless(&dns.snapshot, &me, &name).servers;
    let of_name = servers.first();
    of_name.map_or_else(AnswerCycle::default, |server| {
        AnswerCycle::of(&server.decision)
    })
}
