//! The map stands for the Nodes as long as it tells enough.

use std::time::Duration;

use cluster::api::MapGap;
use serde_json::{Value, json};

use crate::fake::{Deed, Fake, Followed, MAPS, NODES, POLICIES, SERVICES, service};

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

/// A part of the map: each Node with its zone and rack, if the map tells racks.
fn map(name: &str, nodes: &[(&str, &str, Option<&str>)]) -> Value {
    let mut keys = json!([
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "topology.ipvs-topo.io/capacity",
    ]);
    let mut told = json!({});
    for (node, zone, rack) in nodes {
        let mut values = json!([zone, "", ""]);
        values.as_array_mut().unwrap().extend(rack.map(Value::from));
        let address = format!("192.168.0.{}", &node[1..]);
        told[*node] = json!({"v": values, "ips": [address], "cpuMilli": 4000, "ready": true});
    }
    if nodes.iter().any(|(_, _, rack)| rack.is_some()) {
        keys.as_array_mut().unwrap().push(RACK.into());
    }
    json!({"metadata": {"name": name}, "spec": {"shard": 0, "keys": keys, "nodes": told}})
}

fn by_rack() -> Value {
    let levels = json!([{"key": RACK}]);
    json!({"metadata": {"name": "near"}, "spec": {"mode": "Hard", "levels": levels}})
}

/// Three Nodes, of which the map tells.
fn mapped() -> Fake {
    let fake = Fake::new();
    for (name, zone) in [("n1", "a"), ("n2", "a"), ("n3", "b")] {
        fake.add(NODES, node(name, zone));
    }
    fake
}

const TOLD: [(&str, &str, Option<&str>); 3] =
    [("n1", "a", None), ("n2", "a", None), ("n3", "b", None)];

/// Every Node with a label, and the address that is known of it.
fn known(followed: &Followed, label: &str) -> Vec<String> {
    let nodes = followed.index.snapshot().nodes();
    let mut known: Vec<String> = nodes
        .map(|node| {
            let value = node.labels.get(label).map_or("-", |value| &**value);
            format!(
                "{} {value} {:?} {}",
                node.name, node.addresses, node.cpu_milli
            )
        })
        .collect();
    known.sort();
    known
}

/// Whether the last request for Nodes was for all of them.
fn reads_all(fake: &Fake) -> bool {
    !fake
        .requests(NODES)
        .last()
        .unwrap()
        .contains("fieldSelector")
}

fn policies(followed: &Followed) -> usize {
    followed.index.snapshot().policies().count()
}

#[tokio::test(start_paused = true)]
async fn other_nodes_are_known_from_the_map_and_only_ones_own_is_read() {
    let fake = mapped();
    fake.add(MAPS, map("shard-0", &TOLD));
    let mut followed = Followed::mapped("n1");
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        MINUTE,
        move |second, followed| match second {
            1 => {
                assert!(followed.is_whole());
                let zones = known(followed, "topology.kubernetes.io/zone");
                let expected = [
                    "n1 a [192.168.0.1] 4000",
                    "n2 a [192.168.0.2] 4000",
                    "n3 b [192.168.0.3] 4000",
                ];
                assert_eq!(zones, expected);
                let pools = known(followed, "pool");
                assert!(pools[0].starts_with("n1 web"), "{pools:?}");
                assert!(
                    pools[1].starts_with("n2 -"),
                    "only what the map tells: {pools:?}"
                );
                followed.batches.clear();
            }
            // What happens to another Node is heard of through the map alone.
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
        known(&followed, "topology.kubernetes.io/zone"),
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
async fn without_a_map_the_nodes_are_read_until_there_is_one() {
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
                    assert!(followed.is_whole(), "at once, as nothing waits");
                    assert!(reads_all(&server));
                    assert_eq!(known(followed, "pool").len(), 3);
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
                    server.add(MAPS, map("shard-0", &TOLD));
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
        assert_eq!(known(&followed, "pool"), expected);
        assert_eq!(followed.state(THE_MAP).map_gap, None);
        assert_eq!(followed.index.warnings().count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_map_that_nobody_may_read_or_that_is_of_another_time_is_no_map() {
    let forbidden = Deed::Refuse(403, "Forbidden");
    let stranger: &[_] = &[("n2", "a", None)];
    for (deed, told) in [(Some(forbidden), &TOLD[..]), (None, stranger)] {
        let fake = mapped();
        fake.add(MAPS, map("shard-0", told));
        if let Some(deed) = deed {
            fake.world(|world| world.always.insert(MAPS.to_owned(), deed));
        }
        let followed = &mut Followed::mapped("n1");
        fake.follow_with(followed, MINUTE, |_, _| {}).await;
        assert!(followed.is_whole());
        assert!(reads_all(&fake));
        assert_eq!(known(followed, "pool").len(), 3);
        assert!(followed.state(THE_MAP).map_gap.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn what_goes_by_a_label_waits_until_the_map_tells_it() {
    let fake = mapped();
    fake.add(MAPS, map("shard-0", &TOLD));
    let mut followed = Followed::mapped("n1");
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        5 * MINUTE,
        move |second, followed| match second {
            2 => server.add(POLICIES, by_rack()),
            9 => {
                assert_eq!(
                    policies(followed),
                    0,
                    "nobody knows yet which Nodes are near"
                );
                let racks = [
                    ("n1", "a", Some("r1")),
                    ("n2", "a", Some("r1")),
                    ("n3", "b", Some("r2")),
                ];
                server.add(MAPS, map("shard-0", &racks));
            }
            11 => {
                assert_eq!(policies(followed), 1);
                let racks = known(followed, RACK);
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
            .any(|one| !one.contains("fieldSelector"))
    );
    assert_eq!(followed.index.warnings().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_label_that_the_map_does_not_come_to_tell_makes_the_nodes_be_read() {
    let fake = mapped();
    fake.add(MAPS, map("shard-0", &TOLD));
    let mut followed = Followed::mapped("n1");
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        10 * MINUTE,
        move |second, followed| match second {
            2 => server.add(POLICIES, by_rack()),
            55 => {
                assert!(!reads_all(&server), "the controller may take a minute");
                assert_eq!(policies(followed), 0);
            }
            125 => {
                assert!(reads_all(&server));
                assert_eq!(policies(followed), 1);
                assert_eq!(known(followed, "pool").len(), 3);
                let lack = followed.state(THE_MAP).map_gap.unwrap().to_string();
                assert_eq!(
                    lack,
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
    assert!(!reads_all(&fake), "nothing goes by it any more");
    assert_eq!(policies(&followed), 0);
    assert_eq!(known(&followed, "pool")[1], "n2 - [192.168.0.2] 4000");
}

#[tokio::test(start_paused = true)]
async fn d13_an_annotation_with_a_label_outside_the_map_makes_nobody_read_all_nodes() {
    let fake = mapped();
    fake.add(MAPS, map("shard-0", &TOLD));
    let mut asking = service("cart");
    asking["metadata"]["annotations"] = json!({"topology.ipvs-topo.io/keys": format!("{RACK},*")});
    fake.add(SERVICES, asking.clone());
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
                assert_eq!(keys(followed), 0, "every endpoint alike until then");
                let words: Vec<String> =
                    followed.index.warnings().map(ToString::to_string).collect();
                assert!(
                    words[0].starts_with("Service shop/cart: uses a label"),
                    "{words:?}"
                );
            }
            3..300 if second % 2 == 1 => server.remove(SERVICES, "cart"),
            3..300 => server.add(SERVICES, asking.clone()),
            300 => {
                server.add(SERVICES, asking.clone());
                let racks = [("n1", "a", Some("r1")), ("n2", "a", Some("r1"))];
                server.add(MAPS, map("shard-0", &racks));
            }
            302 => {
                assert_eq!(keys(followed), 1);
                assert!(known(followed, RACK)[1].starts_with("n2 r1"));
            }
            _ => {}
        },
    )
    .await;
    let requests = fake.requests(NODES);
    assert!(
        requests.iter().all(|one| one.contains("fieldSelector")),
        "{requests:?}"
    );
    assert_eq!(followed.index.warnings().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_taken_away_and_given_back_makes_two_turns() {
    let fake = mapped();
    fake.add(MAPS, map("shard-0", &TOLD));
    let mut followed = Followed::mapped("n1");
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        10 * MINUTE,
        move |second, followed| match second {
            20 => {
                let forbidden = Deed::Refuse(403, "Forbidden");
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
    let mut turns: Vec<bool> = requests.map(|one| one.contains("fieldSelector")).collect();
    turns.dedup();
    assert_eq!(turns, [true, false, true]);
}

#[tokio::test(start_paused = true)]
async fn d13_a_policy_of_a_namespace_with_a_label_outside_the_map_is_named_as_waiting() {
    let fake = mapped();
    fake.add(MAPS, map("shard-0", &TOLD));
    let mut followed = Followed::mapped("n1");
    let server = fake.clone();
    let spec = json!({"mode": "Hard", "levels": [{"key": RACK}]});
    let near = json!({"metadata": {"name": "near", "namespace": "shop"}, "spec": spec});
    fake.follow_with(&mut followed, MINUTE, move |second, _| {
        if second == 2 {
            server.add(
                "/apis/topology.ipvs-topo.io/v1alpha1/topologypolicies",
                near.clone(),
            );
        }
    })
    .await;
    assert_eq!(followed.index.snapshot().policies().count(), 0);
    let words: Vec<String> = followed.index.warnings().map(ToString::to_string).collect();
    assert!(
        words[0].starts_with("TopologyPolicy shop/near: uses a label"),
        "{words:?}"
    );
}
