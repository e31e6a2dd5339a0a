//! What the map has of Nodes reaches a client that reads it.

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use cluster::api::{ClientNodes, NodeSource, WatchOptions, follow};
use cluster::index::Index;
use kube_io::Connection;
use topology_core::model::Node;

use super::*;

/// Less than the pause after a stream, so that the client sends no second request.
const TIME: Duration = Duration::from_millis(300);

/// The list of a collection as a stream.
fn list(objects: &[Value]) -> String {
    let end = json!({"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}});
    let events = objects.iter().map(|object| ("ADDED", object.clone()));
    let end = ("BOOKMARK", json!({ "metadata": end }));
    let events = events.chain([end]).map(|(event_type, mut object)| {
        object["metadata"]["resourceVersion"] = "9".into();
        format!("{}\n", json!({ "type": event_type, "object": object }))
    });
    events.collect()
}

/// The cluster as a client on `n1` reads it that decides for clients of all nodes.
fn read(own: Value, policies: Vec<Value>, maps: Vec<Value>) -> (Index, bool) {
    let router = Router::new().fallback(move |request: Request| {
        let path = request.uri().path();
        let is_all = !request
            .uri()
            .query()
            .unwrap_or_default()
            .contains("fieldSelector");
        let answer = match path {
            "/api/v1/nodes" if is_all => panic!("all Nodes are read"),
            "/api/v1/nodes" => list(std::slice::from_ref(&own)),
            _ if path == Collection::Maps.list_path() => list(&maps),
            _ if path == Collection::ClusterPolicies.list_path() => list(&policies),
            _ => list(&[]),
        };
        async move { ([(CONTENT_TYPE, "application/json")], answer) }
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = Connection::of_client(kube::Client::new(router, "default"));
        let options = WatchOptions {
            clients: ClientNodes::All,
            ..NodeSource::Map { own: "n1".into() }.into()
        };
        let (mut watch, feed) = follow(server, options);
        let sync_status = watch.sync_status().unwrap().clone();
        let mut index = Index::new(Vec::new());
        let receive = async {
            while let Some(batch) = watch.next().await {
                let warnings = index.apply(batch);
                assert_eq!(warnings, []);
            }
        };
        let both = async { tokio::join!(feed, receive) };
        let ended = tokio::time::timeout(TIME, both).await;
        assert!(ended.is_err(), "it follows until the time is over");
        let is_mapped = sync_status.is_mapped();
        (index, is_mapped)
    })
}

/// A policy for clients on Nodes with the label `pool`, whatever its value.
fn of_pools() -> Value {
    policy(&json!({
        "mode": "Prefer",
        "levels": [{ "key": "topology.kubernetes.io/zone" }, { "any": true }],
        "nodeSelector": { "matchExpressions": [{ "key": "pool", "operator": "Exists" }] },
    }))
}

#[test]
fn a_client_reads_pod_ranges_and_labels_with_an_empty_value_as_the_controller_wrote_them() {
    let mut two = node("n2", "b", true);
    two["metadata"]["labels"]["pool"] = "".into();
    two["spec"] = json!({"podCIDRs": ["10.244.2.0/24", "fd00:10:244:2::/64"]});
    let mut three = node("n3", "b", false);
    let labels = three["metadata"]["labels"].as_object_mut().unwrap();
    labels.remove("pool");
    let mut state = State::default();
    for object in [node("n1", "a", true), two, three] {
        state.apply(Collection::Nodes, object);
    }
    state.apply(Collection::ClusterPolicies, of_pools());
    let writes = settle(&mut state, NOW);
    let maps = writes
        .into_iter()
        .filter(|write| write.collection == Collection::Maps);
    let maps = maps.map(|write| write.body).collect();
    let (index, is_mapped) = read(node("n1", "a", true), vec![of_pools()], maps);
    assert!(is_mapped);
    let zone = || ("topology.kubernetes.io/zone".into(), "b".into());
    let common = Node {
        addresses: vec!["fd00::7".parse().unwrap()],
        cpu_milli: 3800,
        ..Node::new("")
    };
    let expected = [
        Node {
            name: "n2".into(),
            labels: [zone(), ("pool".into(), "".into())].into_iter().collect(),
            pod_cidrs: vec![
                "10.244.2.0/24".parse().unwrap(),
                "fd00:10:244:2::/64".parse().unwrap(),
            ],
            ..common.clone()
        },
        Node {
            name: "n3".into(),
            labels: [zone()].into_iter().collect(),
            ready: false,
            ..common
        },
    ];
    for node in expected {
        assert_eq!(index.snapshot().node(&node.name), Some(&node));
    }
    let mut policies = index.snapshot().policies();
    let selector = &policies.next().unwrap().node_selector;
    let selects = |name: &str| selector.matches(&index.snapshot().node(name).unwrap().labels);
    assert_eq!(["n1", "n2", "n3"].map(selects), [true, true, false]);
}
