//! The labels of other Nodes that are kept, and what waits for those that were not.

use super::*;

const SPARE: &str = "example.com/spare";
const RACK: &str = "example.com/rack";
const ROW: &str = "example.com/row";

/// A Node with labels.
pub(super) fn labelled(name: &str, labels: &[(&str, &str)]) -> Node {
    let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
    let metadata = serde_json::json!({"metadata": {"name": name, "labels": labels}});
    object(NODES, &metadata.to_string())
}

/// A policy that goes by one label, and is for the Nodes with another if one is named.
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
    /// The labels that are known of a Node.
    fn labels(&self, name: &str) -> String {
        let node = self.index.snapshot().node(name);
        let labels = node.into_iter().flat_map(|node| node.labels.iter());
        let labels: Vec<String> = labels
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        labels.join(" ")
    }

    /// What each policy that decides goes by.
    pub(super) fn going_by(&self) -> Vec<String> {
        let policies = self.index.snapshot().policies();
        let keys = policies.flat_map(|one| one.policy.label_keys());
        keys.map(ToString::to_string).collect()
    }
}

#[test]
fn an_update_of_labels_that_nothing_goes_by_costs_nothing() {
    let mut bench = Bench::listed(&[("n1", "a"), ("n2", "b")]);
    bench.reflector.exists(
        POLICIES,
        &policy("near", "topology.kubernetes.io/zone", None),
    );
    bench.tell();
    drop(bench.index.snapshot_mut().take_dirty("n1"));
    for value in 0..100 {
        let labels = [
            ("topology.kubernetes.io/zone", "b"),
            (SPARE, &*value.to_string()),
        ];
        bench.reflector.exists(NODES, &labelled("n2", &labels));
        assert_eq!(bench.reflector.take(), None, "nobody is woken");
    }
    assert_eq!(bench.labels("n2"), "topology.kubernetes.io/zone=b");
    assert!(bench.index.snapshot_mut().take_dirty("n1").is_empty());
    let own = labelled("n1", &[("topology.kubernetes.io/zone", "a"), (SPARE, "1")]);
    bench.reflector.exists(NODES, &own);
    bench.tell();
    assert_eq!(
        bench.labels("n1"),
        format!("{SPARE}=1 topology.kubernetes.io/zone=a")
    );
}

#[test]
fn what_goes_by_a_new_label_decides_as_before_until_all_nodes_were_read_again() {
    let mut bench = Bench::listed(&[]);
    bench.reflector.exists(POLICIES, &policy("near", ROW, None));
    let nodes =
        || ["n2", "n3"].map(|name| labelled(name, &[(RACK, "r"), (ROW, "w"), (SPARE, "s")]));
    bench.list(NODES, nodes());
    bench.tell();
    assert_eq!(bench.going_by(), [ROW]);
    assert!(bench.reflector.label_owner_waiting().is_none());

    bench
        .reflector
        .exists(POLICIES, &policy("near", RACK, Some(SPARE)));
    assert_eq!(bench.reflector.take(), None);
    assert!(bench.reflector.label_owner_waiting().is_some());
    bench.reflector.ask_for_nodes();
    assert!(
        bench.reflector.label_owner_waiting().is_none(),
        "asked for once"
    );
    bench.reflector.begin(NODES);
    bench.reflector.exists(NODES, &nodes()[0]);
    bench.tell();
    assert_eq!(bench.labels("n2"), format!("{RACK}=r {ROW}=w {SPARE}=s"));
    assert_eq!(bench.labels("n3"), format!("{ROW}=w"));
    assert_eq!(bench.going_by(), [ROW], "not all are known");
    bench.reflector.exists(NODES, &nodes()[1]);
    bench.reflector.listed(NODES, Duration::ZERO);
    let (events, _) = bench.tell();
    assert!(matches!(
        &events[..],
        [
            Event::Apply(Object::Node(_)),
            Event::Apply(Object::Policy(_))
        ]
    ));
    assert_eq!(bench.going_by(), [RACK]);

    // What nothing goes by any more goes with the next list.
    bench.list(NODES, nodes());
    bench.tell();
    assert_eq!(bench.labels("n3"), format!("{RACK}=r {SPARE}=s"));
    bench.reflector.gone(POLICIES, &policy("near", RACK, None));
    bench.list(NODES, nodes());
    bench.tell();
    assert_eq!(bench.labels("n3"), "");
}

#[test]
fn a_label_that_comes_into_use_while_nodes_are_read_is_asked_for_after_that() {
    let mut bench = Bench::listed(&[]);
    bench.reflector.begin(NODES);
    bench
        .reflector
        .exists(POLICIES, &policy("near", RACK, None));
    assert!(
        bench.reflector.label_owner_waiting().is_none(),
        "a list that is read is not broken off"
    );
    bench.reflector.listed(NODES, Duration::ZERO);
    assert!(bench.reflector.label_owner_waiting().is_some());
    bench.reflector.gone(POLICIES, &policy("near", RACK, None));
    assert!(bench.reflector.label_owner_waiting().is_none());
}

#[test]
fn at_the_start_nothing_is_programmed_without_what_waits_for_labels() {
    let mut bench = Bench::new();
    bench.list(NODES, [labelled("n2", &[(RACK, "r")])]);
    for id in listed_always().skip(1) {
        assert!(!bench.reflector.knows_label_usage(), "drains come last");
        let near = (id == POLICIES).then(|| policy("near", RACK, None));
        bench.list(id, near);
    }
    bench.reflector.settle_for_less();
    bench.tell();
    assert!(bench.reflector.knows_label_usage() && bench.reflector.label_owner_waiting().is_some());
    assert_eq!(bench.index.completeness(), None);
    bench.reflector.exists(POLICIES, &policy("near", ROW, None));
    bench
        .reflector
        .exists(POLICIES, &policy("near", RACK, None));
    bench.tell();
    assert_eq!(bench.index.completeness(), None);
    bench.list(NODES, [labelled("n2", &[(RACK, "r")])]);
    bench.tell();
    assert_eq!(bench.index.completeness(), Some(Completeness::Whole));
    assert_eq!(
        (bench.going_by(), bench.labels("n2")),
        (vec![RACK.to_owned()], format!("{RACK}=r"))
    );
}

#[test]
fn d13_a_service_that_waits_for_labels_follows_in_all_but_its_policy() {
    let mut bench = Bench::listed(&[("n1", "a"), ("n2", "b")]);
    let asked = |bench: &Bench| {
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
        bench.reflector.exists(SERVICES, &before);
        bench.tell();
        for port in [81, 82] {
            bench.reflector.exists(SERVICES, &annotated(RACK, port));
            bench.tell();
            assert_eq!(asked(&bench), (keys.to_owned(), Faults::None, port));
            assert_eq!(
                bench.index.warnings().count(),
                0,
                "it waits for a list on its way"
            );
        }
        bench.reflector.ask_for_nodes();
        bench.list(NODES, [labelled("n1", &[(RACK, "r")])]);
        bench.tell();
        assert_eq!(asked(&bench), (RACK.to_owned(), Faults::None, 82));
        bench.reflector.gone(SERVICES, &before);
        bench.list(NODES, [labelled("n1", &[])]);
        bench.tell();
    }
}

#[test]
fn a_label_is_not_said_to_be_on_no_node_before_it_was_read() {
    let mut bench = Bench::listed(&[("n1", "a"), ("n2", "b")]);
    bench.reflector.exists(SERVICES, &annotated(RACK, 80));
    bench.tell();
    assert!(bench.index.snapshot().has_label(RACK));
    drop(bench.index.snapshot_mut().take_dirty("n1"));
    bench.reflector.ask_for_nodes();
    bench.list(NODES, [node("n1", "a")]);
    bench.tell();
    assert!(!bench.index.snapshot().has_label(RACK));
    let dirty = bench.index.snapshot_mut().take_dirty("n1");
    assert!(dirty.services.contains(&ObjectName::new("shop", "cart")));
    // What is not used any more is not held for long.
    bench.reflector.exists(SERVICES, &annotated(ROW, 80));
    bench.tell();
    bench.reflector.gone(SERVICES, &annotated(ROW, 80));
    bench.tell();
    assert!(!bench.index.snapshot().has_label(ROW));
}
