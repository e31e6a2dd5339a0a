//! Tests complete and interrupted lists, and which warnings are new.

use topology_core::model::{Labels, Node};

use super::*;
use crate::object::{Namespace, ServiceCidr};
use crate::source::{Options, read_text};

fn node(name: &str) -> Object {
    Object::Node(Node::new(name))
}

fn feed(index: &mut Index, events: impl IntoIterator<Item = Event>) {
    index.apply(Batch {
        events: events.into_iter().collect(),
        reports: Vec::new(),
    });
}

fn names(index: &Index) -> Vec<&str> {
    let mut names: Vec<&str> = index.snapshot().nodes().map(|node| &*node.name).collect();
    names.sort_unstable();
    names
}

const WHOLE: Event = Event::Complete(Completeness::Whole);

#[test]
fn nothing_is_ready_before_the_first_list_has_ended() {
    let mut index = Index::new(Vec::new());
    feed(&mut index, [Event::Begin, Event::Apply(node("n1"))]);
    assert_eq!(index.completeness(), None);
    feed(&mut index, [Event::Complete(Completeness::Partial)]);
    assert_eq!(index.completeness(), Some(Completeness::Partial));
    feed(&mut index, [WHOLE]);
    assert_eq!(index.completeness(), Some(Completeness::Whole));
    assert_eq!(names(&index), ["n1"]);
}

#[test]
fn a_namespace_comes_and_goes_with_its_labels() {
    let labels: Labels = [("tier".into(), "backend".into())].into_iter().collect();
    let namespace = Object::Namespace(Namespace {
        name: "shop".into(),
        labels: labels.clone(),
    });
    let key = namespace.key();
    let mut index = Index::new(Vec::new());
    feed(&mut index, [Event::Begin, Event::Apply(namespace), WHOLE]);
    assert_eq!(index.snapshot().namespace("shop"), Some(&labels));
    feed(&mut index, [Event::Delete(key)]);
    assert_eq!(index.snapshot().namespace("shop"), None);
}

#[test]
fn policies_and_drains_come_and_go() {
    let text = "
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: ClusterTopologyPolicy
metadata: {name: p}
spec: {mode: None}
---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyPolicy
metadata: {name: p, namespace: shop}
spec: {mode: None}
---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyDrain
metadata: {name: d}
spec: {match: {key: zone, values: [b]}, expiresAt: 2025-11-22T10:00:00Z}
";
    let mut index = Index::new(Vec::new());
    let loaded = read_text("a.yaml", text.as_bytes(), &Options::default()).unwrap();
    let policies = loaded.snapshot.policies().cloned();
    let mut objects: Vec<Object> = policies.map(|one| Object::Policy(Box::new(one))).collect();
    objects.extend(loaded.snapshot.drains().cloned().map(Object::Drain));
    assert_eq!(objects.len(), 3);
    let count = |index: &Index| {
        let snapshot = index.snapshot();
        snapshot.policies().count() + snapshot.drains().count()
    };
    feed(&mut index, objects.iter().cloned().map(Event::Apply));
    for (gone, object) in objects.iter().enumerate() {
        assert_eq!(count(&index), 3 - gone);
        feed(&mut index, [Event::Delete(object.key())]);
    }
    assert_eq!(count(&index), 0);
}

#[test]
fn a_new_list_deletes_what_it_does_not_name() {
    let mut index = Index::new(Vec::new());
    feed(
        &mut index,
        [
            Event::Begin,
            Event::Apply(node("n1")),
            Event::Apply(node("n2")),
            WHOLE,
        ],
    );
    feed(&mut index, [Event::Begin, Event::Apply(node("n2"))]);
    assert_eq!(names(&index), ["n1", "n2"], "not before the list has ended");
    feed(&mut index, [WHOLE]);
    assert_eq!(names(&index), ["n2"]);
}

#[test]
fn a_list_that_was_interrupted_leaks_nothing() {
    let mut index = Index::new(Vec::new());
    feed(&mut index, [Event::Begin, Event::Apply(node("n1")), WHOLE]);
    feed(&mut index, [Event::Begin, Event::Apply(node("n2"))]);
    feed(&mut index, [Event::Begin, Event::Apply(node("n3")), WHOLE]);
    assert_eq!(names(&index), ["n3"], "only the interrupted list had n2");
}

#[test]
fn an_object_that_is_there_but_unusable_survives_a_list() {
    let mut index = Index::new(Vec::new());
    let key = node("n1").key();
    feed(&mut index, [Event::Begin, Event::Apply(node("n1")), WHOLE]);
    feed(&mut index, [Event::Begin, Event::Keep(key), WHOLE]);
    assert_eq!(names(&index), ["n1"]);
}

#[test]
fn an_ignored_object_leaves_the_snapshot_and_is_listed() {
    let mut index = Index::new(Vec::new());
    let key = node("n1").key();
    feed(&mut index, [Event::Begin, Event::Apply(node("n1")), WHOLE]);
    feed(&mut index, [Event::Ignore(key.clone(), Ignored::Headless)]);
    assert!(names(&index).is_empty());
    assert_eq!(index.ignored().get(&key), Some(&Ignored::Headless));
    feed(&mut index, [Event::Delete(key)]);
    assert!(index.ignored().is_empty());
}

#[test]
fn ranges_come_from_objects_and_else_from_the_flag() {
    let flag: IpNetwork = "10.96.0.0/12".parse().unwrap();
    let object: IpNetwork = "10.112.0.0/16".parse().unwrap();
    let mut index = Index::new(vec![flag]);
    assert_eq!(index.snapshot().service_cidrs(), [flag]);
    let cidr = Object::ServiceCidr(ServiceCidr {
        name: "more".into(),
        cidrs: vec![object],
    });
    let key = cidr.key();
    feed(&mut index, [Event::Begin, Event::Apply(cidr), WHOLE]);
    assert_eq!(index.snapshot().service_cidrs(), [object]);
    feed(&mut index, [Event::Delete(key)]);
    assert_eq!(index.snapshot().service_cidrs(), [flag]);
}

#[test]
fn a_warning_is_new_once_even_when_its_line_moves() {
    let report = |warnings: &[(u32, &str)]| FileReport {
        file: "a.yaml".into(),
        warnings: warnings
            .iter()
            .map(|(line, message)| Warning::of_file(&"a.yaml".into(), *line, *message, ""))
            .collect(),
        skipped: BTreeMap::from([("Pod".into(), 2)]),
    };
    let mut index = Index::new(Vec::new());
    assert_eq!(index.apply(report(&[(1, "x")]).into()).len(), 1);
    assert_eq!(index.apply(report(&[(5, "x")]).into()), []);
    let new = index.apply(report(&[(5, "x"), (9, "y")]).into());
    assert_eq!(
        new.iter()
            .map(|warning| &*warning.message)
            .collect::<Vec<_>>(),
        ["y"]
    );
    assert_eq!(index.warnings().count(), 2);
    assert_eq!(index.skipped(), BTreeMap::from([("Pod".into(), 2)]));
    index.apply(FileReport::empty(&"a.yaml".into()).into());
    assert_eq!(index.warnings().count(), 0);
}
