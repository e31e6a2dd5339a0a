//! The cluster figures of the reference (8.5). Resolving one Node of a group gives the result of
//! all its Nodes.

mod grouped;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use cluster::source::{Options, read_text};
use topology_core::model::Service;
use topology_core::policy::{Mode, Policy, Residual};
use topology_core::resolve::{Viewpoint, resolve};
use topology_core::snapshot::Snapshot;

use super::cluster_flows::{ClusterFlows, Comparison, FlowInput};
use super::demand::Demand;
use super::figures::Figures;
use super::flow::flows;
use super::group::{Client, Group, Grouping};
use super::node_zones::NodeZones;

/// Zones of four Nodes, each with the given number of endpoints; the Service has `annotations`.
pub(crate) fn cluster(endpoints: &[usize], annotations: &[(&str, &str)]) -> Snapshot {
    let mut text = String::new();
    let mut addresses = String::new();
    for (zone, count) in endpoints.iter().enumerate() {
        for node in 0..4 {
            let _written = write!(
                text,
                "kind: Node\napiVersion: v1\nmetadata: {{name: n{zone}{node}, labels: {{topology.kubernetes.io/zone: z{zone}}}}}\nstatus: {{allocatable: {{cpu: \"4\"}}}}\n---\n"
            );
        }
        for number in 0..*count {
            let _written = writeln!(
                addresses,
                "- {{addresses: [10.244.{zone}.{}], nodeName: n{zone}{}}}",
                number + 1,
                number % 2
            );
        }
    }
    let mut lines = String::new();
    for (key, value) in annotations {
        let _written = writeln!(lines, "    topology.ipvs-topo.io/{key}: \"{value}\"");
    }
    let _written = write!(
        text,
        "kind: Service\napiVersion: v1\nmetadata:\n  name: s\n  namespace: t\n  annotations:\n    x: y\n{lines}\
         spec: {{clusterIP: 10.96.0.1, ports: [{{name: http, port: 80}}]}}\n---\n\
         kind: EndpointSlice\napiVersion: discovery.k8s.io/v1\nmetadata: {{name: s-1, namespace: t, labels: {{kubernetes.io/service-name: s}}}}\n\
         addressType: IPv4\nports: [{{name: http, port: 8080}}]\nendpoints:\n{addresses}"
    );
    let loaded = read_text("test.yaml", text.as_bytes(), &Options::default()).unwrap();
    assert_eq!(loaded.warnings, [], "{text}");
    loaded.snapshot
}

/// The present figures, and those of the other mechanisms by name.
fn simulate(snapshot: &Snapshot) -> (Figures, BTreeMap<&'static str, Figures>) {
    let node_zones = NodeZones::of(snapshot);
    let demand = Demand::even(&node_zones);
    let flow_input = FlowInput {
        node_zones: &node_zones,
        demand: &demand,
        me: &Viewpoint::new(""),
    };
    let names: Vec<_> = snapshot
        .services()
        .map(|service| service.name.clone())
        .collect();
    let cluster_flows = ClusterFlows::of(&flow_input, snapshot, &names, || ());
    let comparison = Comparison::of(&flow_input, snapshot, &cluster_flows, || ());
    let figures = |sum: &super::figures::Sum| sum.figures(&node_zones, false, None);
    let others = super::baseline::Baseline::ALL.iter().zip(&comparison.sums);
    (
        figures(&cluster_flows.sum),
        others
            .map(|(baseline, sum)| (baseline.name(), figures(sum)))
            .collect(),
    )
}

#[track_caller]
fn assert_facts(figures: &Figures, in_zone: f64, least: f64, most: f64) {
    let near = |left: f64, right: f64| (left - right).abs() < 0.005;
    let found = (
        figures.in_zone,
        figures.load_min.unwrap(),
        figures.load_max.unwrap(),
    );
    assert!(
        near(found.0, in_zone) && near(found.1, least) && near(found.2, most),
        "{found:?}, expected {:?}",
        (in_zone, least, most)
    );
}

#[test]
fn facts_8_5_prefer_close_and_uniform_over_2_5_5() {
    let (close, others) = simulate(&cluster(&[2, 5, 5], &[("keys", "zone,*")]));
    assert_facts(&close, 1.0, 0.8, 2.0);
    assert_facts(&others["uniform"], 1.0 / 3.0, 1.0, 1.0);
    assert_facts(&others["topologyKeys"], 1.0, 0.8, 2.0);
    assert_facts(&others["PreferSameZone"], 1.0, 0.8, 2.0);
    assert_eq!((close.overloaded, close.endpoints), (2, 12));
}

#[test]
fn topology_keys_are_compared_with_the_levels_of_a_policy_object() {
    let of = |levels: &str| {
        let policy = format!(
            "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: ClusterTopologyPolicy\nmetadata: {{name: p}}\nspec: {levels}\n"
        );
        let mut snapshot = cluster(&[2, 5, 5], &[]);
        let read = read_text("p.yaml", policy.as_bytes(), &Options::default()).unwrap();
        assert_eq!(read.warnings, []);
        for policy in read.snapshot.policies() {
            snapshot.set_policy(policy.clone());
        }
        let (_, others) = simulate(&snapshot);
        others["topologyKeys"].clone()
    };
    let zones = of("{mode: Weighted, levels: [{key: zone, weight: 1}, {any: true, weight: 1}]}");
    assert_facts(&zones, 1.0, 0.8, 2.0);
    let anywhere = of("{mode: None}");
    assert_facts(&anywhere, 1.0 / 3.0, 1.0, 1.0);
    let own_node = of("{mode: Hard, levels: [{key: node}]}");
    assert!(own_node.refused > 0.4, "{own_node:?}");
}

#[test]
fn facts_8_5_prefer_close_over_4_4_3() {
    let (close, _) = simulate(&cluster(&[4, 4, 3], &[("keys", "zone,*")]));
    assert_facts(&close, 1.0, 11.0 / 12.0, 11.0 / 9.0);
}

/// The policy of the only Service, after `change`.
fn with_policy(mut snapshot: Snapshot, change: impl FnOnce(&mut Policy)) -> Snapshot {
    let mut service = Service::clone(snapshot.services().next().unwrap());
    change(Arc::make_mut(service.policy.as_mut().unwrap()));
    snapshot.set_service(service);
    snapshot
}

/// Zones with the given numbers of endpoints, and a policy with the levels zone and any.
pub(crate) fn within(endpoints: &[usize], change: impl FnOnce(&mut Policy)) -> Snapshot {
    with_policy(cluster(endpoints, &[("keys", "zone,*")]), change)
}

#[test]
fn facts_8_5_the_cap_over_2_5_5() {
    for (cap, in_zone, most, least) in [
        (0, 5.0 / 6.0, 1.0, 1.0),
        (20, 13.0 / 15.0, 1.2, 0.96),
        (100, 1.0, 2.0, 0.8),
    ] {
        let (figures, _) = simulate(&within(&[2, 5, 5], |policy| {
            policy.max_overload = Some(cap);
        }));
        assert_facts(&figures, in_zone, least, most);
    }
}

#[test]
fn facts_8_5_the_cap_over_4_4_3() {
    let (figures, _) = simulate(&within(&[4, 4, 3], |policy| {
        policy.max_overload = Some(20);
    }));
    assert!((figures.in_zone - 0.994).abs() < 0.001, "{figures:?}");
    assert!(
        (figures.load_max.unwrap() - 1.2).abs() < 0.005,
        "{figures:?}"
    );
}

#[test]
fn facts_8_5_residual_by_capacity_evens_2_2_8_and_an_even_one_does_not() {
    let balanced = |residual| {
        move |policy: &mut Policy| {
            policy.mode = Mode::Balanced;
            policy.max_overload = Some(0);
            policy.residual = residual;
        }
    };
    let (capacity, _) = simulate(&within(&[2, 2, 8], balanced(Residual::Capacity)));
    assert!(
        (capacity.load_max.unwrap() - 1.0).abs() < 0.01,
        "{capacity:?}"
    );
    assert!(
        (capacity.load_min.unwrap() - 1.0).abs() < 0.01,
        "{capacity:?}"
    );
    let (even, _) = simulate(&within(&[2, 2, 8], balanced(Residual::Even)));
    assert!((even.load_max.unwrap() - 1.2).abs() < 0.01, "{even:?}");
}

#[test]
fn facts_8_5_hints_auto_deal_2_5_5_out_and_give_up_on_4_4_3() {
    let (_, others) = simulate(&cluster(&[2, 5, 5], &[]));
    assert_facts(&others["hints Auto"], 5.0 / 6.0, 1.0, 1.0);
    let (_, others) = simulate(&cluster(&[4, 4, 3], &[]));
    assert_facts(&others["hints Auto"], 1.0 / 3.0, 1.0, 1.0);
}

#[test]
fn clients_without_an_endpoint_are_refused_and_the_empty_level_is_named() {
    let snapshot = cluster(&[0, 2, 2], &[("keys", "zone")]);
    let (hard, _) = simulate(&snapshot);
    assert!(
        (hard.refused - 1.0 / 3.0).abs() < 1e-9 && hard.cross_zone < 1e-9,
        "{hard:?}"
    );
    let flow = &flows_one_by_one(&snapshot)[0];
    assert_eq!(flow.empty.len(), 1);
    assert_eq!(flow.empty[0].0, "zone");
}

#[test]
fn one_node_of_a_group_represents_all() {
    let far = cluster(&[1, 3, 9], &[("weights", "zone=99,*=1")]);
    let mut cases = vec![with_policy(far, |policy| {
        policy.subset_max_weight = Some(16);
    })];
    cases.extend(
        [
            vec![("weights", "node=70,zone=20,*=10")],
            vec![("keys", "zone,*")],
            vec![("keys", "node")],
            vec![],
        ]
        .map(|annotations| cluster(&[1, 3, 2], &annotations)),
    );
    for snapshot in cases {
        let node_zones = NodeZones::of(&snapshot);
        let service = snapshot.services().next().unwrap();
        let parts = vec![1.0 / 12.0; 12];
        let groups = Grouping::default().groups(&snapshot, &node_zones, service, &parts);
        assert!(groups.len() < 12, "{groups:?}");
        let grouped = flows(
            &snapshot,
            &node_zones,
            &Viewpoint::new(""),
            &service.name,
            &groups,
        );
        let single = flows_one_by_one(&snapshot);
        for (left, right) in grouped[0].endpoints.iter().zip(&single[0].endpoints) {
            assert!(
                (left.relative - right.relative).abs() < 1e-9,
                "{left:?} {right:?}"
            );
        }
    }
}

/// Resolves every Node by itself.
fn flows_one_by_one(snapshot: &Snapshot) -> Vec<super::flow::Flow> {
    let node_zones = NodeZones::of(snapshot);
    let each = 1.0 / f64::from(u32::try_from(node_zones.nodes.len()).unwrap());
    let group = |place: &super::node_zones::NodeZone| Group {
        zone: place.zone,
        clients: vec![Client {
            node: place.name.clone(),
            part: each,
        }],
    };
    let groups: Vec<Group> = node_zones.nodes.iter().map(group).collect();
    let service = &snapshot.services().next().unwrap().name;
    assert!(
        !resolve(snapshot, &Viewpoint::new("n00"), service)
            .servers
            .is_empty()
    );
    flows(snapshot, &node_zones, &Viewpoint::new(""), service, &groups)
}
