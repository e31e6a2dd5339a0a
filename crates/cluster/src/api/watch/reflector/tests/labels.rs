//! Tests which labels of other Nodes are kept, and which objects wait for other labels.

use super::*;

const SPARE: &str = "example.com/spare";
const RACK: &str = "example.com/rack";
const ROW: &str = "example.com/row";

pub(super) fn labelled(name: &str, labels: &[(&str, &str)]) -> Node {
    let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
    let metadata = serde_json::json!({"metadata": {"name": name, "labels": labels}});
    object(NODES, &metadata.to_string())
}

/// A policy with one level, optionally limited to Nodes that have the label `selected`.
pub(super) fn policy(name: &str, key: &str, selected: Option<&str>) -> Node {
    let exists = |key| serde_json::json!([{"key": key, "operator": "Exists"}]);
    let selector = selected.map(|key| serde_json::json!({"matchExpressions": exists(key)}));
    let spec = serde_json::json!({
        "mode": "Hard", "levels": [{"key": key}], "nodeSelector": selector.unwrap_or_default(),
    });
    let policy = serde_json::json!({"metadata": {"name": name}, "spec": spec});
    object(POLICIES, &policy.to_string())
}

impl Bench {
    fn labels(&self, name: &str) -> String {
        let node = self.index.snapshot().node(name);
        let labels = node.into_iter().flat_map(|node| node.labels.iter());
        let labels: Vec<String> = labels
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        labels.join(" ")
    }

    pub(super) fn labels_in_use(&self) -> Vec<String> {
        let policies = self.index.snapshot().policies();
        let keys = policies.flat_map(|one| one.policy.label_keys());
        keys.map(ToString::to_string).collect()
    }
}

#[test]
fn an_update_of_unused_labels_costs_nothing() {
    let mut bench = Bench::listed(&[("n1", "a"), ("n2", "b")]);
    bench.reflector.apply_object(
        POLICIES,
        &policy("near", "topology.kubernetes.io/zone", None),
    );
    bench.deliver();
    drop(bench.index.snapshot_mut().take_dirty("n1"));
    for value in 0..100 {
        let labels = [
            ("topology.kubernetes.io/zone", "b"),
            (SPARE, &*value.to_string()),
        ];
        bench
            .reflector
            .apply_object(NODES, &labelled("n2", &labels));
        assert_eq!(bench.reflector.take(), None, "no batch is sent");
    }
    assert_eq!(bench.labels("n2"), "topology.kubernetes.io/zone=b");
    assert!(bench.index.snapshot_mut().take_dirty("n1").is_empty());
    let own = labelled("n1", &[("topology.kubernetes.io/zone", "a"), (SPARE, "1")]);
    bench.reflector.apply_object(NODES, &own);
    bench.deliver();
    assert_eq!(
        bench.labels("n1"),
        format!("{SPARE}=1 topology.kubernetes.io/zone=a")
    );
}

#[test]
fn a_policy_with_a_new_label_stays_as_it_was_until_nodes_were_relisted() {
    let mut bench = Bench::listed(&[]);
    bench
        .reflector
        .apply_object(POLICIES, &policy("near", ROW, None));
    let nodes =
        || ["n2", "n3"].map(|name| labelled(name, &[(RACK, "r"), (ROW, "w"), (SPARE, "s")]));
    bench.list(NODES, nodes());
    bench.deliver();
    assert_eq!(bench.labels_in_use(), [ROW]);
    assert!(bench.reflector.label_owner_waiting().is_none());

    bench
        .reflector
        .apply_object(POLICIES, &policy("near", RACK, Some(SPARE)));
    assert_eq!(bench.reflector.take(), None);
    assert!(bench.reflector.label_owner_waiting().is_some());
    bench.reflector.request_nodes();
    assert!(
        bench.reflector.label_owner_waiting().is_none(),
        "requested once"
    );
    bench.reflector.begin(NODES);
    bench.reflector.apply_object(NODES, &nodes()[0]);
    bench.deliver();
    assert_eq!(bench.labels("n2"), format!("{RACK}=r {ROW}=w {SPARE}=s"));
    assert_eq!(bench.labels("n3"), format!("{ROW}=w"));
    assert_eq!(bench.labels_in_use(), [ROW], "one Node is not listed yet");
    bench.reflector.apply_object(NODES, &nodes()[1]);
    bench.reflector.listed(NODES, Duration::ZERO);
    let (events, _) = bench.deliver();
    assert!(matches!(
        &events[..],
        [
            Event::Apply(Object::Node(_)),
            Event::Apply(Object::Policy(_))
        ]
    ));
    assert_eq!(bench.labels_in_use(), [RACK]);

    // The next list drops labels that are no longer in use.
    bench.list(NODES, nodes());
    bench.deliver();
    assert_eq!(bench.labels("n3"), format!("{RACK}=r {SPARE}=s"));
    bench
        .reflector
        .delete_object(POLICIES, &policy("near", RACK, None));
    bench.list(NODES, nodes());
    bench.deliver();
    assert_eq!(bench.labels("n3"), "");
}

#[test]
fn a_label_that_comes_into_use_during_a_list_is_requested_after_it() {
    let mut bench = Bench::listed(&[]);
    bench.reflector.begin(NODES);
    bench
        .reflector
        .apply_object(POLICIES, &policy("near", RACK, None));
    assert!(
        bench.reflector.label_owner_waiting().is_none(),
        "a list is not interrupted"
    );
    bench.reflector.listed(NODES, Duration::ZERO);
    assert!(bench.reflector.label_owner_waiting().is_some());
    bench
        .reflector
        .delete_object(POLICIES, &policy("near", RACK, None));
    assert!(bench.reflector.label_owner_waiting().is_none());
}

#[test]
fn the_start_waits_for_objects_that_wait_for_labels() {
    let mut bench = Bench::new();
    bench.list(NODES, [labelled("n2", &[(RACK, "r")])]);
    for id in listed_always().skip(1) {
        assert!(!bench.reflector.knows_label_usage(), "drains come last");
        let near = (id == POLICIES).then(|| policy("near", RACK, None));
        bench.list(id, near);
    }
    bench.reflector.complete_partially();
    bench.deliver();
    assert!(bench.reflector.knows_label_usage() && bench.reflector.label_owner_waiting().is_some());
    assert_eq!(bench.index.completeness(), None);
    bench
        .reflector
        .apply_object(POLICIES, &policy("near", ROW, None));
    bench
        .reflector
        .apply_object(POLICIES, &policy("near", RACK, None));
    bench.deliver();
    assert_eq!(bench.index.completeness(), None);
    bench.list(NODES, [labelled("n2", &[(RACK, "r")])]);
    bench.deliver();
    assert_eq!(bench.index.completeness(), Some(Completeness::Whole));
    assert_eq!(
        (bench.labels_in_use(), bench.labels("n2")),
        (vec![RACK.to_owned()], format!("{RACK}=r"))
    );
}

#[test]
fn d13_a_service_that_waits_for_labels_changes_except_its_policy() {
    let mut bench = Bench::listed(&[("n1", "a"), ("n2", "b")]);
    let used = |bench: &Bench| {
        let name = ObjectName::new("shop", "cart");
        let service = bench.index.snapshot().service(&name).unwrap();
        let keys = service.policy.iter().flat_map(|policy| policy.label_keys());
        let keys: Vec<String> = keys.map(ToString::to_string).collect();
        (
            keys.join(","),
            service.faults,
            u32::from(service.ports[0].port.get()),
        )
    };
    let zone = "topology.kubernetes.io/zone";
    // With a policy before, and without one.
    for (before, keys) in [(annotated("zone", 80), zone), (service("cart", 80), "")] {
        bench.reflector.apply_object(SERVICES, &before);
        bench.deliver();
        for port in [81, 82] {
            bench
                .reflector
                .apply_object(SERVICES, &annotated(RACK, port));
            bench.deliver();
            assert_eq!(used(&bench), (keys.to_owned(), Faults::None, port));
            assert_eq!(bench.index.warnings().count(), 0, "a list is under way");
        }
        bench.reflector.request_nodes();
        bench.list(NODES, [labelled("n1", &[(RACK, "r")])]);
        bench.deliver();
        assert_eq!(used(&bench), (RACK.to_owned(), Faults::None, 82));
        bench.reflector.delete_object(SERVICES, &before);
        bench.list(NODES, [labelled("n1", &[])]);
        bench.deliver();
    }
}

#[test]
fn a_label_does_not_count_as_missing_on_all_nodes_before_it_was_read() {
    let mut bench = Bench::listed(&[("n1", "a"), ("n2", "b")]);
    bench.reflector.apply_object(SERVICES, &annotated(RACK, 80));
    bench.deliver();
    assert!(bench.index.snapshot().has_label(RACK));
    drop(bench.index.snapshot_mut().take_dirty("n1"));
    bench.reflector.request_nodes();
    bench.list(NODES, [node("n1", "a")]);
    bench.deliver();
    assert!(!bench.index.snapshot().has_label(RACK));
    let dirty = bench.index.snapshot_mut().take_dirty("n1");
    assert!(dirty.services.contains(&ObjectName::new("shop", "cart")));
    // A label that is no longer used is dropped.
    bench.reflector.apply_object(SERVICES, &annotated(ROW, 80));
    bench.deliver();
    bench.reflector.delete_object(SERVICES, &annotated(ROW, 80));
    bench.deliver();
    assert!(!bench.index.snapshot().has_label(ROW));
}
