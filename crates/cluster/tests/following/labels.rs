//! The agent keeps only the labels of other Nodes that a policy uses, and lists Nodes again when a
//! policy uses a label that was dropped.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fake::{
    DRAINS, Fake, Followed, NODES, POLICIES, Reply, SERVICES, added, bookmark, service,
};

const MINUTE: Duration = Duration::from_secs(60);
const RACK: &str = "example.com/rack";
const ROW: &str = "example.com/row";

fn node(name: &str, pool: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {RACK: "r1", ROW: "w1", "pool": pool}}})
}

fn policy(name: &str, key: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"mode": "Hard", "levels": [{"key": key}]}})
}

/// The Nodes `n1` (own), `n2` and `n3`.
fn cluster() -> Fake {
    let fake = Fake::new();
    for name in ["n1", "n2", "n3"] {
        fake.add(NODES, node(name, "web"));
    }
    fake
}

/// The label keys that are kept of `n3`.
fn kept_labels(followed: &Followed) -> Vec<String> {
    let node = followed.index.snapshot().node("n3").unwrap();
    node.labels.iter().map(|(key, _)| key.to_string()).collect()
}

fn policy_labels(followed: &Followed) -> Vec<String> {
    let policies = followed.index.snapshot().policies();
    let keys = policies.flat_map(|policy| policy.policy.label_keys());
    keys.map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn one_list_of_nodes_is_enough_at_the_start_and_changes_of_unused_labels_are_dropped() {
    let fake = cluster();
    fake.add(POLICIES, policy("near", RACK));
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        MINUTE,
        move |second, followed| match second {
            2 => {
                assert!(followed.is_whole());
                assert_eq!(policy_labels(followed), [RACK]);
                followed.batches.clear();
            }
            _ => server.add(NODES, node("n3", &second.to_string())),
        },
    )
    .await;
    assert_eq!(followed.batches, []);
    assert_eq!(kept_labels(&followed), [RACK]);
    assert_eq!(fake.requests(NODES).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn policies_with_new_labels_wait_for_one_list_of_nodes_without_a_limit() {
    let fake = cluster();
    fake.add(POLICIES, policy("near", ROW));
    let mut followed = Followed::new();
    let server = fake.clone();
    let mut annotated = service("cart");
    annotated["metadata"]["annotations"] = json!({"topology.ipvs-topo.io/keys": "pool,*"});
    fake.follow_with(
        &mut followed,
        10 * MINUTE,
        move |second, followed| match second {
            2 => {
                assert_eq!(kept_labels(followed), [ROW]);
                server.next(NODES, [Reply::Silent, Reply::Refuse(500, "")]);
                server.add(POLICIES, policy("near", RACK));
                server.add(SERVICES, annotated.clone());
            }
            80 => {
                assert_eq!(server.requests(NODES).len(), 2);
                assert_eq!(
                    (policy_labels(followed), kept_labels(followed)),
                    (vec![ROW.to_owned()], vec![ROW.to_owned()])
                );
                assert_eq!(followed.services(), ["cart"], "served without its policy");
            }
            _ => {}
        },
    )
    .await;
    assert_eq!(policy_labels(&followed), [RACK]);
    assert_eq!(followed.services(), ["cart"]);
    assert_eq!(kept_labels(&followed), [RACK, ROW, "pool"]);
    let requests = fake.requests(NODES).into_iter();
    let lists = requests.filter(|request| request.contains("sendInitialEvents"));
    assert_eq!(lists.count(), 4, "two attempts of the second list failed");
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_collection_delays_nodes_by_one_second_only() {
    let fake = cluster();
    fake.world(|world| {
        world
            .always
            .insert(DRAINS.to_owned(), Reply::Refuse(403, "Forbidden"))
    });
    let server = fake.clone();
    fake.follow_with(&mut Followed::new(), MINUTE, move |second, followed| {
        let nodes = followed.index.snapshot().nodes().count();
        assert!(second < 2 || nodes == 3, "{:?}", server.requests(NODES));
    })
    .await;
}

/// A Service whose annotation names a label that no Service named before.
fn changing(number: u32) -> Value {
    let mut service = service("changing");
    let keys = format!("example.com/k{number},*");
    service["metadata"]["annotations"] = json!({"topology.ipvs-topo.io/keys": keys});
    service
}

/// Changes the Service every 0.1 s.
fn attack(fake: &Fake) -> tokio::task::JoinHandle<()> {
    let fake = fake.clone();
    tokio::spawn(async move {
        for number in 1.. {
            tokio::time::sleep(Duration::from_millis(100)).await;
            fake.replace(SERVICES, changing(number));
        }
    })
}

#[tokio::test(start_paused = true)]
async fn d13_label_keys_that_change_all_the_time_do_not_block_the_start_or_cause_many_lists() {
    let fake = cluster();
    fake.add(SERVICES, changing(0));
    fake.add(SERVICES, service("cart"));
    fake.world(|world| {
        let slow = Duration::from_millis(300);
        world.delays.insert(NODES.to_owned(), slow);
    });
    let attack = attack(&fake);
    let mut followed = Followed::new();
    let server = fake.clone();
    let lists = move || {
        server
            .requests(NODES)
            .iter()
            .filter(|request| request.contains("sendInitialEvents"))
            .count()
    };
    let count = lists.clone();
    fake.follow_with(
        &mut followed,
        7 * MINUTE,
        move |second, followed| match second {
            5 => {
                assert!(followed.is_whole(), "{} lists", count());
                assert_eq!(followed.services(), ["cart", "changing"], "both are served");
                assert_eq!(count(), 2);
            }
            115 => assert_eq!(count(), 2, "two minutes between lists"),
            // Agents spread their lists over at most 30 s.
            185 => assert_eq!(count(), 3),
            355 => assert_eq!(count(), 3, "then four"),
            _ => {}
        },
    )
    .await;
    attack.abort();
    assert!(lists() <= 4, "{}", lists());
    let warnings: Vec<String> = followed.index.warnings().map(ToString::to_string).collect();
    assert!(
        warnings
            .iter()
            .any(|warning| warning.starts_with("Service shop/changing: uses a label")),
        "{warnings:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn d13_a_cluster_policy_does_not_wait_for_labels_of_tenants() {
    let fake = cluster();
    fake.add(SERVICES, changing(0));
    let attack = attack(&fake);
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        2 * MINUTE,
        move |second, followed| match second {
            30 => server.add(POLICIES, policy("near", "row")),
            95 => assert_eq!(policy_labels(followed), ["row"]),
            _ => {}
        },
    )
    .await;
    attack.abort();
}

/// Answers the first list of Nodes, and every later one with `reply`.
fn one_list(fake: &Fake, reply: &Reply) {
    let mut lines: Vec<String> = ["n1", "n2", "n3"]
        .map(|name| {
            let mut node = node(name, "web");
            node["metadata"]["resourceVersion"] = json!("11");
            added(&node)
        })
        .into();
    lines.push(bookmark(20, true));
    fake.next(NODES, [Reply::Lines(lines)]);
    fake.next(NODES, vec![reply.clone(); 1000]);
}

#[tokio::test(start_paused = true)]
async fn d13_a_second_list_of_nodes_that_fails_or_hangs_does_not_block_the_start() {
    for (reply, waiting_at, started_at) in [
        (Reply::Refuse(500, ""), 1, 5),
        (Reply::Refuse(429, "TooManyRequests"), 1, 5),
        (Reply::Silent, 25, 35),
    ] {
        let fake = cluster();
        fake.add(SERVICES, changing(0));
        fake.add(SERVICES, service("cart"));
        one_list(&fake, &reply);
        // The Services arrive after the first list of Nodes.
        fake.world(|world| {
            world
                .delays
                .insert(SERVICES.to_owned(), Duration::from_secs(2))
        });
        let shown = format!("{reply:?}");
        let server = fake.clone();
        fake.follow_with(&mut Followed::new(), MINUTE, move |second, followed| {
            if second == waiting_at {
                assert!(!followed.is_whole(), "{shown}");
            }
            if second == started_at {
                assert!(followed.is_whole(), "{shown}: {:?}", server.requests(NODES));
                assert_eq!(followed.services(), ["cart", "changing"]);
            }
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_start_waits_for_labels_of_cluster_policies_without_a_limit() {
    let fake = cluster();
    // The policies arrive after the first list of Nodes.
    fake.world(|world| {
        world
            .delays
            .insert(POLICIES.to_owned(), Duration::from_secs(5))
    });
    fake.add(POLICIES, policy("near", RACK));
    one_list(&fake, &Reply::Refuse(500, ""));
    fake.follow_with(&mut Followed::new(), 2 * MINUTE, |_, followed| {
        assert!(
            !followed.is_whole(),
            "traffic would leave the rack of a hard policy"
        );
    })
    .await;
}
