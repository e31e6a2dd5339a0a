//! The labels of the map: their sources, and the cost of tenants that change them.

use super::super::map_keys::{KEPT, PAUSE};
use super::*;

/// A Service as a list of metadata has it.
fn service(namespace: &str, name: &str, annotations: &[(&str, &str)]) -> Value {
    let annotations: serde_json::Map<String, Value> = annotations
        .iter()
        .map(|(name, text)| (format!("topology.ipvs-topo.io/{name}"), json!(text)))
        .collect();
    json!({ "metadata": { "namespace": namespace, "name": name, "annotations": annotations } })
}

/// A Service that prefers the same value of a label.
fn by_label(namespace: &str, label: &str) -> Value {
    service(namespace, "cart", &[("keys", &format!("{label},*"))])
}

fn name(namespace: &str) -> ObjectName {
    ObjectName::new(namespace, "cart")
}

/// A state with a Node, and complete lists.
fn listed(options: StateOptions) -> State {
    let mut state = State::new(options);
    state.apply(Collection::Nodes, node("n1", "a", true));
    state.listed(Collection::Services);
    state
}

/// The labels of the first shard, without those of every map.
fn keys(state: &State) -> Vec<String> {
    let key = (Collection::Maps, ObjectName::new("", "shard-0"));
    let keys = value::list(&state.observed.objects[&key], "/spec/keys");
    let keys = keys.iter().skip(crd::REQUIRED_KEYS.len());
    keys.map(|key| key.as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_map_holds_the_labels_of_annotations_also_those_that_no_node_has() {
    let mut state = listed(StateOptions::default());
    settle(&mut state, NOW);
    for (service, labels) in [
        (by_label("shop", "pool"), &["pool"][..]),
        (
            service("shop", "mail", &[("avoid", "example.com/row")]),
            &["example.com/row", "pool"],
        ),
        (
            service("shop", "news", &[("weights", "example.com/typo=80,*=20")]),
            &["example.com/row", "example.com/typo", "pool"],
        ),
    ] {
        assert!(state.apply(Collection::Services, service.clone()));
        assert!(!state.apply(Collection::Services, service), "nothing new");
        settle(
            &mut state,
            NOW + PAUSE * i64::try_from(labels.len()).unwrap(),
        );
        assert_eq!(keys(&state), labels);
    }
    let key = (Collection::Maps, ObjectName::new("", "shard-0"));
    assert_eq!(
        state.observed.objects[&key]["spec"]["nodes"]["n1"]["v"],
        json!(["a", "", "", "", "", "web"])
    );
    for unused in [
        service("shop", "zonal", &[("keys", "node,zone,*")]),
        service("shop", "named", &[("policy", "near")]),
        json!({ "metadata": { "namespace": "shop", "name": "plain" } }),
    ] {
        assert!(!state.apply(Collection::Services, unused));
    }
}

#[test]
fn annotations_use_only_the_labels_that_the_administrator_allows() {
    let mut state = listed(StateOptions {
        annotation_label_keys: Some(BTreeSet::from(["pool".into()])),
        ..StateOptions::default()
    });
    state.apply(Collection::Services, by_label("a", "pool"));
    state.apply(Collection::Services, by_label("b", "example.com/row"));
    settle(&mut state, NOW);
    assert_eq!(keys(&state), ["pool"]);
}

/// Agents keep the last valid version of such a Service, too.
#[test]
fn the_labels_of_a_boundary_that_became_unreadable_stay() {
    let mut state = listed(StateOptions::default());
    let hard = |keys: &str| service("shop", "cart", &[("mode", "hard"), ("keys", keys)]);
    state.apply(Collection::Services, hard("pool"));
    settle(&mut state, NOW);
    assert!(!state.apply(Collection::Services, hard("not a label!")));
    settle(&mut state, NOW + 2 * KEPT);
    assert_eq!(keys(&state), ["pool"]);
}

#[test]
fn d13_services_of_a_namespace_with_many_labels_displace_no_others_from_the_map() {
    let mut state = listed(StateOptions::default());
    for number in 0..4 {
        let many: Vec<String> = (0..15)
            .map(|label| format!("aaa.example/k{number}{label:02}"))
            .collect();
        let name = format!("cart{number}");
        let many = service("aaa", &name, &[("avoid", &many.join(","))]);
        state.apply(Collection::Services, many);
    }
    settle(&mut state, NOW);
    assert_eq!(keys(&state).len(), 29);
    state.apply(Collection::Services, by_label("shop", "zzz.example/shelf"));
    state.apply(Collection::ClusterPolicies, near());
    settle(&mut state, NOW + PAUSE);
    let keys = keys(&state);
    assert_eq!(keys.len(), 29);
    for expected in ["example.com/rack", "zzz.example/shelf"] {
        assert!(keys.iter().any(|key| key == expected), "{keys:?}");
    }
}

#[test]
fn an_unused_label_leaves_the_map_after_some_time_by_itself() {
    let mut state = listed(StateOptions::default());
    state.apply(Collection::Services, by_label("shop", "pool"));
    settle(&mut state, NOW);
    assert!(!state.waits(NOW + KEPT));
    assert!(state.delete(Collection::Services, &name("shop")));
    assert_eq!(settle(&mut state, NOW + 1_000), []);
    // It is used again for a while.
    state.apply(Collection::Services, by_label("shop", "pool"));
    assert_eq!(settle(&mut state, NOW + 2_000), []);
    state.delete(Collection::Services, &name("shop"));
    assert_eq!(settle(&mut state, NOW + 3_000), []);
    assert!(!state.waits(NOW + KEPT + 2_999));
    assert!(state.waits(NOW + KEPT + 3_000));
    assert_eq!(settle(&mut state, NOW + KEPT + 3_000).len(), 1);
    assert_eq!(keys(&state), [""; 0]);
    assert!(!state.waits(NOW + 2 * KEPT));
}

#[test]
fn d13_a_tenant_who_changes_labels_all_the_time_costs_one_shard_in_ten_seconds() {
    let mut state = listed(StateOptions::default());
    for number in 0..501 {
        state.apply(Collection::Nodes, node(&format!("n{number}"), "a", true));
    }
    settle(&mut state, NOW);
    let mut shards = 0;
    for second in 0..200 {
        let now = NOW + second * 1_000;
        let service = by_label("evil", &format!("evil.example/k{second}"));
        state.apply(Collection::Services, service);
        if second == 95 {
            let shelf = by_label("shop", "example.com/shelf");
            state.apply(Collection::Services, shelf);
            state.apply(Collection::ClusterPolicies, near());
        }
        let writes = settle(&mut state, now);
        let maps = writes.iter();
        shards += maps
            .filter(|write| write.collection == Collection::Maps)
            .count();
        let has = |label: &str| keys(&state).iter().any(|key| key == label);
        for label in ["example.com/rack", "pool"] {
            assert_eq!(has(label), second >= 95, "at once");
        }
        assert!(has("example.com/shelf") || second < 100);
    }
    // The policy of the administrator is one more change.
    assert_eq!(shards, 2 * 10 + 2);
}

#[test]
fn a_new_leader_keeps_the_labels_of_the_map_until_it_knows_who_uses_them() {
    let mut first = listed(StateOptions::default());
    first.apply(Collection::Services, by_label("shop", "pool"));
    settle(&mut first, NOW);
    let map = (Collection::Maps, ObjectName::new("", "shard-0"));
    let mut second = State::default();
    second.apply(Collection::Nodes, node("n1", "a", true));
    second.apply(Collection::Maps, first.observed.objects[&map].clone());
    assert_eq!(settle(&mut second, NOW), []);
    assert_eq!(settle(&mut second, NOW + 9 * KEPT), []);
    assert!(!second.waits(NOW + 10 * KEPT), "Services may be forbidden");
    second.listed(Collection::Services);
    assert_eq!(settle(&mut second, NOW + 10 * KEPT).len(), 1);
    assert_eq!(keys(&second), [""; 0]);
}

/// What happens between two plans.
#[derive(Debug, Clone)]
enum Change {
    /// The Service of a namespace uses these labels.
    Annotates(u8, BTreeSet<u8>),
    /// The cluster policy uses this label.
    Decides(Option<u8>),
    Passes(i64),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (0..4_u8, prop::collection::btree_set(0..40_u8, 0..12))
            .prop_map(|(namespace, labels)| Change::Annotates(namespace, labels)),
        1 => prop::option::of(0..40_u8).prop_map(Change::Decides),
        3 => prop_oneof![0..PAUSE, 0..2 * KEPT].prop_map(Change::Passes),
    ]
}

fn label(number: u8) -> String {
    format!("example.com/l{number:02}")
}

fn annotated(namespace: u8, labels: &BTreeSet<u8>) -> Value {
    let labels: Vec<String> = labels.iter().copied().map(label).collect();
    service(
        &format!("t{namespace}"),
        "cart",
        &[("avoid", &labels.join(","))],
    )
}

fn deciding(number: u8) -> Value {
    policy(&json!({ "mode": "Prefer", "levels": [{ "key": label(number) }, { "any": true }] }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Labels of administrators are in the map at once, and those of tenants after the pause. Those
    /// of tenants change at most once in a pause. Nothing changes by itself earlier than announced.
    #[test]
    fn every_used_label_is_in_the_map_after_the_pause(changes in prop::collection::vec(change(), 1..40)) {
        let mut state = listed(StateOptions::default());
        let (mut now, mut last) = (NOW, None);
        let (mut decides, mut used) = (None, BTreeMap::new());
        settle(&mut state, now);
        for change in changes {
            let before = keys(&state);
            match change {
                Change::Annotates(namespace, labels) => {
                    state.apply(Collection::Services, annotated(namespace, &labels));
                    used.insert(namespace, labels);
                }
                Change::Decides(number) => {
                    let gone = ObjectName::new("", "near");
                    state.delete(Collection::ClusterPolicies, &gone);
                    if let Some(number) = number {
                        state.apply(Collection::ClusterPolicies, deciding(number));
                    }
                    decides = number.map(label);
                }
                Change::Passes(time) => {
                    let is_settled = !state.waits(now + time);
                    now += time;
                    let writes = settle(&mut state, now);
                    prop_assert!(!is_settled || writes.is_empty(), "{writes:#?}");
                }
            }
            settle(&mut state, now);
            let after = keys(&state);
            prop_assert!(after.len() <= 29);
            if let Some(label) = &decides {
                prop_assert!(after.contains(label));
            }
            let is_of_tenants = |key: &&String| decides.as_ref() != Some(*key);
            let entered = after.iter().filter(is_of_tenants).any(|key| !before.contains(key));
            if entered {
                prop_assert!(last.is_none_or(|last| now - last >= PAUSE));
                last = Some(now);
            }
        }
        settle(&mut state, now + PAUSE);
        let used = used.into_values().flatten().map(label).chain(decides);
        let used: BTreeSet<String> = used.collect();
        let has = keys(&state).into_iter().filter(|key| used.contains(key)).count();
        prop_assert_eq!(has, used.len().min(29));
    }
}
