//! SRV answers of headless Services whose IPv4 and IPv6 endpoints differ: a name leads to the addresses of both families.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use dns::{AnswerCycle, viewpoint};
use hickory_proto::rr::{RData, RecordType};
use proptest::prelude::*;
use proptest::sample::select;
use topology_core::model::ObjectName;
use topology_core::resolve::resolve_headless;

use crate::cluster_of::{CLIENT, DRAIN, Dns, NODES, NOW, address};

const CART: &str = "cart.shop.svc.cluster.local.";

/// The name of the Service and that of its port.
const QUESTIONS: [&str; 2] = ["", "_http._tcp."];

const NEAREST: &str = "topology.ipvs-topo.io/keys: 'node,zone,*'";

const TERMINATING: &str = "ready: false, serving: true, terminating: true";

/// An endpoint with an IPv4 and an IPv6 address: the number of its node, its hostname, and its conditions.
type Pod = (u8, &'static str, &'static str);

/// A headless Service with IPv4 addresses of these pods, and IPv6 addresses of those.
fn cart(annotations: &str, v4: &[Pod], v6: &[Pod]) -> String {
    let endpoints = |pods: &[Pod], address: &dyn Fn(u8, usize) -> String| {
        let pods = pods.iter().zip(20..);
        let pods = pods.map(|((node, hostname, conditions), last)| {
            let address = address(*node, last);
            let hostname = match *hostname {
                "" => String::new(),
                own => format!(", hostname: {own}"),
            };
            format!(
                "{{addresses: ['{address}'], nodeName: n{node}{hostname}, conditions: {{{conditions}}}}}"
            )
        });
        pods.collect::<Vec<_>>().join(", ")
    };
    let slice = |family: &str, endpoints: &str| {
        format!(
            "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-{}, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}
addressType: {family}
ports: [{{name: http, port: 8080}}]
endpoints: [{endpoints}]
",
            family.to_lowercase()
        )
    };
    format!(
        "{NODES}---
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop, annotations: {{{annotations}}}}}
spec: {{clusterIP: None, ports: [{{name: http, port: 80}}]}}
{}{}",
        slice(
            "IPv4",
            &endpoints(v4, &|node, last| format!("10.244.{node}.{last}"))
        ),
        slice(
            "IPv6",
            &endpoints(v6, &|node, last| format!("fd00:{node}::{last}"))
        )
    )
}

/// The hosts and the addresses in an SRV answer.
fn named(dns: &mut Dns, question: &str) -> (BTreeSet<String>, BTreeSet<IpAddr>) {
    let name = format!("{question}{CART}");
    let answer = dns.ask_from(CLIENT, &name, RecordType::SRV).unwrap();
    let hosts = answer.records.iter().map(|record| match &record.data {
        RData::SRV(srv) => srv.target.to_string().replace(&format!(".{CART}"), ""),
        other => other.to_string(),
    });
    let addresses = answer.additionals.iter().filter_map(address);
    (hosts.collect(), addresses.collect())
}

/// Checks each of ten SRV answers.
#[track_caller]
fn check(yaml: &str, hosts: &[&str], addresses: &[&str]) {
    let hosts: BTreeSet<String> = hosts.iter().map(ToString::to_string).collect();
    let addresses = addresses.iter().map(|address| address.parse().unwrap());
    let expected = (hosts, addresses.collect());
    let mut dns = Dns::of(yaml);
    for question in QUESTIONS {
        for _ in 0..10 {
            assert_eq!(named(&mut dns, question), expected, "{question}");
        }
    }
}

#[test]
fn the_nearest_level_of_any_family_is_named() {
    let near = (1, "cart-0", "");
    let far = (3, "cart-1", "");
    check(
        &cart(NEAREST, &[near, far], &[far]),
        &["cart-0"],
        &["10.244.1.20"],
    );
    check(
        &cart(NEAREST, &[far], &[near, far]),
        &["cart-0"],
        &["fd00:1::20"],
    );
    check(
        &cart(NEAREST, &[(1, "", "")], &[(3, "", "")]),
        &["10-244-1-20"],
        &["10.244.1.20"],
    );
    check(
        &cart(NEAREST, &[near], &[near]),
        &["cart-0"],
        &["10.244.1.20", "fd00:1::20"],
    );
    check(&cart(NEAREST, &[], &[far]), &["cart-1"], &["fd00:3::20"]);
}

/// Each pod has one of the families.
#[test]
fn pods_of_one_level_are_named_whatever_family_they_have() {
    check(
        &cart(NEAREST, &[(1, "cart-0", "")], &[(1, "cart-1", "")]),
        &["cart-0", "cart-1"],
        &["10.244.1.20", "fd00:1::20"],
    );
}

#[test]
fn a_drained_endpoint_is_not_named_because_its_family_has_no_other() {
    let near = (1, "cart-0", "");
    let drained = (3, "cart-1", "");
    let only_v6 = (3, "cart-2", "");
    for policy in ["", NEAREST, "topology.ipvs-topo.io/weights: 'zone=1,*=1'"] {
        for v6 in [&[drained][..], &[only_v6], &[drained, only_v6]] {
            let yaml = cart(policy, &[near, drained], v6) + DRAIN;
            check(&yaml, &["cart-0"], &["10.244.1.20"]);
        }
    }
    check(
        &(cart("", &[drained], &[near, drained]) + DRAIN),
        &["cart-0"],
        &["fd00:1::20"],
    );
    check(
        &(cart("", &[drained], &[drained]) + DRAIN),
        &["cart-1"],
        &["10.244.3.20", "fd00:3::20"],
    );
}

#[test]
fn a_pod_that_terminates_in_one_family_is_not_named_beside_others_under_a_policy() {
    let policy = "topology.ipvs-topo.io/keys: 'node,zone,*'";
    let ready = |hostname| (1, hostname, "");
    let terminating = |hostname| (1, hostname, TERMINATING);
    check(
        &cart(
            policy,
            &[ready("cart-0"), terminating("cart-1")],
            &[ready("cart-1")],
        ),
        &["cart-0"],
        &["10.244.1.20"],
    );
    check(
        &cart(policy, &[terminating("cart-0")], &[ready("cart-1")]),
        &["cart-1"],
        &["fd00:1::20"],
    );
    check(
        &cart(policy, &[terminating("cart-0")], &[ready("cart-0")]),
        &["cart-0"],
        &["fd00:1::20"],
    );
}

#[test]
fn without_a_policy_a_pod_is_named_if_it_is_ready_in_one_family() {
    let (ready, terminating) = ((1, "cart-1", ""), (1, "cart-1", TERMINATING));
    check(
        &cart("", &[(1, "cart-0", ""), terminating], &[ready]),
        &["cart-0", "cart-1"],
        &["10.244.1.20", "fd00:1::20"],
    );
}

#[test]
fn answers_name_one_level_with_its_share_although_the_weights_of_the_families_differ() {
    let policy = "topology.ipvs-topo.io/weights: 'node=80,*=20'";
    let far = [(2, "cart-1", ""), (3, "cart-2", ""), (3, "cart-3", "")];
    let near = (1, "cart-0", "");
    let v4 = [near, far[0]];
    let v6 = [near, far[0], far[1], far[2]];
    let mut dns = Dns::of(&cart(policy, &v4, &v6));
    for question in QUESTIONS {
        let mut counts = BTreeMap::<_, u32>::new();
        for _ in 0..100 {
            let (hosts, _) = named(&mut dns, question);
            *counts.entry(Vec::from_iter(hosts)).or_default() += 1;
        }
        let near = vec!["cart-0".to_owned()];
        let far = ["cart-1", "cart-2", "cart-3"].map(str::to_owned).to_vec();
        assert_eq!(counts, BTreeMap::from([(near, 80), (far, 20)]));
    }
}

fn pod() -> impl Strategy<Value = Pod> {
    let hostnames = select(&["", "cart-0", "cart-1", "cart-2", "cart-3"][..]);
    let conditions = prop_oneof![4 => Just(""), 1 => Just(TERMINATING), 1 => Just("ready: false")];
    (1..=3_u8, hostnames, conditions)
}

fn yaml() -> impl Strategy<Value = String> {
    let policies = [
        "",
        NEAREST,
        "topology.ipvs-topo.io/weights: 'node=80,zone=15,*=5'",
        "topology.ipvs-topo.io/keys: 'zone'",
    ];
    let pods = || proptest::collection::vec(pod(), 0..5);
    (select(policies.to_vec()), pods(), pods(), any::<bool>()).prop_map(
        |(policy, v4, v6, drained)| {
            let drain = if drained { DRAIN } else { "" };
            cart(policy, &v4, &v6) + drain
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// One cycle of SRV answers holds the addresses of each level as often as the explanation says.
    #[test]
    fn a_cycle_of_srv_answers_has_the_levels_that_an_explanation_shows(yaml in yaml()) {
        let mut dns = Dns::of(&yaml);
        let me = viewpoint(&"n1".into(), NOW);
        let servers = resolve_headless(&dns.snapshot, &me, &ObjectName::new("shop", "cart")).servers;
        let of_port = servers.iter().filter(|server| server.port_of_slices().is_some());
        let cycles = of_port.map(|server| AnswerCycle::of_server(&dns.snapshot, server, &servers));
        let cycles: Vec<AnswerCycle> = cycles.collect();
        let mut expected = BTreeMap::<_, (u64, BTreeSet<IpAddr>)>::new();
        for level in cycles.iter().flat_map(|cycle| &cycle.levels) {
            let (answers, addresses) = expected.entry(level.key.clone()).or_default();
            *answers = level.answers;
            addresses.extend(level.endpoints.iter().map(|(address, _)| *address));
        }
        let count = cycles.first().map_or(0, |cycle| cycle.answers);
        let mut answered = BTreeMap::<BTreeSet<IpAddr>, u64>::new();
        for _ in 0..count {
            let (_, addresses) = named(&mut dns, "_http._tcp.");
            *answered.entry(addresses).or_default() += 1;
        }
        let expected = expected.into_values().map(|(answers, addresses)| (addresses, answers));
        prop_assert_eq!(answered, expected.collect::<BTreeMap<_, _>>(), "{}", yaml);
    }
}
