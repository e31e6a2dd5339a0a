//! What is planned for what is seen; and that what was written leaves nothing to plan.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// 2026-11-21T20:00:00Z.
const NOW: i64 = 1_795_291_200_000;

fn node(name: &str, zone: &str, ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({
        "metadata": { "name": name, "labels": { "topology.kubernetes.io/zone": zone, "pool": "web" } },
        "status": {
            "addresses": [{ "type": "Hostname", "address": name }, { "type": "InternalIP", "address": "FD00:0::7" }],
            "allocatable": { "cpu": "3800m" },
            "conditions": [{ "type": "Ready", "status": status, "lastHeartbeatTime": "2026-11-21T19:59:00Z" }],
        },
    })
}

fn policy(spec: &Value) -> Value {
    json!({ "metadata": { "name": "near", "generation": 2 }, "spec": spec })
}

fn near() -> Value {
    policy(&json!({
        "mode": "Prefer",
        "levels": [{ "key": "example.com/rack" }, { "any": true }],
        "nodeSelector": { "matchLabels": { "pool": "web" } },
    }))
}

fn report(node: &str, generation: u64) -> Value {
    json!({
        "metadata": { "name": node },
        "status": {
            "version": "0.1.0",
            "phase": "Serving",
            "policies": [{ "kind": "ClusterTopologyPolicy", "name": "near", "generation": generation, "services": 7 }],
            "drains": [{ "name": "b", "generation": 1, "endpoints": 311, "servicesSkipped": 4 }],
        },
    })
}

/// The report of `n1`, where a Service gets something else than the policy asks.
fn fallen() -> Value {
    let mut fallen = report("n1", 2);
    fallen["status"]["fallbacks"] = json!([{
        "service": "shop/cart", "policy": "ClusterTopologyPolicy/near", "reason": "Panic",
        "from": "Prefer", "to": "Uniform", "since": "2026-11-21T19:00:00Z",
    }]);
    fallen
}

fn drain(expires: &str) -> Value {
    json!({
        "metadata": { "name": "b", "generation": 1, "creationTimestamp": "2026-11-21T19:59:30Z" },
        "spec": { "match": { "key": "zone", "values": ["b"] }, "expiresAt": expires, "rampSeconds": 60 },
    })
}

/// Does what is planned, as an API server would; returns the plan.
fn settle(world: &mut World, now: i64) -> Vec<Write> {
    let writes = world.plan(now);
    for write in &writes {
        let mut object = write.body.clone();
        object["metadata"]["resourceVersion"] = "1".into();
        world.exists(write.collection, object);
    }
    assert_eq!(world.plan(now), [], "what was written is not written again");
    writes
}

fn status_of<'v>(world: &'v World, collection: Collection, name: &str) -> &'v Value {
    let key = (collection, (String::new(), name.to_owned()));
    world.objects[&key].get("status").unwrap()
}

fn condition(status: &Value, kind: &str) -> [String; 3] {
    let conditions = status["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|one| one["type"] == kind).unwrap();
    ["status", "reason", "message"].map(|field| found[field].as_str().unwrap().to_owned())
}

#[test]
fn a_heartbeat_matters_to_nobody_and_a_label_does() {
    let mut world = World::default();
    assert!(world.exists(Collection::Nodes, node("n1", "a", true)));
    settle(&mut world, NOW);
    let mut later = node("n1", "a", true);
    later["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-21T20:04:00Z".into();
    later["metadata"]["resourceVersion"] = "99".into();
    assert!(!world.exists(Collection::Nodes, later));
    assert!(world.exists(Collection::Nodes, node("n1", "b", true)));
    let [write] = &settle(&mut world, NOW)[..] else {
        panic!("one write");
    };
    assert_eq!(write.how, How::Replace);
    assert_eq!(
        write.body["spec"]["nodes"]["n1"],
        json!({ "v": ["b", "", ""], "ips": ["fd00::7"], "cpuMilli": 3800, "ready": true })
    );
}

#[test]
fn the_map_tells_the_labels_that_anything_looks_at() {
    let mut world = World::new(["example.com/row".to_owned()]);
    world.exists(Collection::Nodes, node("n1", "a", true));
    world.exists(Collection::ClusterPolicies, near());
    settle(&mut world, NOW);
    let key = (Collection::Maps, (String::new(), "shard-0".to_owned()));
    assert_eq!(
        world.objects[&key]["spec"]["keys"],
        json!([
            "topology.kubernetes.io/zone",
            "topology.kubernetes.io/region",
            "topology.ipvs-topo.io/capacity",
            "example.com/rack",
            "example.com/row",
        ])
    );
}

#[test]
fn d13_a_namespace_with_many_labels_pushes_no_others_out_of_the_map() {
    let mut world = World::new(["example.com/row".to_owned()]);
    world.exists(Collection::Nodes, node("n1", "a", true));
    world.exists(Collection::ClusterPolicies, near());
    let policy = |namespace: &str, name: String, key: String| {
        json!({
            "apiVersion": "topology.ipvs-topo.io/v1alpha1", "kind": "TopologyPolicy",
            "metadata": {"name": name, "namespace": namespace, "generation": 1},
            "spec": {"mode": "Prefer", "levels": [{"key": key}, {"any": true}]},
        })
    };
    for number in 0..60 {
        let many = policy(
            "aaa",
            format!("p{number}"),
            format!("aaa.example/k{number:02}"),
        );
        world.exists(Collection::Policies, many);
    }
    let shop = policy("shop", "near".to_owned(), "zzz.example/shelf".to_owned());
    world.exists(Collection::Policies, shop);
    settle(&mut world, NOW);
    let key = (Collection::Maps, (String::new(), "shard-0".to_owned()));
    let keys = world.objects[&key]["spec"]["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 32);
    for real in ["example.com/rack", "example.com/row", "zzz.example/shelf"] {
        assert!(keys.iter().any(|key| key == real), "{real}: {keys:?}");
    }
}

#[test]
fn a_policy_is_programmed_when_every_node_that_it_is_for_acts_by_it() {
    let mut world = World::default();
    for name in ["n1", "n2"] {
        world.exists(Collection::Nodes, node(name, "a", true));
    }
    let mut other = node("n3", "a", true);
    other["metadata"]["labels"]["pool"] = "edge".into();
    world.exists(Collection::Nodes, other);
    world.exists(Collection::ClusterPolicies, near());
    settle(&mut world, NOW);
    let programmed = |world: &World| {
        condition(
            status_of(world, Collection::ClusterPolicies, "near"),
            "Programmed",
        )
    };
    assert_eq!(programmed(&world)[..2], ["Unknown", "NoReports"]);

    world.exists(Collection::Agents, report("n1", 2));
    world.exists(Collection::Agents, report("n2", 1));
    settle(&mut world, NOW);
    assert_eq!(
        programmed(&world),
        ["False", "Pending", "1 of 2 nodes act by it; 2 report"]
    );

    world.exists(Collection::Agents, report("n2", 2));
    let writes = settle(&mut world, NOW + 60_000);
    assert!(writes.iter().all(|write| write.is_transition));
    let status = status_of(&world, Collection::ClusterPolicies, "near");
    assert_eq!(condition(status, "Programmed")[..2], ["True", "EveryNode"]);
    assert_eq!(condition(status, "Accepted")[0], "True");
    assert_eq!(status["programmedNodes"], "2/2");
    assert_eq!(status["matchedServices"], 7);
    let since = |kind: &str| {
        let conditions = status["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|one| one["type"] == kind).unwrap();
        found["lastTransitionTime"].as_str().unwrap().to_owned()
    };
    assert_eq!(since("Accepted"), "2026-11-21T20:00:00Z");
    assert_eq!(since("Programmed"), "2026-11-21T20:01:00Z");
}

#[test]
fn a_count_alone_is_no_transition() {
    let mut world = World::default();
    world.exists(Collection::Nodes, node("n1", "a", true));
    world.exists(Collection::ClusterPolicies, near());
    world.exists(Collection::Agents, report("n1", 2));
    settle(&mut world, NOW);
    let mut more = report("n1", 2);
    more["status"]["policies"][0]["services"] = 8.into();
    assert!(world.exists(Collection::Agents, more));
    let writes = settle(&mut world, NOW);
    assert_eq!(writes.len(), 1);
    assert!(!writes[0].is_transition);
}

#[test]
fn a_fallback_degrades_the_policy_that_was_asked_and_is_remembered() {
    let mut world = World::default();
    world.exists(Collection::Nodes, node("n1", "a", true));
    world.exists(Collection::ClusterPolicies, near());
    world.exists(Collection::Agents, fallen());
    settle(&mut world, NOW);
    let degraded = |world: &World| {
        let status = status_of(world, Collection::ClusterPolicies, "near");
        (
            condition(status, "Degraded"),
            status["lastTransition"].clone(),
        )
    };
    let last =
        json!({ "service": "shop/cart", "from": "Prefer", "to": "Uniform", "reason": "Panic" });
    let expected = ["True", "Panic", "shop/cart: Panic"].map(str::to_owned);
    assert_eq!(degraded(&world), (expected, last.clone()));
    world.exists(Collection::Agents, report("n1", 2));
    settle(&mut world, NOW);
    let (condition, remembered) = degraded(&world);
    assert_eq!((&*condition[0], remembered), ("False", last));
}

#[test]
fn a_fallback_that_two_nodes_report_is_one_since_the_first_of_them() {
    let mut world = World::default();
    let fallen = |node: &str, minute: u32, times: usize| {
        let mut fallen = report(node, 2);
        let one = json!({
            "service": "shop/cart", "reason": "Panic", "from": "Prefer", "to": "Uniform",
            "since": format!("2026-11-21T20:{minute:02}:00Z"),
        });
        fallen["status"]["fallbacks"] = vec![one; times].into();
        fallen
    };
    world.exists(Collection::Agents, fallen("n1", 5, 1));
    world.exists(Collection::Agents, fallen("n2", 1, 1));
    let (seen, complete) = world.fallbacks();
    let key = ("shop/cart".to_owned(), "TopologyFallbackPanic");
    assert_eq!((seen[&key].nodes, seen[&key].since), (2, NOW + 60_000));
    assert!(complete);
    world.exists(
        Collection::Agents,
        fallen("n2", 1, cluster::schema::MAX_FALLBACKS),
    );
    assert!(!world.fallbacks().1, "it may have no room for others");
    let mut short = fallen("n2", 1, 1);
    short["status"]["counts"] = json!({ "fallbacks": 2 });
    world.exists(Collection::Agents, short);
    assert!(!world.fallbacks().1, "it had no room for the other");
}

#[test]
fn a_policy_that_agents_would_refuse_is_not_accepted_in_their_words() {
    let mut world = World::default();
    world.exists(
        Collection::ClusterPolicies,
        policy(&json!({ "mode": "Hard" })),
    );
    settle(&mut world, NOW);
    let status = status_of(&world, Collection::ClusterPolicies, "near");
    let [accepted, reason, message] = condition(status, "Accepted");
    assert_eq!((&*accepted, &*reason), ("False", "Invalid"));
    assert!(message.contains("add or remove levels"), "{message}");
}

#[test]
fn a_drain_ramps_is_active_expires_and_is_renewed() {
    let mut world = World::default();
    world.exists(Collection::Agents, report("n1", 2));
    world.exists(Collection::Drains, drain("2026-11-21T21:00:00Z"));
    let phase = |world: &World| {
        let status = status_of(world, Collection::Drains, "b");
        (
            status["phase"].as_str().unwrap().to_owned(),
            status["endpointsDrained"].as_u64().unwrap(),
        )
    };
    let own = |phase: &str, count: u64| (phase.to_owned(), count);
    assert_eq!(settle(&mut world, NOW).len(), 1);
    assert_eq!(phase(&world), own("Ramping", 311));
    assert_eq!(settle(&mut world, NOW + 29_000).len(), 0, "written once");
    assert_eq!(settle(&mut world, NOW + 30_000).len(), 1);
    assert_eq!(phase(&world), own("Active", 311));
    settle(&mut world, NOW + 3_600_000);
    assert_eq!(phase(&world), own("Expired", 0));
    let key = (Collection::Drains, (String::new(), "b".to_owned()));
    let mut renewed = world.objects[&key].clone();
    renewed["spec"]["expiresAt"] = "2026-11-22T21:00:00Z".into();
    world.exists(Collection::Drains, renewed);
    settle(&mut world, NOW + 3_600_000);
    assert_eq!(phase(&world), own("Active", 311));
}

#[test]
fn a_drain_beyond_72_hours_is_refused_until_it_is_near_enough() {
    let mut world = World::default();
    world.exists(Collection::Drains, drain("2026-11-24T20:00:01Z"));
    settle(&mut world, NOW);
    let status = status_of(&world, Collection::Drains, "b");
    assert_eq!(status["phase"], "Refused");
    let [accepted, _, message] = condition(status, "Accepted");
    assert_eq!(accepted, "False");
    assert!(message.contains("72 hours"), "{message}");
    settle(&mut world, NOW + 1000);
    assert_eq!(
        status_of(&world, Collection::Drains, "b")["phase"],
        "Ramping"
    );
}

#[test]
fn what_is_gone_from_a_list_is_found() {
    let mut world = World::default();
    world.exists(Collection::Nodes, node("n1", "a", true));
    world.exists(Collection::ClusterPolicies, near());
    for collection in [Collection::Nodes, Collection::ClusterPolicies] {
        let names = world.names(collection);
        assert_eq!(names.len(), 1);
        assert!(names.iter().all(|name| world.gone(collection, name)));
        assert!(world.names(collection).is_empty());
    }
}

/// A policy that decides nothing on a node is not in that node's report.
#[test]
fn a_node_that_does_not_name_a_policy_has_time_to_report_and_then_does_not_count() {
    let mut world = World::default();
    for name in ["n1", "n2"] {
        world.exists(Collection::Nodes, node(name, "a", true));
    }
    world.exists(Collection::ClusterPolicies, near());
    let silent = |name: &str| {
        let mut silent = report(name, 2);
        silent["status"]["policies"] = json!([]);
        silent
    };
    world.exists(Collection::Agents, report("n1", 2));
    world.exists(Collection::Agents, silent("n2"));
    let programmed = |world: &World| {
        let status = status_of(world, Collection::ClusterPolicies, "near");
        condition(status, "Programmed")
    };
    settle(&mut world, NOW);
    let pending = ["False", "Pending", "1 of 2 nodes act by it; 2 report"];
    assert_eq!(programmed(&world), pending);
    assert!(world.waits());
    settle(&mut world, NOW + 89_000);
    assert_eq!(programmed(&world), pending);
    settle(&mut world, NOW + 91_000);
    let there = ["True", "WhereItDecides", "1 of 1 nodes act by it; 2 report"];
    assert_eq!(programmed(&world), there);
    assert!(!world.waits());

    // Another generation is seen: the node that named it before has to name that one.
    let mut edited = near();
    edited["metadata"]["generation"] = 3.into();
    edited["status"] = status_of(&world, Collection::ClusterPolicies, "near").clone();
    world.exists(Collection::ClusterPolicies, edited);
    settle(&mut world, NOW + 100_000);
    assert_eq!(programmed(&world)[1], "Pending");
    settle(&mut world, NOW + 900_000);
    assert_eq!(
        programmed(&world)[1..],
        ["Pending", "0 of 1 nodes act by it; 2 report"]
    );
    world.exists(Collection::Agents, report("n1", 3));
    settle(&mut world, NOW + 901_000);
    assert_eq!(programmed(&world)[..2], ["True", "WhereItDecides"]);

    world.exists(Collection::Agents, silent("n1"));
    settle(&mut world, NOW + 902_000);
    assert_eq!(
        programmed(&world),
        [
            "Unknown",
            "DecidesNothing",
            "no node reports that it decides for a Service; 2 of 2 report"
        ]
    );
}

/// Review M5: a kubelet that writes more than a million processors blocked the 500 Nodes of its shard.
#[test]
fn a_node_with_more_processors_than_the_map_can_tell_has_the_most_that_it_can() {
    let mut world = World::default();
    let mut huge = node("huge", "a", true);
    huge["status"]["allocatable"]["cpu"] = "1000001".into();
    world.exists(Collection::Nodes, huge);
    world.exists(Collection::Nodes, node("n1", "a", true));
    settle(&mut world, NOW);
    let key = (Collection::Maps, (String::new(), "shard-0".to_owned()));
    let nodes = &world.objects[&key]["spec"]["nodes"];
    assert_eq!(nodes["huge"]["cpuMilli"], 1_000_000_000);
    assert_eq!(nodes["n1"]["cpuMilli"], 3800);
    assert!(world.left_out().is_empty());
}

#[test]
fn a_node_that_the_api_server_would_not_take_is_left_out_and_the_others_are_told() {
    let mut world = World::default();
    world.exists(Collection::Nodes, node("n1", "a", true));
    // No API server has such a label; one of a later version may.
    let place = Place {
        labels: [("topology.kubernetes.io/zone".into(), "not a value".into())]
            .into_iter()
            .collect(),
        ..Place::default()
    };
    world.nodes.insert("odd".to_owned(), place);
    settle(&mut world, NOW);
    let key = (Collection::Maps, (String::new(), "shard-0".to_owned()));
    let nodes = world.objects[&key]["spec"]["nodes"].as_object().unwrap();
    assert_eq!(nodes.keys().collect::<Vec<_>>(), ["n1"]);
    let why = &world.left_out()["odd"];
    assert!(why.starts_with("v[0]: "), "{why}");
}

#[test]
fn a_report_that_is_taken_back_leaves_nothing_behind() {
    let mut world = World::default();
    world.exists(Collection::Nodes, node("n1", "a", true));
    world.exists(Collection::ClusterPolicies, near());
    world.exists(Collection::Agents, fallen());
    assert!(world.gone(Collection::Agents, &(String::new(), "n1".to_owned())));
    assert_eq!(
        format!("{:?}", world.reports),
        format!("{:?}", Reports::default())
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Nodes come and go: every Node is in one shard, no shard is too full, and a Node changes no other shard.
    #[test]
    fn shards_hold_every_node_once(steps in prop::collection::vec((0..1300_u32, 0..600_u32), 1..6)) {
        let mut world = World::default();
        for (first, count) in steps {
            for number in first..first + count {
                world.exists(Collection::Nodes, node(&format!("n{number}"), "a", true));
            }
            for number in (0..first).step_by(3) {
                world.gone(Collection::Nodes, &(String::new(), format!("n{number}")));
            }
            settle(&mut world, NOW);
            let mut told = BTreeSet::new();
            for (_, map) in world.of(Collection::Maps) {
                let nodes = map["spec"]["nodes"].as_object().unwrap();
                prop_assert!(nodes.len() <= cluster::schema::NODES_PER_SHARD);
                for name in nodes.keys() {
                    prop_assert!(told.insert(name.clone()), "{} twice", name);
                }
            }
            prop_assert!(told.iter().eq(world.nodes.keys()));
            let last = format!("last-{first}-{count}");
            prop_assume!(!world.nodes.contains_key(&last));
            world.exists(Collection::Nodes, node(&last, "b", false));
            prop_assert_eq!(settle(&mut world, NOW).len(), 1);
        }
    }
}

#[test]
fn a_policy_says_that_no_node_has_a_label_of_its_levels() {
    let mut world = World::default();
    world.exists(Collection::Nodes, node("n1", "a", true));
    let levels = json!({ "mode": "Hard", "levels": [{ "key": "az" }] });
    world.exists(Collection::ClusterPolicies, policy(&levels));
    settle(&mut world, NOW);
    let status = status_of(&world, Collection::ClusterPolicies, "near");
    let [known, reason, message] = condition(status, "LevelsKnown");
    assert_eq!((&*known, &*reason), ("False", "LevelUnknown"));
    assert!(message.contains("did you mean zone?"), "{message}");
    let mut labelled = node("n1", "a", true);
    labelled["metadata"]["labels"]["az"] = "a".into();
    world.exists(Collection::Nodes, labelled);
    settle(&mut world, NOW);
    let status = status_of(&world, Collection::ClusterPolicies, "near");
    assert_eq!(condition(status, "LevelsKnown")[0], "True");
}
