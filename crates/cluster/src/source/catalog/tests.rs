//! Tests the events and warnings after files are added, changed and removed.

mod histories;

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Arc;

use super::*;
use crate::convert::Context;
use crate::object::Object;
use crate::source::parse::ParsedObject;
use crate::source::text::{self, Text};
use crate::warning::{Code, Warning};

/// Files in memory, under a catalog.
#[derive(Default)]
struct Script {
    catalog: Catalog,
    disk: Memory,
}

#[derive(Default)]
struct Memory {
    texts: BTreeMap<Arc<str>, String>,
    context: Context,
    /// In the order of reading.
    reads: Vec<String>,
    /// How many objects were parsed.
    taken: usize,
    /// The content of the next file before it changes during the read.
    false_start: Option<String>,
}

impl Files for Memory {
    fn read(
        &mut self,
        file: &Arc<str>,
        known: &Text,
        take: &mut dyn FnMut(ParsedObject),
    ) -> Result<Option<Text>, Warning> {
        self.reads.push(file.to_string());
        if let Some(text) = self.false_start.take() {
            text::read(file, Cursor::new(text), known, &mut self.context, take)?;
        }
        let Some(content) = self.texts.get(file) else {
            return Ok(None);
        };
        let taken = &mut self.taken;
        let mut count = |found| {
            *taken += 1;
            take(found);
        };
        let content = Cursor::new(content);
        text::read(file, content, known, &mut self.context, &mut count).map(Some)
    }
}

impl Script {
    /// Writes files (`None` deletes a file). Returns a line for each event and warning.
    fn step(&mut self, files: &[(&str, Option<&str>)]) -> Vec<String> {
        for (name, text) in files {
            match text {
                Some(text) => self.disk.texts.insert((*name).into(), (*text).to_owned()),
                None => self.disk.texts.remove(*name),
            };
        }
        self.disk.reads.clear();
        self.disk.taken = 0;
        let names = files.iter().map(|(name, _)| (*name).into()).collect();
        let (mut events, mut reports) = (Vec::new(), Vec::new());
        self.catalog.update(names, &mut self.disk, &mut |batch| {
            events.extend(batch.events);
            reports.extend(batch.reports);
        });
        let warnings = reports.into_iter().flat_map(|report| report.warnings);
        events
            .iter()
            .map(show)
            .chain(warnings.map(|warning| warning.to_string()))
            .collect()
    }
}

fn show(event: &Event) -> String {
    match event {
        Event::Apply(Object::Node(node)) => {
            format!(
                "apply {} {}",
                node.name,
                node.labels.get("v").map_or("-", |value| &**value)
            )
        }
        Event::Apply(object) => format!("apply {}", object.key()),
        Event::Delete(key) => format!("delete {key}"),
        Event::Ignore(key, reason) => format!("ignore {key} {reason}"),
        Event::Keep(key) => format!("keep {key}"),
        Event::Begin | Event::Unread(_) | Event::Triggered(_) | Event::Complete(_) => {
            panic!("a catalog does not send {event:?}")
        }
    }
}

fn node(name: &str, version: u32) -> String {
    format!(
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{v: \"{version}\"}}}}\n"
    )
}

const NOTHING: [&str; 0] = [];

#[test]
fn only_differences_are_sent() {
    let mut script = Script::default();
    let first = node("n1", 1) + &node("n2", 1) + &node("n3", 1);
    assert_eq!(
        script.step(&[("a", Some(&first))]),
        ["apply n1 1", "apply n2 1", "apply n3 1"]
    );
    assert_eq!(script.step(&[("a", Some(&first))]), NOTHING);
    let second = node("n1", 1) + &node("n2", 2) + &node("n4", 1);
    assert_eq!(
        script.step(&[("a", Some(&second))]),
        ["apply n2 2", "delete Node n3", "apply n4 1"]
    );
    assert_eq!(
        script.step(&[("a", None)]),
        ["delete Node n1", "delete Node n2", "delete Node n4"]
    );
    assert_eq!(script.step(&[("a", None)]), NOTHING);
}

#[test]
fn a_change_of_unused_fields_sends_nothing() {
    let mut script = Script::default();
    script.step(&[("a", Some(&node("n1", 1)))]);
    let annotated = node("n1", 1).replace(
        "labels:",
        "annotations: {a: b}, resourceVersion: \"7\", labels:",
    );
    assert_eq!(script.step(&[("a", Some(&annotated))]), NOTHING);
}

#[test]
fn a_file_that_cannot_be_parsed_changes_nothing_and_gives_a_warning() {
    let mut script = Script::default();
    script.step(&[("a", Some(&node("n1", 1)))]);
    let broken = node("n1", 2) + "---\nkind: [\n";
    let sent = script.step(&[("a", Some(&broken))]);
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(
        sent[0].starts_with("a:") && sent[0].contains("not valid YAML"),
        "{sent:?}"
    );
    assert_eq!(script.step(&[("a", Some(&node("n1", 2)))]), ["apply n1 2"]);
}

#[test]
fn half_a_file_that_is_valid_yaml_deletes_nothing() {
    let mut script = Script::default();
    let whole = node("n1", 1) + &node("n2", 1);
    script.step(&[("a", Some(&whole))]);
    let half = node("n1", 2) + "---\napiVersion: v1\nkind: Node\nmetadata:\n";
    let sent = script.step(&[("a", Some(&half))]);
    assert_eq!(sent[0], "apply n1 2");
    assert!(
        sent.iter()
            .any(|line| line.starts_with("a: Node n2: not in the file any more, but kept")),
        "{sent:?}"
    );
    assert!(
        !sent.iter().any(|line| line.starts_with("delete")),
        "{sent:?}"
    );
    assert_eq!(
        script.step(&[("a", Some(&node("n1", 2)))]),
        ["delete Node n2"]
    );
}

#[test]
fn an_object_that_becomes_invalid_stays_as_it_was_and_gives_a_warning() {
    let mut script = Script::default();
    let good = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}\n";
    let bad = good.replace("port: 80", "port: 0");
    assert_eq!(
        script.step(&[("a", Some(good))]),
        ["apply Service default/s"]
    );
    let sent = script.step(&[("a", Some(&bad))]);
    assert_eq!(sent[0], "keep Service default/s");
    let stays = "a:1: Service default/s: cannot be used as it is now; its last good version stays in use; see the other warnings about it";
    assert!(sent.iter().any(|line| line == stays), "{sent:?}");
    assert_eq!(
        script.step(&[("a", Some(good))]),
        NOTHING,
        "the good version is in use"
    );
    script.step(&[("a", Some(&bad))]);
    assert_eq!(
        script.step(&[("a", Some(""))]),
        ["delete Service default/s"]
    );
}

#[test]
fn a_policy_and_a_drain_that_become_invalid_stay_as_they_were() {
    let mut script = Script::default();
    let policy = "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: ClusterTopologyPolicy\nmetadata: {name: p}\nspec: {mode: Hard, levels: [{key: zone}]}\n";
    let drain = "---\napiVersion: topology.ipvs-topo.io/v1alpha1\nkind: TopologyDrain\nmetadata: {name: d}\nspec: {match: {key: zone, values: [b]}, expiresAt: 2025-11-22T10:00:00Z}\n";
    let good = policy.to_owned() + drain;
    let sent = script.step(&[("a", Some(&good))]);
    assert_eq!(
        sent,
        ["apply ClusterTopologyPolicy p", "apply TopologyDrain d"]
    );
    let bad = good
        .replace("mode: Hard", "mode: Harder")
        .replace("values: [b]", "values: []");
    let sent = script.step(&[("a", Some(&bad))]);
    assert_eq!(
        sent[..2],
        ["keep ClusterTopologyPolicy p", "keep TopologyDrain d"]
    );
    let stays = sent
        .iter()
        .filter(|line| line.contains("its last good version stays in use"));
    assert_eq!(stays.count(), 2, "{sent:?}");
    let sent = script.step(&[("a", None)]);
    assert_eq!(
        sent,
        ["delete ClusterTopologyPolicy p", "delete TopologyDrain d"]
    );
}

#[test]
fn an_invalid_object_that_was_never_good_is_named_and_can_go() {
    let mut script = Script::default();
    let bad = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {}\n";
    assert_eq!(
        script.step(&[("a", Some(bad))])[0],
        "ignore Service default/s without a cluster IP"
    );
    let bad = "apiVersion: v1\nkind: Service\nmetadata: {name: t}\n";
    assert_eq!(
        script.step(&[("b", Some(bad))])[0],
        "keep Service default/t"
    );
    assert_eq!(script.step(&[("b", None)]), ["delete Service default/t"]);
}

#[test]
fn a_service_of_another_proxy_is_ignored_kp_in_06() {
    let mut script = Script::default();
    let ours = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}\n";
    let theirs = ours.replace(
        "{name: s}",
        "{name: s, labels: {service.kubernetes.io/service-proxy-name: x}}",
    );
    script.step(&[("a", Some(ours))]);
    let sent = script.step(&[("a", Some(&theirs))]);
    assert_eq!(
        sent,
        [
            "ignore Service default/s left to another proxy by its label service.kubernetes.io/service-proxy-name"
        ]
    );
    assert_eq!(
        script.step(&[("a", Some(ours))]),
        ["apply Service default/s"]
    );
}

#[test]
fn the_last_file_by_path_is_used_in_any_order_of_arrival() {
    let mut script = Script::default();
    assert_eq!(script.step(&[("b", Some(&node("n1", 2)))]), ["apply n1 2"]);
    let sent = script.step(&[("a", Some(&node("n1", 1)))]);
    assert_eq!(
        sent,
        ["a:2: Node n1: defined again at b:2; the later definition is used; remove one of the two"]
    );
    assert_eq!(script.step(&[("c", Some(&node("n1", 3)))])[0], "apply n1 3");
    drop(script.catalog.list_ended());
    assert_eq!(
        script.step(&[("b", Some(&node("n1", 20)))]).len(),
        2,
        "two losers, no event"
    );
}

#[test]
fn after_the_last_copy_is_deleted_the_copy_before_it_is_used() {
    let mut script = Script::default();
    let first = node("n0", 1) + &node("n1", 1);
    script.step(&[("a", Some(&first))]);
    assert_eq!(script.step(&[("b", Some(&node("n1", 2)))])[0], "apply n1 2");
    assert_eq!(script.step(&[("b", None)]), ["apply n1 1"]);
    assert_eq!(script.disk.reads, ["b", "a"], "its content was not kept");
    let twice = node("n2", 1) + &node("n2", 2);
    script.step(&[("c", Some(&twice))]);
    assert_eq!(script.step(&[("c", Some(&node("n2", 1)))]), ["apply n2 1"]);
}

#[test]
fn equal_copies_are_not_sent_again_when_one_is_deleted() {
    let mut script = Script::default();
    script.step(&[("a", Some(&node("n1", 1))), ("b", Some(&node("n1", 1)))]);
    assert_eq!(script.step(&[("b", None)]), NOTHING);
    assert_eq!(script.step(&[("a", None)]), ["delete Node n1"]);
}

#[test]
fn an_object_that_moves_between_files_is_not_deleted_in_between() {
    let mut script = Script::default();
    script.step(&[("a", Some(&node("n1", 1)))]);
    assert_eq!(
        script.step(&[("a", None), ("b", Some(&node("n1", 1)))]),
        NOTHING
    );
    assert_eq!(
        script.step(&[("b", Some("")), ("c", Some(&node("n1", 2)))]),
        ["apply n1 2"]
    );
}

#[test]
fn lines_in_warnings_follow_the_text() {
    let mut script = Script::default();
    let bad = "---\napiVersion: v1\nkind: Node\nmetadata: {name: n2, labels: x}\n";
    let sent = script.step(&[("a", Some(&(node("n1", 1) + bad)))]);
    assert!(
        sent[2].starts_with("a:8: Node n2: metadata.labels"),
        "{sent:?}"
    );
    let sent = script.step(&[("a", Some(&("# new\n".to_owned() + &node("n1", 1) + bad)))]);
    assert!(
        sent[0].starts_with("a:9: Node n2: metadata.labels"),
        "{sent:?}"
    );
}

#[test]
fn a_file_never_read_makes_the_list_partial_until_it_is() {
    let mut script = Script::default();
    script.step(&[("a", Some("[")), ("b", Some(&node("n1", 1)))]);
    assert_eq!(script.catalog.completeness(), Completeness::Partial);
    assert!(!script.catalog.is_useless());
    script.step(&[("a", Some(""))]);
    assert_eq!(script.catalog.completeness(), Completeness::Whole);
    script.step(&[("a", Some("["))]);
    assert_eq!(
        script.catalog.completeness(),
        Completeness::Whole,
        "its last content is known"
    );
}

#[test]
fn a_first_reading_that_starts_again_leaves_nothing_behind() {
    let mut script = Script::default();
    script.disk.false_start = Some(node("n1", 1) + &node("n2", 1));
    let sent = script.step(&[("a", Some(&node("n1", 2)))]);
    assert_eq!(
        sent,
        ["apply n1 1", "apply n2 1", "apply n1 2", "delete Node n2"]
    );
}

#[test]
fn objects_of_a_broken_file_are_deleted_again() {
    let mut script = Script::default();
    let sent = script.step(&[("a", Some(&(node("n1", 1) + "---\n[")))]);
    assert_eq!(sent[..2], ["apply n1 1", "delete Node n1"]);
    assert_eq!(script.step(&[("a", Some(&node("n1", 1)))]), ["apply n1 1"]);
}

#[test]
fn after_the_first_list_new_files_are_compared_as_one() {
    let mut script = Script::default();
    script.step(&[("b", Some(&node("n1", 1)))]);
    script.catalog.list_ended();
    assert_eq!(
        script.step(&[("a", Some(&node("n1", 1))), ("b", None)]),
        NOTHING
    );
    let sent = script.step(&[("c", Some(&(node("n3", 1) + "---\n[")))]);
    assert_eq!(
        sent.len(),
        1,
        "a broken file gives only a warning: {sent:?}"
    );
}

#[test]
fn only_the_parts_that_changed_are_parsed_again() {
    let mut script = Script::default();
    let many: String = (0..1000)
        .map(|index| node(&format!("n{index}"), 1))
        .collect();
    script.step(&[("a", Some(&many))]);
    assert_eq!(script.disk.taken, 1000);
    script.step(&[(
        "a",
        Some(&many.replacen("n500, labels: {v: \"1\"}", "n500, labels: {v: \"2\"}", 1)),
    )]);
    assert_eq!(script.disk.taken, 1);
}

#[test]
fn d13_up_to_twenty_repeated_objects_are_named_and_the_rest_counted() {
    let mut script = Script::default();
    let many: String = (0..500)
        .map(|number| node(&format!("n{number}"), 1))
        .collect();
    let twice = many.clone() + &many;
    let sent = script.step(&[("a", Some(&twice))]);
    let again: Vec<&String> = sent
        .iter()
        .filter(|line| line.contains("defined again"))
        .collect();
    assert_eq!(again.len(), 21, "{again:?}");
    assert!(
        again.iter().any(|line| line.contains("480 more objects")),
        "{again:?}"
    );
}

#[test]
fn d13_many_files_with_one_object_take_linear_time() {
    const FILES: usize = 3000;
    let mut script = Script::default();
    let began = std::time::Instant::now();
    let files: Vec<String> = (0..FILES).map(|number| format!("f{number:05}")).collect();
    let text = node("n1", 1);
    for name in &files {
        script.step(&[(name, Some(&text))]);
    }
    let (completeness, reports) = script.catalog.list_ended();
    assert_eq!(completeness, Completeness::Whole);
    let warnings: Vec<Warning> = reports
        .into_iter()
        .flat_map(|report| report.warnings)
        .collect();
    assert_eq!(warnings.len(), FILES - 1, "the last is used");
    let named = warnings.iter().filter(|one| one.subject.key().is_some());
    assert_eq!(named.count(), 100);
    assert!(warnings.iter().all(|one| one.code == Code::Object));
    // All files in one update, then all deleted.
    let all: Vec<(&str, Option<&str>)> = files.iter().map(|name| (&**name, Some(&*text))).collect();
    assert!(script.step(&all).len() < FILES, "reports, and no event");
    let all: Vec<(&str, Option<&str>)> = files.iter().map(|name| (&**name, None)).collect();
    assert_eq!(script.step(&all), ["delete Node n1"]);
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}
