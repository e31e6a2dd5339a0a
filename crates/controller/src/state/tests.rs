//! What is planned for what is seen; and that what was written leaves nothing to plan.

use proptest::prelude::*;
use serde_json::json;
use topology_core::model::ObjectName;

use super::report::Reports;
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
fn settle(state: &mut State, now: i64) -> Vec<Write> {
    let writes = state.plan(now);
    for write in &writes {
        let mut object = write.body.clone();
        object["metadata"]["resourceVersion"] = "1".into();
        state.exists(write.collection, object);
    }
    assert_eq!(state.plan(now), [], "what was written is not written again");
    writes
}

fn status_of<'v>(state: &'v State, collection: Collection, name: &str) -> &'v Value {
    let key = (collection, (String::new(), name.to_owned()));
    state.observed.objects[&key].get("status").unwrap()
}

fn condition(status: &Value, kind: &str) -> [String; 3] {
    let conditions = status["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|one| one["type"] == kind).unwrap();
    ["status", "reason", "message"].map(|field| found[field].as_str().unwrap().to_owned())
}

#[test]
fn a_heartbeat_matters_to_nobody_and_a_label_does() {
    let mut state = State::default();
    assert!(state.exists(Collection::Nodes, node("n1", "a", true)));
    settle(&mut state, NOW);
    let mut later = node("n1", "a", true);
    later["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-21T20:04:00Z".into();
    later["metadata"]["resourceVersion"] = "99".into();
    assert!(!state.exists(Collection::Nodes, later));
    assert!(state.exists(Collection::Nodes, node("n1", "b", true)));
    let [write] = &settle(&mut state, NOW)[..] else {
        panic!("one write");
    };
    assert_eq!(write.kind, WriteKind::Replace);
    assert_eq!(
        write.body["spec"]["nodes"]["n1"],
        json!({ "v": ["b", "", ""], "ips": ["fd00::7"], "cpuMilli": 3800, "ready": true })
    );
}

#[test]
fn the_map_tells_the_labels_that_anything_looks_at() {
    let mut state = State::new(["example.com/row".to_owned()]);
    state.exists(Collection::Nodes, node("n1", "a", true));
    state.exists(Collection::ClusterPolicies, near());
    settle(&mut state, NOW);
    let key = (Collection::Maps, (String::new(), "shard-0".to_owned()));
    assert_eq!(
        state.observed.objects[&key]["spec"]["keys"],
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
    let mut state = State::new(["example.com/row".to_owned()]);
    state.exists(Collection::Nodes, node("n1", "a", true));
    state.exists(Collection::ClusterPolicies, near());
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
        state.exists(Collection::Policies, many);
    }
    let shop = policy("shop", "near".to_owned(), "zzz.example/shelf".to_owned());
    state.exists(Collection::Policies, shop);
    settle(&mut state, NOW);
    let key = (Collection::Maps, (String::new(), "shard-0".to_owned()));
    let keys = state.observed.objects[&key]["spec"]["keys"]
        .as_array()
        .unwrap();
    assert_eq!(keys.len(), 32);
    for real in ["example.com/rack", "example.com/row", "zzz.example/shelf"] {
        assert!(keys.iter().any(|key| key == real), "{real}: {keys:?}");
    }
}

#[test]
fn a_policy_is_programmed_when_every_node_that_it_is_for_acts_by_it() {
    let mut state = State::default();
    for name in ["n1", "n2"] {
        state.exists(Collection::Nodes, node(name, "a", true));
    }
    let mut other = node("n3", "a", true);
    other["metadata"]["labels"]["pool"] = "edge".into();
    state.exists(Collection::Nodes, other);
    state.exists(Collection::ClusterPolicies, near());
    settle(&mut state, NOW);
    let programmed = |state: &State| {
        condition(
            status_of(state, Collection::ClusterPolicies, "near"),
            "Programmed",
        )
    };
    assert_eq!(programmed(&state)[..2], ["Unknown", "NoReports"]);

    state.exists(Collection::Agents, report("n1", 2));
    state.exists(Collection::Agents, report("n2", 1));
    settle(&mut state, NOW);
    assert_eq!(
        programmed(&state),
        ["False", "Pending", "1 of 2 nodes act by it; 2 report"]
    );

    state.exists(Collection::Agents, report("n2", 2));
    let writes = settle(&mut state, NOW + 60_000);
    assert!(writes.iter().all(|write| write.is_transition));
    let status = status_of(&state, Collection::ClusterPolicies, "near");
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
    let mut state = State::default();
    state.exists(Collection::Nodes, node("n1", "a", true));
    state.exists(Collection::ClusterPolicies, near());
    state.exists(Collection::Agents, report("n1", 2));
    settle(&mut state, NOW);
    let mut more = report("n1", 2);
    more["status"]["policies"][0]["services"] = 8.into();
    assert!(state.exists(Collection::Agents, more));
    let writes = settle(&mut state, NOW);
    assert_eq!(writes.len(), 1);
    assert!(!writes[0].is_transition);
}

#[test]
fn a_fallback_degrades_the_policy_that_was_asked_and_is_remembered() {
    let mut state = State::default();
    state.exists(Collection::Nodes, node("n1", "a", true));
    state.exists(Collection::ClusterPolicies, near());
    state.exists(Collection::Agents, fallen());
    settle(&mut state, NOW);
    let degraded = |state: &State| {
        let status = status_of(state, Collection::ClusterPolicies, "near");
        (
            condition(status, "Degraded"),
            status["lastTransition"].clone(),
        )
    };
    let last =
        json!({ "service": "shop/cart", "from": "Prefer", "to": "Uniform", "reason": "Panic" });
    let expected = ["True", "Panic", "shop/cart: Panic"].map(str::to_owned);
    assert_eq!(degraded(&state), (expected, last.clone()));
    state.exists(Collection::Agents, report("n1", 2));
    settle(&mut state, NOW);
    let (condition, remembered) = degraded(&state);
    assert_eq!((&*condition[0], remembered), ("False", last));
}

#[test]
fn a_fallback_that_two_nodes_report_is_one_since_the_first_of_them() {
    let mut state = State::default();
    let fallen = |node: &str, minute: u32, times: usize| {
        let mut fallen = report(node, 2);
        let one = json!({
            "service": "shop/cart", "reason": "Panic", "from": "Prefer", "to": "Uniform",
            "since": format!("2026-11-21T20:{minute:02}:00Z"),
        });
        fallen["status"]["fallbacks"] = vec![one; times].into();
        fallen
    };
    state.exists(Collection::Agents, fallen("n1", 5, 1));
    state.exists(Collection::Agents, fallen("n2", 1, 1));
    let (seen, complete) = state.fallbacks();
    let key = (ObjectName::new("shop", "cart"), "TopologyFallbackPanic");
    assert_eq!((seen[&key].nodes, seen[&key].since), (2, NOW + 60_000));
    assert!(complete);
    state.exists(Collection::Agents, fallen("n2", 1, crd::MAX_FALLBACKS));
    assert!(!state.fallbacks().1, "it may have no room for others");
    let mut short = fallen("n2", 1, 1);
    short["status"]["counts"] = json!({ "fallbacks": 2 });
    state.exists(Collection::Agents, short);
    assert!(!state.fallbacks().1, "it had no room for the other");
}

#[test]
fn a_policy_that_agents_would_refuse_is_not_accepted_in_their_words() {
    let mut state = State::default();
    state.exists(
        Collection::ClusterPolicies,
        policy(&json!({ "mode": "Hard" })),
    );
    settle(&mut state, NOW);
    let status = status_of(&state, Collection::ClusterPolicies, "near");
    let [accepted, reason, message] = condition(status, "Accepted");
    assert_eq!((&*accepted, &*reason), ("False", "Invalid"));
    assert!(message.contains("add or remove levels"), "{message}");
}

#[test]
fn a_drain_ramps_is_active_expires_and_is_renewed() {
    let mut state = State::default();
    state.exists(Collection::Agents, report("n1", 2));
    state.exists(Collection::Drains, drain("2026-11-21T21:00:00Z"));
    let phase = |state: &State| {
        let status = status_of(state, Collection::Drains, "b");
        (
            status["phase"].as_str().unwrap().to_owned(),
            status["endpointsDrained"].as_u64().unwrap(),
        )
    };
    let own = |phase: &str, count: u64| (phase.to_owned(), count);
    assert_eq!(settle(&mut state, NOW).len(), 1);
    assert_eq!(phase(&state), own("Ramping", 311));
    assert_eq!(settle(&mut state, NOW + 29_000).len(), 0, "written once");
    assert_eq!(settle(&mut state, NOW + 30_000).len(), 1);
    assert_eq!(phase(&state), own("Active", 311));
    settle(&mut state, NOW + 3_600_000);
    assert_eq!(phase(&state), own("Expired", 0));
    let key = (Collection::Drains, (String::new(), "b".to_owned()));
    let mut renewed = state.observed.objects[&key].clone();
    renewed["spec"]["expiresAt"] = "2026-11-22T21:00:00Z".into();
    state.exists(Collection::Drains, renewed);
    settle(&mut state, NOW + 3_600_000);
    assert_eq!(phase(&state), own("Active", 311));
}

#[test]
fn a_drain_beyond_72_hours_is_refused_until_it_is_near_enough() {
    let mut state = State::default();
    state.exists(Collection::Drains, drain("2026-11-24T20:00:01Z"));
    settle(&mut state, NOW);
    let status = status_of(&state, Collection::Drains, "b");
    assert_eq!(status["phase"], "Refused");
    let [accepted, _, message] = condition(status, "Accepted");
    assert_eq!(accepted, "False");
    assert!(message.contains("72 hours"), "{message}");
    settle(&mut state, NOW + 1000);
    assert_eq!(
        status_of(&state, Collection::Drains, "b")["phase"],
        "Ramping"
    );
}

#[test]
fn what_is_gone_from_a_list_is_found() {
    let mut state = State::default();
    state.exists(Collection::Nodes, node("n1", "a", true));
    state.exists(Collection::ClusterPolicies, near());
    for collection in [Collection::Nodes, Collection::ClusterPolicies] {
        let names = state.names(collection);
        assert_eq!(names.len(), 1);
        assert!(names.iter().all(|name| state.gone(collection, name)));
        assert!(state.names(collection).is_empty());
    }
}

/// A policy that decides nothing on a node is not in that node's report.
#[test]
fn a_node_that_does_not_name_a_policy_has_time_to_report_and_then_does_not_count() {
    let mut state = State::default();
    for name in ["n1", "n2"] {
        state.exists(Collection::Nodes, node(name, "a", true));
    }
    state.exists(Collection::ClusterPolicies, near());
    let silent = |name: &str| {
        let mut silent = report(name, 2);
        silent["status"]["policies"] = json!([]);
        silent
    };
    state.exists(Collection::Agents, report("n1", 2));
    state.exists(Collection::Agents, silent("n2"));
    let programmed = |state: &State| {
        let status = status_of(state, Collection::ClusterPolicies, "near");
        condition(status, "Programmed")
    };
    settle(&mut state, NOW);
    let pending = ["False", "Pending", "1 of 2 nodes act by it; 2 report"];
    assert_eq!(programmed(&state), pending);
    assert!(state.waits());
    settle(&mut state, NOW + 89_000);
    assert_eq!(programmed(&state), pending);
    settle(&mut state, NOW + 91_000);
    let there = ["True", "WhereItDecides", "1 of 1 nodes act by it; 2 report"];
    assert_eq!(programmed(&state), there);
    assert!(!state.waits());

    // Another generation is seen: the node that named it before has to name that one.
    let mut edited = near();
    edited["metadata"]["generation"] = 3.into();
    edited["status"] = status_of(&state, Collection::ClusterPolicies, "near").clone();
    state.exists(Collection::ClusterPolicies, edited);
    settle(&mut state, NOW + 100_000);
    assert_eq!(programmed(&state)[1], "Pending");
    settle(&mut state, NOW + 900_000);
    assert_eq!(
        programmed(&state)[1..],
        ["Pending", "0 of 1 nodes act by it; 2 report"]
    );
    state.exists(Collection::Agents, report("n1", 3));
    settle(&mut state, NOW + 901_000);
    assert_eq!(programmed(&state)[..2], ["True", "WhereItDecides"]);

    state.exists(Collection::Agents, silent("n1"));
    settle(&mut state, NOW + 902_000);
    assert_eq!(
        programmed(&state),
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
    let mut state = State::default();
    let mut huge = node("huge", "a", true);
    huge["status"]["allocatable"]["cpu"] = "1000001".into();
    state.exists(Collection::Nodes, huge);
    state.exists(Collection::Nodes, node("n1", "a", true));
    settle(&mut state, NOW);
    let key = (Collection::Maps, (String::new(), "shard-0".to_owned()));
    let nodes = &state.observed.objects[&key]["spec"]["nodes"];
    assert_eq!(nodes["huge"]["cpuMilli"], 1_000_000_000);
    assert_eq!(nodes["n1"]["cpuMilli"], 3800);
    assert!(state.left_out().is_empty());
}

#[test]
fn a_node_that_the_api_server_would_not_take_is_left_out_and_the_others_are_told() {
    let mut state = State::default();
    state.exists(Collection::Nodes, node("n1", "a", true));
    // No API server has such a label; one of a later version may.
    let place = Place {
        labels: [("topology.kubernetes.io/zone".into(), "not a value".into())]
            .into_iter()
            .collect(),
        ..Place::default()
    };
    state.observed.nodes.insert("odd".to_owned(), place);
    settle(&mut state, NOW);
    let key = (Collection::Maps, (String::new(), "shard-0".to_owned()));
    let nodes = state.observed.objects[&key]["spec"]["nodes"]
        .as_object()
        .unwrap();
    assert_eq!(nodes.keys().collect::<Vec<_>>(), ["n1"]);
    let why = &state.left_out()["odd"];
    assert!(why.starts_with("v[0]: "), "{why}");
}

#[test]
fn a_report_that_is_taken_back_leaves_nothing_behind() {
    let mut state = State::default();
    state.exists(Collection::Nodes, node("n1", "a", true));
    state.exists(Collection::ClusterPolicies, near());
    state.exists(Collection::Agents, fallen());
    assert!(state.gone(Collection::Agents, &(String::new(), "n1".to_owned())));
    assert_eq!(
        format!("{:?}", state.observed.reports),
        format!("{:?}", Reports::default())
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Nodes come and go: every Node is in one shard, no shard is too full, and a Node changes no other shard.
    #[test]
    fn shards_hold_every_node_once(steps in prop::collection::vec((0..1300_u32, 0..600_u32), 1..6)) {
        let mut state = State::default();
        for (first, count) in steps {
            for number in first..first + count {
                state.exists(Collection::Nodes, node(&format!("n{number}"), "a", true));
            }
            for number in (0..first).step_by(3) {
                state.gone(Collection::Nodes, &(String::new(), format!("n{number}")));
            }
            settle(&mut state, NOW);
            let mut told = BTreeSet::new();
            for (_, map) in state.observed.of(Collection::Maps) {
                let nodes = map["spec"]["nodes"].as_object().unwrap();
                prop_assert!(nodes.len() <= crd::NODES_PER_SHARD);
                for name in nodes.keys() {
                    prop_assert!(told.insert(name.clone()), "{} twice", name);
                }
            }
            prop_assert!(told.iter().eq(state.observed.nodes.keys()));
            let last = format!("last-{first}-{count}");
            prop_assume!(!state.observed.nodes.contains_key(&last));
            state.exists(Collection::Nodes, node(&last, "b", false));
            prop_assert_eq!(settle(&mut state, NOW).len(), 1);
        }
    }
}

/// A whole report was dropped for one word of it, and nothing said so.
#[test]
fn a_report_of_a_later_agent_counts_as_far_as_it_can_be_read_and_the_rest_is_named() {
    let mut state = State::default();
    state.exists(Collection::Nodes, node("n1", "a", true));
    state.exists(Collection::ClusterPolicies, near());
    let mut later = fallen();
    later["status"]["version"] = "9.9.9".into();
    later["status"]["phase"] = "Resting".into();
    later["status"]["policies"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "kind": "GalacticTopologyPolicy", "name": "far" }));
    state.exists(Collection::Agents, later);
    settle(&mut state, NOW);
    let status = status_of(&state, Collection::ClusterPolicies, "near");
    assert_eq!(status["programmedNodes"], "1/1");
    assert_eq!(condition(status, "Degraded")[0], "True");
    assert_eq!(
        state.unread_reports()["n1"],
        "1 of 2 policies cannot be read, its phase is not known; the agent has the version 9.9.9: update the controller first"
    );
    state.exists(Collection::Agents, report("n1", 2));
    assert!(state.unread_reports().is_empty());
    let mut garbled = report("n1", 2);
    garbled["status"] = "fine".into();
    state.exists(Collection::Agents, garbled);
    assert!(state.unread_reports()["n1"].starts_with("nothing of it can be read: "));
}

/// Does what is planned, as the loop does; returns what is to be told.
fn settle_and_tell(state: &mut State, now: i64) -> Vec<News> {
    let writes = state.plan(now);
    let news = writes
        .iter()
        .filter_map(|write| state.wrote(write, write.body.clone()));
    news.collect()
}

#[test]
fn a_cluster_policy_whose_level_no_node_has_is_one_event_and_another_when_a_node_has_it() {
    let mut state = State::default();
    state.exists(Collection::Nodes, node("n1", "a", true));
    let mut hard = policy(&json!({ "mode": "Hard", "levels": [{ "key": "az" }] }));
    hard["metadata"]["uid"] = "77".into();
    state.exists(Collection::ClusterPolicies, hard.clone());
    hard["metadata"]["namespace"] = "shop".into();
    state.exists(Collection::Policies, hard);
    let told = |state: &mut State| -> Vec<(ObjectName, &str, Option<String>)> {
        let news = settle_and_tell(state, NOW).into_iter();
        news.map(|news| (news.key.0, news.key.1, news.uid))
            .collect()
    };
    let near = |word: &'static str| (ObjectName::new("", "near"), word, Some("77".to_owned()));
    assert_eq!(told(&mut state), [near("LevelUnknown")]);
    state.exists(Collection::Agents, report("n1", 2));
    assert_eq!(told(&mut state), [], "another status is no news of levels");
    let mut labelled = node("n1", "a", true);
    labelled["metadata"]["labels"]["az"] = "a".into();
    state.exists(Collection::Nodes, labelled);
    assert_eq!(told(&mut state), [near("LevelsKnown")]);
    state.exists(Collection::Nodes, node("n1", "a", true));
    let [news] = &settle_and_tell(&mut state, NOW)[..] else {
        panic!("one Event")
    };
    assert!(news.note.contains("did you mean zone?"), "{}", news.note);
    assert!(news.note.contains("not applied until"), "{}", news.note);
}

#[test]
fn a_policy_says_that_no_node_has_a_label_of_its_levels() {
    let mut state = State::default();
    state.exists(Collection::Nodes, node("n1", "a", true));
    let levels = json!({ "mode": "Hard", "levels": [{ "key": "az" }] });
    state.exists(Collection::ClusterPolicies, policy(&levels));
    settle(&mut state, NOW);
    let status = status_of(&state, Collection::ClusterPolicies, "near");
    let [known, reason, message] = condition(status, "LevelsKnown");
    assert_eq!((&*known, &*reason), ("False", "LevelUnknown"));
    assert!(message.contains("did you mean zone?"), "{message}");
    let mut labelled = node("n1", "a", true);
    labelled["metadata"]["labels"]["az"] = "a".into();
    state.exists(Collection::Nodes, labelled);
    settle(&mut state, NOW);
    let status = status_of(&state, Collection::ClusterPolicies, "near");
    assert_eq!(condition(status, "LevelsKnown")[0], "True");
}

/// A tenant with thousands of policies made each plan read all labels of all Nodes for every one of them.
#[test]
fn d13_a_label_that_no_node_has_is_compared_with_the_labels_of_nodes_once() {
    let mut state = State::default();
    for number in 0..50 {
        state.exists(
            Collection::Nodes,
            node(&format!("n{number}"), "a", number % 2 == 0),
        );
    }
    let unknown = |name: &str, key: &str| {
        let spec = json!({ "mode": "Prefer", "levels": [{ "key": key }, { "any": true }] });
        let mut policy = policy(&spec);
        policy["metadata"]["namespace"] = "shop".into();
        policy["metadata"]["name"] = name.into();
        policy
    };
    for (name, key) in [("one", "pol"), ("two", "pol"), ("three", "example.com/row")] {
        state.exists(Collection::Policies, unknown(name, key));
    }
    settle(&mut state, NOW);
    let keys: BTreeSet<&str> = state
        .observed
        .labels
        .meant
        .keys()
        .map(|key| &**key)
        .collect();
    assert_eq!(keys, BTreeSet::from(["example.com/row", "pol"]));

    // What is found once stays until a label comes or goes, whatever else of Nodes changes.
    let known = state.observed.labels.meant.get_mut("pol").unwrap();
    assert_eq!(known.replace("kept".to_owned()).as_deref(), Some("pool"));
    state.exists(Collection::Nodes, node("n1", "b", true));
    state.gone(Collection::Nodes, &(String::new(), "n2".to_owned()));
    state.plan(NOW);
    assert_eq!(state.observed.labels.meant["pol"].as_deref(), Some("kept"));
    let mut labelled = node("n1", "b", true);
    labelled["metadata"]["labels"]["polo"] = "x".into();
    state.exists(Collection::Nodes, labelled);
    state.plan(NOW);
    assert_eq!(state.observed.labels.meant["pol"].as_deref(), Some("polo"));

    // Nothing is kept for a policy that is gone.
    for name in ["one", "two", "three"] {
        state.gone(Collection::Policies, &("shop".to_owned(), name.to_owned()));
    }
    state.plan(NOW);
    assert!(state.observed.labels.meant.is_empty());
}

#[test]
fn what_follows_from_an_unknown_level_depends_on_the_policy() {
    let mut state = State::default();
    state.exists(Collection::Nodes, node("n1", "a", true));
    let hard = json!({ "mode": "Hard", "levels": [{ "key": "example.com/typo" }] });
    let partly =
        json!({ "mode": "Hard", "levels": [{ "key": "example.com/typo" }, { "key": "zone" }] });
    let soft =
        json!({ "mode": "Prefer", "levels": [{ "key": "example.com/typo" }, { "any": true }] });
    let waits = "the policy is not applied until a Node has a label of its levels";
    let refuses = "it refuses every client until a Node has a label of its levels";
    let nothing = "what the policy says of that label has no effect until a Node has it";
    for (spec, cluster, namespaced) in [
        (hard, waits, refuses),
        (partly, nothing, nothing),
        (soft, nothing, nothing),
    ] {
        let mut own = policy(&spec);
        state.exists(Collection::ClusterPolicies, own.clone());
        own["metadata"]["namespace"] = "shop".into();
        state.exists(Collection::Policies, own);
        settle(&mut state, NOW);
        for (collection, namespace, expected) in [
            (Collection::ClusterPolicies, "", cluster),
            (Collection::Policies, "shop", namespaced),
        ] {
            let object =
                &state.observed.objects[&(collection, (namespace.to_owned(), "near".to_owned()))];
            let [known, _, message] = condition(&object["status"], "LevelsKnown");
            assert_eq!(known, "False");
            let expected = format!("no Node has the label example.com/typo; {expected}");
            assert_eq!(message, expected, "{spec}");
        }
    }
}
