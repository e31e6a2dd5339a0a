//! Following a server without faults.

use std::time::Duration;

use cluster::ServiceSelection;
use cluster::api::{Delivery, Phase};
use serde_json::json;
use tokio::time::sleep;

use crate::fake::{
    DRAINS, Fake, Followed, NAMESPACES, NODES, POLICIES, Reply, SERVICES, SLICES, service,
};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_cluster_is_read_and_followed_with_one_request_for_each_collection() {
    let fake = Fake::new();
    fake.add(SERVICES, service("cart"));
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        MINUTE,
        move |second, followed| match second {
            1 => {
                assert!(followed.is_whole());
                assert_eq!(followed.services(), ["cart"]);
                server.add(SERVICES, service("pay"));
            }
            2 => server.remove(SERVICES, "cart"),
            _ => {}
        },
    )
    .await;
    assert_eq!(followed.services(), ["pay"]);
    assert_eq!(
        fake.world(|world| world.seen.len()),
        7,
        "one for each but namespaces"
    );
    assert_eq!(followed.state("services").phase, Phase::Following);
    assert_eq!(followed.state("services").objects, 1);
    assert_eq!(followed.state("namespaces").phase, Phase::Unused);
    let resources = followed.sync_status().resources();
    assert!(resources.iter().all(|one| one.phase != Phase::Stale));
    assert!(followed.sync_status().count().bytes["services"] > 100);
}

#[tokio::test(start_paused = true)]
async fn protobuf_is_decoded_in_a_page_a_stream_and_a_refusal() {
    let fake = Fake::new();
    fake.next(
        NODES,
        [
            Reply::Refuse(422, "Invalid"),
            Reply::Protobuf(
                200,
                include_bytes!("../../../kube-io/src/decode/captured/nodes.protobuf"),
            ),
        ],
    );
    let stream = include_bytes!("../../../kube-io/src/decode/captured/stream.protobuf");
    fake.next(SERVICES, [Reply::Protobuf(200, stream)]);
    let refusal = Reply::Protobuf(
        403,
        include_bytes!("../../../kube-io/src/decode/captured/status.protobuf"),
    );
    fake.world(|world| world.always.insert(DRAINS.to_owned(), refusal));
    let followed = fake.followed(MINUTE).await;
    assert_eq!(followed.state("nodes").objects, 3);
    let events = followed.batches.iter().flat_map(|batch| &batch.events);
    let events: Vec<String> = events.map(|event| format!("{event:?}")).collect();
    let count = |kind: &str| {
        let is_counted = |event: &&String| event.starts_with(kind) && event.contains("plain");
        events.iter().filter(is_counted).count()
    };
    // The Service was created, labelled and deleted. Policies select by its labels, so a change of
    // labels is an event.
    assert_eq!((count("Apply"), count("Delete")), (2, 1), "{events:#?}");
    let refused = followed.state("topologydrains.topology.ipvs-topo.io").error;
    assert_eq!(refused.unwrap().message, "services \"nobody\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_stream_lists_is_read_in_pages() {
    let fake = Fake::new();
    fake.world(|world| world.streams = false);
    for index in 0..5 {
        fake.add(SERVICES, service(&format!("s{index}")));
    }
    let followed = fake.followed(MINUTE).await;
    assert!(followed.is_whole());
    assert_eq!(followed.services().len(), 5);
    let requests = fake.requests(SERVICES);
    assert_eq!(
        requests.len(),
        5,
        "a stream, three pages, a stream: {requests:?}"
    );
    assert!(requests[4].contains("resourceVersion=15"), "{requests:?}");
    assert!(
        followed.index.warnings().next().is_none(),
        "an unsupported feature is no fault"
    );
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_read_when_a_policy_selects_by_their_labels() {
    let fake = Fake::new();
    fake.add(NAMESPACES, json!({"kind": "PartialObjectMetadata", "metadata": {"name": "shop", "labels": {"team": "x"}}}));
    let selector = json!({"matchLabels": {"team": "x"}});
    let policy =
        json!({"metadata": {"name": "a"}, "spec": {"mode": "None", "namespaceSelector": selector}});
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(&mut followed, MINUTE, move |second, followed| {
        if second == 1 {
            assert!(followed.is_whole());
            assert_eq!(server.requests(NAMESPACES), [""; 0]);
            server.add(POLICIES, policy.clone());
        }
    })
    .await;
    let names: Vec<_> = followed
        .index
        .snapshot()
        .namespaces()
        .map(ToString::to_string)
        .collect();
    assert_eq!(names, ["shop"]);
    assert_eq!(followed.state("namespaces").phase, Phase::Following);
}

#[tokio::test(start_paused = true)]
async fn kinds_that_are_not_installed_are_empty_and_are_found_after_their_installation() {
    let fake = Fake::new();
    fake.world(|world| world.unknown = vec![DRAINS.to_owned(), POLICIES.to_owned()]);
    let drain = json!({
        "metadata": {"name": "d", "creationTimestamp": "2020-01-01T00:00:00Z"},
        "spec": {"match": {"key": "topology.kubernetes.io/zone", "values": ["b"]}, "expiresAt": "2020-01-02T00:00:00Z"},
    });
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        2 * MINUTE,
        move |second, followed| match second {
            2 => {
                assert!(
                    followed.is_whole(),
                    "the start does not wait for missing kinds"
                );
                let state = followed.state("topologydrains.topology.ipvs-topo.io");
                assert_eq!(state.phase, Phase::Absent);
                assert!(state.error.unwrap().to_string().contains("install"));
            }
            3 => server.world(|world| world.unknown.clear()),
            4 => server.add(DRAINS, drain.clone()),
            _ => {}
        },
    )
    .await;
    assert_eq!(followed.index.snapshot().drains().count(), 1);
    assert_eq!(
        followed.state("topologydrains.topology.ipvs-topo.io").phase,
        Phase::Following
    );
    assert!(fake.requests(DRAINS).len() <= 4);
    // Both kinds are in one API group, so one discovery request is enough for both.
    let discoveries = fake.requests("/apis/topology.ipvs-topo.io").len();
    let lists = fake.requests(DRAINS).len() + fake.requests(POLICIES).len();
    assert!(
        discoveries < lists,
        "{discoveries} discoveries, {lists} lists"
    );
}

#[tokio::test(start_paused = true)]
async fn heartbeats_of_nodes_make_no_events() {
    let fake = Fake::new();
    let beat = |second: u64| {
        let conditions =
            json!([{"type": "Ready", "status": "True", "lastHeartbeatTime": second.to_string()}]);
        json!({"metadata": {"name": "n1"}, "status": {"conditions": conditions, "images": [{"names": ["x"]}]}})
    };
    fake.add(NODES, beat(0));
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(&mut followed, MINUTE, move |second, followed| {
        if second == 2 {
            followed.batches.clear();
        }
        server.add(NODES, beat(second));
    })
    .await;
    assert_eq!(followed.batches, []);
    assert_eq!(followed.state("nodes").objects, 1);
}

#[tokio::test(start_paused = true)]
async fn slices_of_a_service_may_arrive_in_any_order() {
    let fake = Fake::new();
    let slice = |index: usize| {
        let endpoints: Vec<_> = (0..100)
            .map(|endpoint| json!({"addresses": [format!("10.{}.{}.{endpoint}", 1 + index / 250, index % 250)], "conditions": {"ready": true}}))
            .collect();
        json!({
            "metadata": {"name": format!("cart-{index}"), "namespace": "shop", "labels": {"kubernetes.io/service-name": "cart"}},
            "addressType": "IPv4", "ports": [{"name": "", "port": 8080, "protocol": "TCP"}], "endpoints": endpoints,
        })
    };
    for step in 0..100 {
        fake.add(SLICES, slice((step * 37) % 100));
    }
    fake.add(SERVICES, service("cart"));
    let followed = fake.followed(MINUTE).await;
    let snapshot = followed.index.snapshot();
    let cart = snapshot.services().next().unwrap();
    let endpoints: usize = snapshot
        .slices(&cart.name)
        .iter()
        .map(|slice| slice.endpoints.len())
        .sum();
    assert_eq!(endpoints, 10_000);
    let names: Vec<_> = snapshot
        .slices(&cart.name)
        .iter()
        .map(|slice| slice.name.name.to_string())
        .collect();
    assert!(names.is_sorted());
}

#[tokio::test(start_paused = true)]
async fn a_single_change_is_reported_at_once_and_many_changes_are_batched() {
    let fake = Fake::new();
    let server = fake.clone();
    tokio::spawn(async move {
        sleep(Duration::from_secs(10)).await;
        server.add(SERVICES, service("alone"));
        for (name, count, pause) in [("few", 30, 30), ("many", 100, 10)] {
            sleep(Duration::from_secs(10)).await;
            for number in 0..count {
                server.add(SERVICES, service(&format!("{name}-{number}")));
                sleep(Duration::from_millis(pause)).await;
            }
        }
    });
    let followed = fake.followed(MINUTE).await;
    assert_eq!(followed.services().len(), 131);
    let arrived = |second: u128| {
        let times = followed.arrived.iter().copied();
        times
            .filter(move |at| (second * 1_000..second * 1_000 + 3_000).contains(at))
            .collect::<Vec<u128>>()
    };
    let (alone, few, many) = (arrived(10), arrived(20), arrived(30));
    assert_eq!(alone.len(), 1, "{alone:?}");
    for at_once in [alone[0] - 10_000, few[0] - 20_000, many[0] - 30_900] {
        assert!(at_once <= 2, "{alone:?} {few:?} {many:?}");
    }
    assert!((8..=11).contains(&few.len()), "{few:?}");
    assert!(*few.last().unwrap() <= 21_000, "{few:?}");
    assert!((5..=7).contains(&many.len()), "{many:?}");
    assert!(*many.last().unwrap() <= 32_160, "{many:?}");
}

/// A DNS server answers with an endpoint within 10 ms of its event.
#[tokio::test(start_paused = true)]
async fn every_change_is_reported_at_once_to_a_consumer_that_wants_that() {
    let fake = Fake::new();
    let server = fake.clone();
    tokio::spawn(async move {
        sleep(Duration::from_secs(10)).await;
        for number in 0..100 {
            server.add(SERVICES, service(&format!("cart-{number}")));
            sleep(Duration::from_millis(10)).await;
        }
    });
    let mut followed = Followed::new();
    followed.options.delivery = Delivery::AtOnce;
    fake.follow_with(&mut followed, MINUTE, |_, _| {}).await;
    let changes = followed.arrived.iter().filter(|at| **at >= 10_000);
    let late: Vec<u128> = changes.map(|at| (at - 10_000) % 10).collect();
    assert_eq!(late.len(), 100, "{:?}", followed.arrived);
    assert!(late.iter().all(|late| *late <= 2), "{late:?}");
}

/// One change of a Node can concern all Services.
#[tokio::test(start_paused = true)]
async fn changes_of_nodes_are_batched_for_every_consumer() {
    for delivery in [Delivery::Gathered, Delivery::AtOnce] {
        let fake = Fake::new();
        let server = fake.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs(10)).await;
            for number in 0..100 {
                let name = format!("node-{number}");
                server.add(NODES, json!({"metadata": {"name": name}}));
                sleep(Duration::from_millis(10)).await;
            }
        });
        let mut followed = Followed::new();
        followed.options.delivery = delivery;
        fake.follow_with(&mut followed, MINUTE, |_, _| {}).await;
        let batches = followed.arrived.iter().filter(|at| **at >= 10_000);
        let count = batches.count();
        assert!((5..=7).contains(&count), "{delivery:?}: {count}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_whose_definition_is_new_makes_no_warning_unless_that_lasts() {
    for (refusals, lasts) in [(4, false), (1000, true)] {
        let fake = Fake::new();
        fake.next(POLICIES, vec![Reply::Initializing; refusals]);
        let mut followed = Followed::new();
        fake.follow_with(&mut followed, 2 * MINUTE, |second, followed| {
            let warned = followed.index.warnings().next().is_some();
            assert!(!warned || (lasts && second > 15), "after {second} s");
        })
        .await;
        assert_eq!(followed.is_whole(), !lasts);
        assert_eq!(followed.index.warnings().count(), usize::from(lasts));
    }
}

#[tokio::test(start_paused = true)]
async fn headless_services_are_requested_only_for_a_consumer_of_all_services() {
    for (services, count) in [(ServiceSelection::Proxied, 0), (ServiceSelection::All, 1)] {
        let fake = Fake::new();
        let headless = json!({
            "metadata": {"name": "cart", "namespace": "shop"},
            "spec": {"clusterIP": "None"},
        });
        fake.add(SERVICES, headless);
        let mut followed = Followed::new();
        followed.options.services = services;
        fake.follow_with(&mut followed, MINUTE, |_, _| {}).await;
        assert_eq!(followed.services().len(), count);
        for collection in [SERVICES, SLICES] {
            let requests = fake.requests(collection);
            let mut requests = requests.iter();
            let is_selected = requests.any(|request| request.contains("labelSelector=%21"));
            assert_eq!(is_selected, services == ServiceSelection::Proxied);
        }
    }
}
