//! An agent uses the `TopologyMap` instead of the other Nodes while the map has what it needs.

use std::time::Duration;

use cluster::api::MapGap;
use serde_json::{Value, json};

use crate::fake::{Fake, Followed, MAPS, NODES, POLICIES, Reply, SERVICES, service};

const MINUTE: Duration = Duration::from_secs(60);
const RACK: &str = "example.com/rack";
const THE_MAP: &str = "topologymaps.topology.ipvs-topo.io";

fn node(name: &str, zone: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone, "pool": "web"}},
        "status": {
            "addresses": [{"type": "InternalIP", "address": format!("192.168.0.{}", &name[1..])}],
            "allocatable": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// A shard of the map: each Node with its zone, and its rack if the map has racks.
fn map(name: &str, nodes: &[(&str, &str, Option<&str>)]) -> Value {
    let mut keys = json!([
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "topology.ipvs-topo.io/capacity",
    ]);
    let mut entries = json!({});
    for (node, zone, rack) in nodes {
        let mut values = json!([zone, "", ""]);
        values.as_array_mut().unwrap().extend(rack.map(Value::from));
        let address = format!("192.168.0.{}", &node[1..]);
        entries[*node] = json!({"v": values, "ips": [address], "cpuMilli": 4000, "ready": true});
    }
    if nodes.iter().any(|(_, _, rack)| rack.is_some()) {
        keys.as_array_mut().unwrap().push(RACK.into());
    }
    json!({"metadata": {"name": name}, "spec": {"shard": 0, "keys": keys, "nodes": entries}})
}

fn rack_policy() -> Value {
    let levels = json!([{"key": RACK}]);
    json!({"metadata": {"name": "near"}, "spec": {"mode": "Hard", "levels": levels}})
}

/// A policy for clients on Nodes with a rack.
fn policy_for_racks() -> Value {
    let selector = json!({"matchExpressions": [{"key": RACK, "operator": "Exists"}]});
    let levels = json!([{"key": "topology.kubernetes.io/zone"}]);
    let spec = json!({"mode": "Hard", "levels": levels, "nodeSelector": selector});
    json!({"metadata": {"name": "near"}, "spec": spec})
}

/// The Nodes that a program reads from this map.
async fn followed_map(map: Value) -> Followed {
    let fake = mapped();
    fake.add(MAPS, map);
    let mut followed = Followed::mapped("n1");
    fake.follow_with(&mut followed, MINUTE, |_, _| {}).await;
    followed
}

fn warnings(followed: &Followed) -> Vec<String> {
    followed.index.warnings().map(ToString::to_string).collect()
}

/// A server with the three Nodes of `MAP_NODES`.
fn mapped() -> Fake {
    let fake = Fake::new();
    for (name, zone) in [("n1", "a"), ("n2", "a"), ("n3", "b")] {
        fake.add(NODES, node(name, zone));
    }
    fake
}

const MAP_NODES: [(&str, &str, Option<&str>); 3] =
    [("n1", "a", None), ("n2", "a", None), ("n3", "b", None)];

/// Name, value of the label, addresses and CPU of every Node in the index.
fn nodes_with(followed: &Followed, label: &str) -> Vec<String> {
    let nodes = followed.index.snapshot().nodes();
    let mut lines: Vec<String> = nodes
        .map(|node| {
            let value = node.labels.get(label).map_or("-", |value| &**value);
            format!(
                "{} {value} {:?} {}",
                node.name, node.addresses, node.cpu_milli
            )
        })
        .collect();
    lines.sort();
    lines
}

/// Whether the last request for Nodes was for all of them.
fn reads_all(fake: &Fake) -> bool {
    !fake
        .requests(NODES)
        .last()
        .unwrap()
        .contains("fieldSelector")
}

fn policy_count(followed: &Followed) -> usize {
    followed.index.snapshot().policies().count()
}

#[tokio::test(start_paused = true)]
async fn other_nodes_come_from_the_map_and_only_the_own_node_is_watched() {
    let fake = mapped();
    fake.add(MAPS, map("shard-0", &MAP_NODES));
    let mut followed = Followed::mapped("n1");
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        MINUTE,
        move |second, followed| match second {
            1 => {
                assert!(followed.is_whole());
                let zones = nodes_with(followed, "topology.kubernetes.io/zone");
                let expected = [
                    "n1 a [192.168.0.1] 4000",
                    "n2 a [192.168.0.2] 4000",
                    "n3 b [192.168.0.3] 4000",
                ];
                assert_eq!(zones, expected);
                let pools = nodes_with(followed, "pool");
                assert!(pools[0].starts_with("n1 web"), "{pools:?}");
                assert!(
                    pools[1].starts_with("n2 -"),
                    "only labels of the map: {pools:?}"
                );
                followed.batches.clear();
            }
            // The agent does not watch other Nodes: only a new map changes them.
            2..20 => server.add(NODES, node("n2", "c")),
            20 => assert_eq!(followed.batches, []),
            21 => server.add(
                MAPS,
                map("shard-0", &[("n1", "a", None), ("n2", "c", None)]),
            ),
            _ => {}
        },
    )
    .await;
    let expected = ["n1 a [192.168.0.1] 4000", "n2 c [192.168.0.2] 4000"];
    assert_eq!(
        nodes_with(&followed, "topology.kubernetes.io/zone"),
        expected,
        "n3 is gone"
    );
    assert_eq!(followed.batches.len(), 1, "{:?}", followed.batches);
    assert_eq!(fake.requests(NODES).len(), 1);
    assert!(!reads_all(&fake));
    assert_eq!(followed.state(THE_MAP).map_gap, None);
    assert_eq!(followed.state("nodes").objects, 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_map_all_nodes_are_read_until_there_is_one() {
    for unknown in [false, true] {
        let fake = mapped();
        if unknown {
            fake.world(|world| world.unknown.push(MAPS.to_owned()));
        }
        let mut followed = Followed::mapped("n1");
        let server = fake.clone();
        fake.follow_with(
            &mut followed,
            MINUTE,
            move |second, followed| match second {
                2 => {
                    assert!(followed.is_whole(), "the agent does not wait for a map");
                    assert!(reads_all(&server));
                    assert_eq!(nodes_with(followed, "pool").len(), 3);
                    assert_eq!(followed.state(THE_MAP).map_gap, Some(MapGap::Map));
                    let warnings: Vec<String> =
                        followed.index.warnings().map(ToString::to_string).collect();
                    assert!(
                        warnings[0].contains("there is no TopologyMap"),
                        "{warnings:?}"
                    );
                    server.world(|world| world.unknown.clear());
                }
                3 => {
                    server.add(MAPS, map("shard-0", &MAP_NODES));
                }
                _ => {}
            },
        )
        .await;
        assert!(!reads_all(&fake), "{:?}", fake.requests(NODES));
        let expected = [
            "n1 web [192.168.0.1] 4000",
            "n2 - [192.168.0.2] 4000",
            "n3 - [192.168.0.3] 4000",
        ];
        assert_eq!(nodes_with(&followed, "pool"), expected);
        assert_eq!(followed.state(THE_MAP).map_gap, None);
        assert_eq!(followed.index.warnings().count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn all_nodes_are_read_if_the_map_is_forbidden_or_without_the_own_node() {
    let forbidden = Reply::Refuse(403, "Forbidden");
    let without_own: &[_] = &[("n2", "a", None)];
    for (reply, nodes) in [(Some(forbidden), &MAP_NODES[..]), (None, without_own)] {
        let fake = mapped();
        fake.add(MAPS, map("shard-0", nodes));
        if let Some(reply) = reply {
            fake.world(|world| world.always.insert(MAPS.to_owned(), reply));
        }
        let followed = &mut Followed::mapped("n1");
        fake.follow_with(followed, MINUTE, |_, _| {}).await;
        assert!(followed.is_whole());
        assert!(reads_all(&fake));
        assert_eq!(nodes_with(followed, "pool").len(), 3);
        assert!(followed.state(THE_MAP).map_gap.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_waits_until_the_map_has_its_label() {
    let fake = mapped();
    fake.add(MAPS, map("shard-0", &MAP_NODES));
    let mut followed = Followed::mapped("n1");
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        5 * MINUTE,
        move |second, followed| match second {
            2 => server.add(POLICIES, rack_policy()),
            9 => {
                assert_eq!(policy_count(followed), 0, "the racks are not known yet");
                let racks = [
                    ("n1", "a", Some("r1")),
                    ("n2", "a", Some("r1")),
                    ("n3", "b", Some("r2")),
                ];
                server.add(MAPS, map("shard-0", &racks));
            }
            11 => {
                assert_eq!(policy_count(followed), 1);
                let racks = nodes_with(followed, RACK);
                assert!(
                    racks[1].starts_with("n2 r1") && racks[2].starts_with("n3 r2"),
                    "{racks:?}"
                );
            }
            _ => {}
        },
    )
    .await;
    assert!(
        !fake
            .requests(NODES)
            .iter()
            .any(|request| !request.contains("fieldSelector"))
    );
    assert_eq!(followed.index.warnings().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn all_nodes_are_read_if_the_map_does_not_get_the_label_of_a_cluster_policy() {
    let fake = mapped();
    fake.add(MAPS, map("shard-0", &MAP_NODES));
    let mut followed = Followed::mapped("n1");
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        10 * MINUTE,
        move |second, followed| match second {
            2 => server.add(POLICIES, rack_policy()),
            55 => {
                assert!(!reads_all(&server), "the controller may take a minute");
                assert_eq!(policy_count(followed), 0);
            }
            125 => {
                assert!(reads_all(&server));
                assert_eq!(policy_count(followed), 1);
                assert_eq!(nodes_with(followed, "pool").len(), 3);
                let gap = followed.state(THE_MAP).map_gap.unwrap().to_string();
                assert_eq!(
                    gap,
                    format!(
                        "it does not have the label {RACK}, which ClusterTopologyPolicy near uses"
                    )
                );
                server.remove(POLICIES, "near");
            }
            _ => {}
        },
    )
    .await;
    assert!(!reads_all(&fake), "no policy uses the label any more");
    assert_eq!(policy_count(&followed), 0);
    assert_eq!(nodes_with(&followed, "pool")[1], "n2 - [192.168.0.2] 4000");
}

#[tokio::test(start_paused = true)]
async fn d13_an_annotation_with_a_label_outside_the_map_does_not_make_agents_read_all_nodes() {
    let fake = mapped();
    fake.add(MAPS, map("shard-0", &MAP_NODES));
    let mut annotated = service("cart");
    annotated["metadata"]["annotations"] =
        json!({"topology.ipvs-topo.io/keys": format!("{RACK},*")});
    fake.add(SERVICES, annotated.clone());
    let mut followed = Followed::mapped("n1");
    let server = fake.clone();
    let keys = |followed: &Followed| {
        let service = followed.index.snapshot().services().next();
        let policy = service.and_then(|service| service.policy.as_ref());
        policy.map_or(0, |policy| policy.label_keys().count())
    };
    fake.follow_with(
        &mut followed,
        10 * MINUTE,
        move |second, followed| match second {
            2 => {
                assert!(followed.is_whole());
                assert_eq!(followed.services(), ["cart"]);
                assert_eq!(keys(followed), 0, "the policy is not used until then");
                assert_eq!(followed.index.warnings().count(), 0);
            }
            121 => {
                let warnings: Vec<String> =
                    followed.index.warnings().map(ToString::to_string).collect();
                assert!(
                    warnings[0].starts_with("Service shop/cart: uses a label"),
                    "{warnings:?}"
                );
            }
            130..300 if second % 2 == 1 => server.remove(SERVICES, "cart"),
            130..300 => server.add(SERVICES, annotated.clone()),
            300 => {
                server.add(SERVICES, annotated.clone());
                let racks = [("n1", "a", Some("r1")), ("n2", "a", Some("r1"))];
                server.add(MAPS, map("shard-0", &racks));
            }
            302 => {
                assert_eq!(keys(followed), 1);
                assert!(nodes_with(followed, RACK)[1].starts_with("n2 r1"));
            }
            _ => {}
        },
    )
    .await;
    let requests = fake.requests(NODES);
    assert!(
        requests
            .iter()
            .all(|request| request.contains("fieldSelector")),
        "{requests:?}"
    );
    assert_eq!(followed.index.warnings().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn removing_and_restoring_access_to_the_map_changes_the_node_source_twice() {
    let fake = mapped();
    fake.add(MAPS, map("shard-0", &MAP_NODES));
    let mut followed = Followed::mapped("n1");
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        10 * MINUTE,
        move |second, followed| match second {
            20 => {
                let forbidden = Reply::Refuse(403, "Forbidden");
                server.world(|world| world.always.insert(MAPS.to_owned(), forbidden));
                server.end_streams(MAPS);
            }
            240 => {
                assert_eq!(followed.state(THE_MAP).map_gap, Some(MapGap::Access));
                assert!(reads_all(&server));
                server.world(|world| world.always.clear());
            }
            _ => {}
        },
    )
    .await;
    assert_eq!(followed.state(THE_MAP).map_gap, None);
    assert!(!reads_all(&fake));
    let requests = fake.requests(NODES).into_iter();
    let mut only_own: Vec<bool> = requests
        .map(|request| request.contains("fieldSelector"))
        .collect();
    only_own.dedup();
    assert_eq!(only_own, [true, false, true]);
}

#[tokio::test(start_paused = true)]
async fn d13_a_namespaced_policy_with_a_label_outside_the_map_is_reported_as_waiting() {
    let fake = mapped();
    fake.add(MAPS, map("shard-0", &MAP_NODES));
    let mut followed = Followed::mapped("n1");
    let server = fake.clone();
    let spec = json!({"mode": "Hard", "levels": [{"key": RACK}]});
    let near = json!({"metadata": {"name": "near", "namespace": "shop"}, "spec": spec});
    fake.follow_with(&mut followed, 3 * MINUTE, move |second, followed| {
        if second == 50 {
            assert_eq!(
                followed.index.warnings().count(),
                0,
                "a short wait is normal"
            );
        }
        if second == 2 {
            server.add(
                "/apis/topology.ipvs-topo.io/v1alpha1/topologypolicies",
                near.clone(),
            );
        }
    })
    .await;
    assert_eq!(followed.index.snapshot().policies().count(), 0);
    let warnings: Vec<String> = followed.index.warnings().map(ToString::to_string).collect();
    assert!(
        warnings[0].starts_with("TopologyPolicy shop/near: uses a label"),
        "{warnings:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn ranges_of_pods_come_from_the_map_and_one_that_cannot_be_parsed_is_reported_and_skipped() {
    let mut map = map("shard-0", &MAP_NODES);
    let nodes = &mut map["spec"]["nodes"];
    nodes["n2"]["podCIDRs"] = json!(["10.244.2.0/24", "fd00:10:244:2::/64"]);
    nodes["n3"]["podCIDRs"] = json!(["10.244.3.0/33", "fd00:10:244:3::/64"]);
    let followed = followed_map(map).await;
    let ranges = |name: &str| {
        let node = followed.index.snapshot().node(name).unwrap();
        let ranges: Vec<String> = node.pod_cidrs.iter().map(ToString::to_string).collect();
        ranges
    };
    assert_eq!(ranges("n2"), ["10.244.2.0/24", "fd00:10:244:2::/64"]);
    assert_eq!(ranges("n3"), ["fd00:10:244:3::/64"]);
    assert_eq!(followed.state(THE_MAP).map_gap, None);
    assert_eq!(
        warnings(&followed),
        [
            "TopologyMap shard-0: spec.nodes.n3.podCIDRs[0]: `10.244.3.0/33` is not a range of addresses and is skipped; write it as 10.244.1.0/24"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_label_with_an_empty_value_is_not_a_missing_one() {
    let racks = [
        ("n1", "a", Some("")),
        ("n2", "a", Some("")),
        ("n3", "b", Some("")),
    ];
    let mut map = map("shard-0", &racks);
    // The zone has a value.
    map["spec"]["nodes"]["n2"]["emptyLabels"] =
        json!([RACK, "topology.kubernetes.io/zone", "pool"]);
    let followed = followed_map(map).await;
    let labels = |name: &str| {
        let node = followed.index.snapshot().node(name).unwrap();
        let labels = node.labels.iter();
        let labels: Vec<String> = labels
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        labels
    };
    let zone = |name: &str| format!("topology.kubernetes.io/zone={name}");
    assert_eq!(labels("n2"), [format!("{RACK}="), zone("a")]);
    assert_eq!(labels("n3"), [zone("b")]);
    assert_eq!(warnings(&followed), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn fields_of_a_later_controller_are_ignored() {
    let mut map = map("shard-0", &MAP_NODES);
    map["spec"]["later"] = json!({"v": 1});
    map["spec"]["nodes"]["n2"]["later"] = json!([1]);
    let followed = followed_map(map).await;
    assert_eq!(followed.state(THE_MAP).map_gap, None);
    assert_eq!(warnings(&followed), [""; 0]);
    assert_eq!(nodes_with(&followed, "pool")[1], "n2 - [192.168.0.2] 4000");
}

#[tokio::test(start_paused = true)]
async fn only_a_program_for_clients_of_all_nodes_needs_the_labels_of_node_selectors() {
    for (mut followed, needs) in [
        (Followed::mapped("n1"), false),
        (Followed::mapped_for_all("n1"), true),
    ] {
        let fake = mapped();
        let mut node = node("n3", "b");
        node["metadata"]["labels"][RACK] = "".into();
        fake.replace(NODES, node);
        fake.add(MAPS, map("shard-0", &MAP_NODES));
        fake.add(POLICIES, policy_for_racks());
        let server = fake.clone();
        fake.follow_with(&mut followed, MINUTE, move |second, followed| {
            if second == 2 {
                assert!(followed.is_whole());
                assert_eq!(policy_count(followed), 1);
                assert_eq!(reads_all(&server), needs);
                let racks = nodes_with(followed, RACK);
                let of_all = if needs { "n3  [" } else { "n3 - [" };
                assert!(racks[2].starts_with(of_all), "{racks:?}");
                let gap = followed.state(THE_MAP).map_gap;
                let gap = gap.map(|gap| gap.to_string());
                let why = format!(
                    "it does not have the label {RACK}, which ClusterTopologyPolicy near uses"
                );
                assert_eq!(gap, needs.then_some(why));
                let racks = [("n1", "a", Some("")), ("n2", "a", Some("r1"))];
                let mut map = map("shard-0", &racks);
                map["spec"]["nodes"]["n1"]["emptyLabels"] = json!([RACK]);
                server.replace(MAPS, map);
            }
        })
        .await;
        assert!(!reads_all(&fake), "the map has the label");
        assert_eq!(policy_count(&followed), 1);
        assert!(nodes_with(&followed, RACK)[1].starts_with("n2 r1 ["));
    }
}
