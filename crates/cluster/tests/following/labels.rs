//! Of other Nodes only the labels are kept that something goes by, and Nodes are read again when that is not enough.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fake::{
    DRAINS, Deed, Fake, Followed, NODES, POLICIES, SERVICES, added, bookmark, service,
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

/// Two Nodes besides `n1`, whose labels are all known.
fn cluster() -> Fake {
    let fake = Fake::new();
    for name in ["n1", "n2", "n3"] {
        fake.add(NODES, node(name, "web"));
    }
    fake
}

/// The labels that are known of `n3`.
fn known(followed: &Followed) -> Vec<String> {
    let node = followed.index.snapshot().node("n3").unwrap();
    node.labels.iter().map(|(key, _)| key.to_string()).collect()
}

fn going_by(followed: &Followed) -> Vec<String> {
    let policies = followed.index.snapshot().policies();
    let keys = policies.flat_map(|one| one.policy.label_keys());
    keys.map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn at_the_start_one_list_of_nodes_is_enough_and_what_nothing_goes_by_reaches_nobody() {
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
                assert_eq!(going_by(followed), [RACK]);
                followed.batches.clear();
            }
            _ => server.add(NODES, node("n3", &second.to_string())),
        },
    )
    .await;
    assert_eq!(followed.batches, []);
    assert_eq!(known(&followed), [RACK]);
    assert_eq!(fake.requests(NODES).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_nodes_is_waited_for_however_long_it_takes_and_one_serves_all_that_wait() {
    let fake = cluster();
    fake.add(POLICIES, policy("near", ROW));
    let mut followed = Followed::new();
    let server = fake.clone();
    let mut asking = service("cart");
    asking["metadata"]["annotations"] = json!({"topology.ipvs-topo.io/keys": "pool,*"});
    fake.follow_with(
        &mut followed,
        10 * MINUTE,
        move |second, followed| match second {
            2 => {
                assert_eq!(known(followed), [ROW]);
                server.next(NODES, [Deed::Mute, Deed::Refuse(500, "")]);
                server.add(POLICIES, policy("near", RACK));
                server.add(SERVICES, asking.clone());
            }
            80 => {
                assert_eq!(server.requests(NODES).len(), 2);
                assert_eq!(
                    (going_by(followed), known(followed)),
                    (vec![ROW.to_owned()], vec![ROW.to_owned()])
                );
                assert_eq!(followed.services(), ["cart"], "served without its policy");
            }
            _ => {}
        },
    )
    .await;
    assert_eq!(going_by(&followed), [RACK]);
    assert_eq!(followed.services(), ["cart"]);
    assert_eq!(known(&followed), [RACK, ROW, "pool"]);
    let requests = fake.requests(NODES).into_iter();
    let lists = requests.filter(|one| one.contains("sendInitialEvents"));
    assert_eq!(lists.count(), 4, "two of the second list came to nothing");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_may_read_keeps_nodes_waiting_for_a_second_only() {
    let fake = cluster();
    fake.world(|world| {
        world
            .always
            .insert(DRAINS.to_owned(), Deed::Refuse(403, "Forbidden"))
    });
    let server = fake.clone();
    fake.follow_with(&mut Followed::new(), MINUTE, move |second, followed| {
        let known = followed.index.snapshot().nodes().count();
        assert!(second < 2 || known == 3, "{:?}", server.requests(NODES));
    })
    .await;
}

/// A Service whose annotation names a label that no Service named before.
fn fickle(number: u32) -> Value {
    let mut service = service("fickle");
    let keys = format!("example.com/k{number},*");
    service["metadata"]["annotations"] = json!({"topology.ipvs-topo.io/keys": keys});
    service
}

/// Changes the Service every 0.1 s, for ever.
fn attack(fake: &Fake) -> tokio::task::JoinHandle<()> {
    let fake = fake.clone();
    tokio::spawn(async move {
        for number in 1.. {
            tokio::time::sleep(Duration::from_millis(100)).await;
            fake.replace(SERVICES, fickle(number));
        }
    })
}

#[tokio::test(start_paused = true)]
async fn d13_label_keys_that_change_all_the_time_neither_stop_a_start_nor_list_nodes_again_and_again()
 {
    let fake = cluster();
    fake.add(SERVICES, fickle(0));
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
            .filter(|one| one.contains("sendInitialEvents"))
            .count()
    };
    let at = lists.clone();
    fake.follow_with(
        &mut followed,
        7 * MINUTE,
        move |second, followed| match second {
            5 => {
                assert!(followed.is_whole(), "{} lists", at());
                assert_eq!(followed.services(), ["cart", "fickle"], "both are served");
                assert_eq!(at(), 2);
            }
            115 => assert_eq!(at(), 2, "two minutes between lists"),
            // Half a minute at most for the nodes to spread.
            185 => assert_eq!(at(), 3),
            355 => assert_eq!(at(), 3, "then four"),
            _ => {}
        },
    )
    .await;
    attack.abort();
    assert!(lists() <= 4, "{}", lists());
    let words: Vec<String> = followed.index.warnings().map(ToString::to_string).collect();
    assert!(
        words
            .iter()
            .any(|one| one.starts_with("Service shop/fickle: uses a label")),
        "{words:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn d13_a_policy_of_the_administrators_does_not_wait_for_the_labels_of_tenants() {
    let fake = cluster();
    fake.add(SERVICES, fickle(0));
    let attack = attack(&fake);
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        2 * MINUTE,
        move |second, followed| match second {
            30 => server.add(POLICIES, policy("near", "row")),
            95 => assert_eq!(going_by(followed), ["row"]),
            _ => {}
        },
    )
    .await;
    attack.abort();
}

/// A first list of Nodes, and then nothing but `deed`.
fn one_list(fake: &Fake, deed: &Deed) {
    let mut lines: Vec<String> = ["n1", "n2", "n3"]
        .map(|name| {
            let mut node = node(name, "web");
            node["metadata"]["resourceVersion"] = json!("11");
            added(&node)
        })
        .into();
    lines.push(bookmark(20, true));
    fake.next(NODES, [Deed::Lines(lines)]);
    fake.next(NODES, vec![deed.clone(); 1000]);
}

#[tokio::test(start_paused = true)]
async fn d13_a_second_list_of_nodes_that_is_refused_or_hangs_does_not_stop_a_start() {
    for (deed, waits, begins) in [
        (Deed::Refuse(500, ""), 1, 5),
        (Deed::Refuse(429, "TooManyRequests"), 1, 5),
        (Deed::Mute, 25, 35),
    ] {
        let fake = cluster();
        fake.add(SERVICES, fickle(0));
        fake.add(SERVICES, service("cart"));
        one_list(&fake, &deed);
        // The Services come after the first list of Nodes.
        fake.world(|world| {
            world
                .delays
                .insert(SERVICES.to_owned(), Duration::from_secs(2))
        });
        let shown = format!("{deed:?}");
        let server = fake.clone();
        fake.follow_with(&mut Followed::new(), MINUTE, move |second, followed| {
            if second == waits {
                assert!(!followed.is_whole(), "{shown}");
            }
            if second == begins {
                assert!(followed.is_whole(), "{shown}: {:?}", server.requests(NODES));
                assert_eq!(followed.services(), ["cart", "fickle"]);
            }
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_waits_for_the_labels_of_administrators_however_long_the_list_takes() {
    let fake = cluster();
    // The policies come after the first list of Nodes.
    fake.world(|world| {
        world
            .delays
            .insert(POLICIES.to_owned(), Duration::from_secs(5))
    });
    fake.add(POLICIES, policy("near", RACK));
    one_list(&fake, &Deed::Refuse(500, ""));
    fake.follow_with(&mut Followed::new(), 2 * MINUTE, |_, followed| {
        assert!(!followed.is_whole(), "a boundary would be open");
    })
    .await;
}
