//! The writes of a state, and that nothing is left to write afterwards.

mod fallbacks;
mod map_keys;
mod round_trip;
mod shards;

use proptest::prelude::*;
use serde_json::json;

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

/// A state whose map always has the label `example.com/row`.
fn with_row() -> State {
    State::new(StateOptions {
        label_keys: BTreeSet::from(["example.com/row".to_owned()]),
        ..StateOptions::default()
    })
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

/// The report of `n1` with a fallback of a Service.
fn fallback_report() -> Value {
    let mut object = report("n1", 2);
    object["status"]["fallbacks"] = json!([{
        "service": "shop/cart", "policy": "ClusterTopologyPolicy/near", "reason": "Panic",
        "from": "Prefer", "to": "Uniform", "since": "2026-11-21T19:00:00Z",
    }]);
    object
}

fn drain(expires: &str) -> Value {
    json!({
        "metadata": { "name": "b", "generation": 1, "creationTimestamp": "2026-11-21T19:59:30Z" },
        "spec": { "match": { "key": "zone", "values": ["b"] }, "expiresAt": expires, "rampSeconds": 60 },
    })
}

/// Writes the plan as an API server would; returns the plan.
fn settle(state: &mut State, now: i64) -> Vec<Write> {
    let writes = state.plan(now);
    for write in &writes {
        let mut object = write.body.clone();
        object["metadata"]["resourceVersion"] = "1".into();
        state.apply(write.collection, object);
    }
    assert_eq!(state.plan(now), [], "nothing is written twice");
    writes
}

fn status_of<'v>(state: &'v State, collection: Collection, name: &str) -> &'v Value {
    let key = (collection, ObjectName::new("", name));
    state.observed.objects[&key].get("status").unwrap()
}

fn condition(status: &Value, kind: &str) -> [String; 3] {
    let conditions = status["conditions"].as_array().unwrap();
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == kind)
        .unwrap();
    ["status", "reason", "message"].map(|field| found[field].as_str().unwrap().to_owned())
}

#[test]
fn a_heartbeat_changes_nothing_and_a_label_changes_the_map() {
    let mut state = State::default();
    assert!(state.apply(Collection::Nodes, node("n1", "a", true)));
    settle(&mut state, NOW);
    let mut later = node("n1", "a", true);
    later["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-21T20:04:00Z".into();
    later["metadata"]["resourceVersion"] = "99".into();
    assert!(!state.apply(Collection::Nodes, later));
    assert!(state.apply(Collection::Nodes, node("n1", "b", true)));
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
fn the_map_has_the_pod_ranges_of_both_families_and_a_change_of_them_changes_its_shard() {
    let mut state = State::default();
    let with = |ranges: &[&str]| {
        let mut node = node("n1", "a", true);
        node["spec"]["podCIDRs"] = json!(ranges);
        node
    };
    state.apply(Collection::Nodes, node("n1", "a", true));
    settle(&mut state, NOW);
    for (ranges, written) in [
        (&["10.244.1.0/24"][..], json!(["10.244.1.0/24"])),
        (
            &["10.244.1.0/24", "FD00:244:1:0::/64"],
            json!(["10.244.1.0/24", "fd00:244:1::/64"]),
        ),
        (
            &["10.1.0.0/24", "10.2.0.0/24", "10.3.0.0/24"],
            json!(["10.1.0.0/24", "10.2.0.0/24"]),
        ),
        (&["nonsense"], Value::Null),
    ] {
        assert!(state.apply(Collection::Nodes, with(ranges)));
        assert!(!state.apply(Collection::Nodes, with(ranges)));
        let [write] = &settle(&mut state, NOW)[..] else {
            panic!("one write");
        };
        assert_eq!(write.body["spec"]["nodes"]["n1"]["podCIDRs"], written);
        assert!(state.left_out().is_empty(), "{:?}", state.left_out());
    }
}

#[test]
fn the_map_names_the_labels_that_a_node_has_with_an_empty_value() {
    let mut state = State::default();
    let mut tainted = node("n1", "a", true);
    tainted["metadata"]["labels"]["pool"] = "".into();
    state.apply(Collection::Nodes, tainted);
    state.apply(Collection::Nodes, node("n2", "a", true));
    state.apply(Collection::ClusterPolicies, near());
    settle(&mut state, NOW);
    let key = (Collection::Maps, ObjectName::new("", "shard-0"));
    let nodes = &state.observed.objects[&key]["spec"]["nodes"];
    assert_eq!(nodes["n1"]["v"], json!(["a", "", "", "", ""]));
    assert_eq!(nodes["n1"]["emptyLabels"], json!(["pool"]));
    assert_eq!(nodes["n2"]["v"], json!(["a", "", "", "", "web"]));
    assert_eq!(nodes["n2"]["emptyLabels"], Value::Null);
}

#[test]
fn the_map_holds_the_labels_that_policies_and_flags_use() {
    let mut state = with_row();
    state.apply(Collection::Nodes, node("n1", "a", true));
    state.apply(Collection::ClusterPolicies, near());
    settle(&mut state, NOW);
    let key = (Collection::Maps, ObjectName::new("", "shard-0"));
    assert_eq!(
        state.observed.objects[&key]["spec"]["keys"],
        json!([
            "topology.kubernetes.io/zone",
            "topology.kubernetes.io/region",
            "topology.ipvs-topo.io/capacity",
            "example.com/rack",
            "example.com/row",
            "pool",
        ])
    );
}

#[test]
fn d13_a_namespace_with_many_labels_displaces_no_others_from_the_map() {
    let mut state = with_row();
    state.apply(Collection::Nodes, node("n1", "a", true));
    state.apply(Collection::ClusterPolicies, near());
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
        state.apply(Collection::Policies, many);
    }
    let shop = policy("shop", "near".to_owned(), "zzz.example/shelf".to_owned());
    state.apply(Collection::Policies, shop);
    settle(&mut state, NOW);
    let key = (Collection::Maps, ObjectName::new("", "shard-0"));
    let keys = state.observed.objects[&key]["spec"]["keys"]
        .as_array()
        .unwrap();
    assert_eq!(keys.len(), 32);
    for expected in ["example.com/rack", "example.com/row", "zzz.example/shelf"] {
        assert!(
            keys.iter().any(|key| key == expected),
            "{expected}: {keys:?}"
        );
    }
}

#[test]
fn a_policy_is_programmed_when_every_selected_node_uses_it() {
    let mut state = State::default();
    for name in ["n1", "n2"] {
        state.apply(Collection::Nodes, node(name, "a", true));
    }
    let mut other = node("n3", "a", true);
    other["metadata"]["labels"]["pool"] = "edge".into();
    state.apply(Collection::Nodes, other);
    state.apply(Collection::ClusterPolicies, near());
    settle(&mut state, NOW);
    let programmed = |state: &State| {
        condition(
            status_of(state, Collection::ClusterPolicies, "near"),
            "Programmed",
        )
    };
    assert_eq!(programmed(&state)[..2], ["Unknown", "NoReports"]);

    state.apply(Collection::Agents, report("n1", 2));
    state.apply(Collection::Agents, report("n2", 1));
    settle(&mut state, NOW);
    assert_eq!(
        programmed(&state),
        ["False", "Pending", "1 of 2 nodes use the policy; 2 report"]
    );

    state.apply(Collection::Agents, report("n2", 2));
    let writes = settle(&mut state, NOW + 60_000);
    assert!(writes.iter().all(|write| write.is_transition));
    let status = status_of(&state, Collection::ClusterPolicies, "near");
    assert_eq!(condition(status, "Programmed")[..2], ["True", "EveryNode"]);
    assert_eq!(condition(status, "Accepted")[0], "True");
    assert_eq!(status["programmedNodes"], "2/2");
    assert_eq!(status["matchedServices"], 7);
    let since = |kind: &str| {
        let conditions = status["conditions"].as_array().unwrap();
        let found = conditions
            .iter()
            .find(|condition| condition["type"] == kind)
            .unwrap();
        found["lastTransitionTime"].as_str().unwrap().to_owned()
    };
    assert_eq!(since("Accepted"), "2026-11-21T20:00:00Z");
    assert_eq!(since("Programmed"), "2026-11-21T20:01:00Z");
}

#[test]
fn a_change_of_a_count_is_no_transition() {
    let mut state = State::default();
    state.apply(Collection::Nodes, node("n1", "a", true));
    state.apply(Collection::ClusterPolicies, near());
    state.apply(Collection::Agents, report("n1", 2));
    settle(&mut state, NOW);
    let mut more = report("n1", 2);
    more["status"]["policies"][0]["services"] = 8.into();
    assert!(state.apply(Collection::Agents, more));
    let writes = settle(&mut state, NOW);
    assert_eq!(writes.len(), 1);
    assert!(!writes[0].is_transition);
}

#[test]
fn a_fallback_degrades_its_policy_and_is_kept_as_last_transition() {
    let mut state = State::default();
    state.apply(Collection::Nodes, node("n1", "a", true));
    state.apply(Collection::ClusterPolicies, near());
    state.apply(Collection::Agents, fallback_report());
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
    state.apply(Collection::Agents, report("n1", 2));
    settle(&mut state, NOW);
    let (condition, kept) = degraded(&state);
    assert_eq!((&*condition[0], kept), ("False", last));
}

#[test]
fn a_policy_that_agents_refuse_is_not_accepted_with_the_message_of_agents() {
    let mut state = State::default();
    state.apply(
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
    state.apply(Collection::Agents, report("n1", 2));
    state.apply(Collection::Drains, drain("2026-11-21T21:00:00Z"));
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
    let key = (Collection::Drains, ObjectName::new("", "b"));
    let mut renewed = state.observed.objects[&key].clone();
    renewed["spec"]["expiresAt"] = "2026-11-22T21:00:00Z".into();
    state.apply(Collection::Drains, renewed);
    settle(&mut state, NOW + 3_600_000);
    assert_eq!(phase(&state), own("Active", 311));
}

#[test]
fn a_drain_beyond_72_hours_is_refused_until_it_is_within_the_limit() {
    let mut state = State::default();
    state.apply(Collection::Drains, drain("2026-11-24T20:00:01Z"));
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
fn objects_that_are_missing_in_a_list_are_deleted() {
    let mut state = State::default();
    state.apply(Collection::Nodes, node("n1", "a", true));
    state.apply(Collection::ClusterPolicies, near());
    for collection in [Collection::Nodes, Collection::ClusterPolicies] {
        let names = state.names(collection);
        assert_eq!(names.len(), 1);
        assert!(names.iter().all(|name| state.delete(collection, name)));
        assert!(state.names(collection).is_empty());
    }
}

/// The report of a node does not name a policy that decides nothing there.
#[test]
fn a_node_that_does_not_report_a_policy_is_pending_first_and_then_not_counted() {
    let mut state = State::default();
    for name in ["n1", "n2"] {
        state.apply(Collection::Nodes, node(name, "a", true));
    }
    state.apply(Collection::ClusterPolicies, near());
    let silent = |name: &str| {
        let mut silent = report(name, 2);
        silent["status"]["policies"] = json!([]);
        silent
    };
    state.apply(Collection::Agents, report("n1", 2));
    state.apply(Collection::Agents, silent("n2"));
    let programmed = |state: &State| {
        let status = status_of(state, Collection::ClusterPolicies, "near");
        condition(status, "Programmed")
    };
    settle(&mut state, NOW);
    let pending = ["False", "Pending", "1 of 2 nodes use the policy; 2 report"];
    assert_eq!(programmed(&state), pending);
    assert!(state.waits(NOW));
    settle(&mut state, NOW + 89_000);
    assert_eq!(programmed(&state), pending);
    settle(&mut state, NOW + 91_000);
    let reported = [
        "True",
        "WhereItDecides",
        "1 of 1 nodes use the policy; 2 report",
    ];
    assert_eq!(programmed(&state), reported);
    assert!(!state.waits(NOW));

    // The policy has a new generation: the node that reported the old one must report the new one.
    let mut edited = near();
    edited["metadata"]["generation"] = 3.into();
    edited["status"] = status_of(&state, Collection::ClusterPolicies, "near").clone();
    state.apply(Collection::ClusterPolicies, edited);
    settle(&mut state, NOW + 100_000);
    assert_eq!(programmed(&state)[1], "Pending");
    settle(&mut state, NOW + 900_000);
    assert_eq!(
        programmed(&state)[1..],
        ["Pending", "0 of 1 nodes use the policy; 2 report"]
    );
    state.apply(Collection::Agents, report("n1", 3));
    settle(&mut state, NOW + 901_000);
    assert_eq!(programmed(&state)[..2], ["True", "WhereItDecides"]);

    state.apply(Collection::Agents, silent("n1"));
    settle(&mut state, NOW + 902_000);
    assert_eq!(
        programmed(&state),
        [
            "Unknown",
            "DecidesNothing",
            "the policy decides for no Service; 2 of 2 nodes report"
        ]
    );
}

/// Review M5: a kubelet that reported more than a million processors blocked the 500 Nodes of its
/// shard.
#[test]
fn the_cpu_of_a_node_is_limited_to_the_maximum_of_the_map() {
    let mut state = State::default();
    let mut huge = node("huge", "a", true);
    huge["status"]["allocatable"]["cpu"] = "1000001".into();
    state.apply(Collection::Nodes, huge);
    state.apply(Collection::Nodes, node("n1", "a", true));
    settle(&mut state, NOW);
    let key = (Collection::Maps, ObjectName::new("", "shard-0"));
    let nodes = &state.observed.objects[&key]["spec"]["nodes"];
    assert_eq!(nodes["huge"]["cpuMilli"], 1_000_000_000);
    assert_eq!(nodes["n1"]["cpuMilli"], 3800);
    assert!(state.left_out().is_empty());
}

#[test]
fn a_node_that_the_api_server_would_refuse_is_left_out_of_the_map() {
    let mut state = State::default();
    state.apply(Collection::Nodes, node("n1", "a", true));
    // A later API server may accept such a label.
    let info = NodeInfo {
        labels: [("topology.kubernetes.io/zone".into(), "not a value".into())]
            .into_iter()
            .collect(),
        ..NodeInfo::default()
    };
    state.observed.nodes.insert("invalid".to_owned(), info);
    settle(&mut state, NOW);
    let key = (Collection::Maps, ObjectName::new("", "shard-0"));
    let nodes = state.observed.objects[&key]["spec"]["nodes"]
        .as_object()
        .unwrap();
    assert_eq!(nodes.keys().collect::<Vec<_>>(), ["n1"]);
    let why = &state.left_out()["invalid"];
    assert!(why.starts_with("v[0]: "), "{why}");
}

#[test]
fn a_deleted_report_leaves_no_entries() {
    let mut state = State::default();
    state.apply(Collection::Nodes, node("n1", "a", true));
    state.apply(Collection::ClusterPolicies, near());
    state.apply(Collection::Agents, fallback_report());
    assert!(state.delete(Collection::Agents, &ObjectName::new("", "n1")));
    assert_eq!(
        format!("{:?}", state.observed.reports),
        format!("{:?}", Reports::default())
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Nodes are added and deleted: every Node is in one shard, no shard is too full, and a new
    /// Node changes one shard.
    #[test]
    fn shards_hold_every_node_once(steps in prop::collection::vec((0..1300_u32, 0..600_u32), 1..6)) {
        let mut state = State::default();
        for (first, count) in steps {
            for number in first..first + count {
                state.apply(Collection::Nodes, node(&format!("n{number}"), "a", true));
            }
            for number in (0..first).step_by(3) {
                state.delete(Collection::Nodes, &ObjectName::new("", format!("n{number}")));
            }
            settle(&mut state, NOW);
            let mut found = BTreeSet::new();
            for (_, map) in state.observed.of(Collection::Maps) {
                let nodes = map["spec"]["nodes"].as_object().unwrap();
                prop_assert!(nodes.len() <= crd::NODES_PER_SHARD);
                for name in nodes.keys() {
                    prop_assert!(found.insert(name.clone()), "{} is in two shards", name);
                }
            }
            prop_assert!(found.iter().eq(state.observed.nodes.keys()));
            let last = format!("last-{first}-{count}");
            prop_assume!(!state.observed.nodes.contains_key(&last));
            state.apply(Collection::Nodes, node(&last, "b", false));
            prop_assert_eq!(settle(&mut state, NOW).len(), 1);
        }
    }
}

/// One unknown word once dropped a whole report without a warning.
#[test]
fn the_readable_part_of_a_report_of_a_later_agent_is_used_and_the_rest_is_reported() {
    let mut state = State::default();
    state.apply(Collection::Nodes, node("n1", "a", true));
    state.apply(Collection::ClusterPolicies, near());
    let mut later = fallback_report();
    later["status"]["version"] = "9.9.9".into();
    later["status"]["phase"] = "Resting".into();
    later["status"]["policies"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "kind": "GalacticTopologyPolicy", "name": "far" }));
    state.apply(Collection::Agents, later);
    settle(&mut state, NOW);
    let status = status_of(&state, Collection::ClusterPolicies, "near");
    assert_eq!(status["programmedNodes"], "1/1");
    assert_eq!(condition(status, "Degraded")[0], "True");
    assert_eq!(
        state.unread_reports()["n1"],
        "1 of 2 policies cannot be read, the phase is unknown; the agent has the version 9.9.9: update the controller first"
    );
    state.apply(Collection::Agents, report("n1", 2));
    assert!(state.unread_reports().is_empty());
    let mut invalid = report("n1", 2);
    invalid["status"] = "fine".into();
    state.apply(Collection::Agents, invalid);
    assert!(state.unread_reports()["n1"].starts_with("the report cannot be read: "));
}

/// Writes the plan as the loop does; returns the Events to record.
fn settle_with_events(state: &mut State, now: i64) -> Vec<NewEvent> {
    let writes = state.plan(now);
    let events = writes
        .iter()
        .filter_map(|write| state.record_write(write, write.body.clone()));
    events.collect()
}

#[test]
fn a_missing_label_of_a_cluster_policy_is_one_event_and_its_return_another() {
    let mut state = State::default();
    state.apply(Collection::Nodes, node("n1", "a", true));
    let mut hard = policy(&json!({ "mode": "Hard", "levels": [{ "key": "az" }] }));
    hard["metadata"]["uid"] = "77".into();
    state.apply(Collection::ClusterPolicies, hard.clone());
    hard["metadata"]["namespace"] = "shop".into();
    state.apply(Collection::Policies, hard);
    let events = |state: &mut State| -> Vec<(ObjectName, &str, Option<String>)> {
        let events = settle_with_events(state, NOW).into_iter();
        events
            .map(|event| (event.key.0, event.key.1, event.uid))
            .collect()
    };
    let near = |reason: &'static str| (ObjectName::new("", "near"), reason, Some("77".to_owned()));
    assert_eq!(events(&mut state), [near("LevelUnknown")]);
    state.apply(Collection::Agents, report("n1", 2));
    assert_eq!(events(&mut state), [], "the condition has not changed");
    let mut labelled = node("n1", "a", true);
    labelled["metadata"]["labels"]["az"] = "a".into();
    state.apply(Collection::Nodes, labelled);
    assert_eq!(events(&mut state), [near("LevelsKnown")]);
    state.apply(Collection::Nodes, node("n1", "a", true));
    let [event] = &settle_with_events(&mut state, NOW)[..] else {
        panic!("one Event")
    };
    assert!(event.note.contains("did you mean zone?"), "{}", event.note);
    assert!(event.note.contains("not applied until"), "{}", event.note);
}

#[test]
fn the_status_of_a_policy_reports_a_label_that_no_node_has() {
    let mut state = State::default();
    state.apply(Collection::Nodes, node("n1", "a", true));
    let levels = json!({ "mode": "Hard", "levels": [{ "key": "az" }] });
    state.apply(Collection::ClusterPolicies, policy(&levels));
    settle(&mut state, NOW);
    let status = status_of(&state, Collection::ClusterPolicies, "near");
    let [known, reason, message] = condition(status, "LevelsKnown");
    assert_eq!((&*known, &*reason), ("False", "LevelUnknown"));
    assert!(message.contains("did you mean zone?"), "{message}");
    let mut labelled = node("n1", "a", true);
    labelled["metadata"]["labels"]["az"] = "a".into();
    state.apply(Collection::Nodes, labelled);
    settle(&mut state, NOW);
    let status = status_of(&state, Collection::ClusterPolicies, "near");
    assert_eq!(condition(status, "LevelsKnown")[0], "True");
}

/// With thousands of policies of a tenant, each plan read all labels of all Nodes for each policy.
#[test]
fn d13_a_label_that_no_node_has_is_compared_with_the_labels_of_nodes_once() {
    let mut state = State::default();
    for number in 0..50 {
        state.apply(
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
        state.apply(Collection::Policies, unknown(name, key));
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

    // A suggestion is kept until a label is added or removed, whatever else of Nodes changes.
    let known = state.observed.labels.meant.get_mut("pol").unwrap();
    assert_eq!(known.replace("kept".to_owned()).as_deref(), Some("pool"));
    state.apply(Collection::Nodes, node("n1", "b", true));
    state.delete(Collection::Nodes, &ObjectName::new("", "n2"));
    state.plan(NOW);
    assert_eq!(state.observed.labels.meant["pol"].as_deref(), Some("kept"));
    let mut labelled = node("n1", "b", true);
    labelled["metadata"]["labels"]["polo"] = "x".into();
    state.apply(Collection::Nodes, labelled);
    state.plan(NOW);
    assert_eq!(state.observed.labels.meant["pol"].as_deref(), Some("polo"));

    // No suggestion is kept for a deleted policy.
    for name in ["one", "two", "three"] {
        state.delete(Collection::Policies, &ObjectName::new("shop", name));
    }
    state.plan(NOW);
    assert!(state.observed.labels.meant.is_empty());
}

#[test]
fn the_consequence_of_an_unknown_level_depends_on_the_policy() {
    let mut state = State::default();
    state.apply(Collection::Nodes, node("n1", "a", true));
    let hard = json!({ "mode": "Hard", "levels": [{ "key": "example.com/typo" }] });
    let partly =
        json!({ "mode": "Hard", "levels": [{ "key": "example.com/typo" }, { "key": "zone" }] });
    let soft =
        json!({ "mode": "Prefer", "levels": [{ "key": "example.com/typo" }, { "any": true }] });
    let not_applied = "the policy is not applied until a Node has a label of its levels";
    let refuses = "the policy refuses every client until a Node has a label of its levels";
    let no_effect = "the rules for this label have no effect until a Node has it";
    for (spec, cluster, namespaced) in [
        (hard, not_applied, refuses),
        (partly, no_effect, no_effect),
        (soft, no_effect, no_effect),
    ] {
        let mut own = policy(&spec);
        state.apply(Collection::ClusterPolicies, own.clone());
        own["metadata"]["namespace"] = "shop".into();
        state.apply(Collection::Policies, own);
        settle(&mut state, NOW);
        for (collection, namespace, expected) in [
            (Collection::ClusterPolicies, "", cluster),
            (Collection::Policies, "shop", namespaced),
        ] {
            let object = &state.observed.objects[&(collection, ObjectName::new(namespace, "near"))];
            let [known, _, message] = condition(&object["status"], "LevelsKnown");
            assert_eq!(known, "False");
            let expected = format!("no Node has the label example.com/typo; {expected}");
            assert_eq!(message, expected, "{spec}");
        }
    }
}
