//! Scripts: files that come, change and go, and what is told each time.

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
    /// The files that were read, in order.
    reads: Vec<String>,
    /// How many objects were parsed.
    taken: usize,
    /// What the next file said before it changed under the reader.
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
    /// Writes files (`None` deletes one) and returns what is told, one line each.
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
        Event::Begin | Event::Unread(_) | Event::Complete(_) => {
            panic!("a catalog does not say {event:?}")
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
fn only_differences_are_told() {
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
fn what_does_not_count_in_an_object_is_no_difference() {
    let mut script = Script::default();
    script.step(&[("a", Some(&node("n1", 1)))]);
    let annotated = node("n1", 1).replace(
        "labels:",
        "annotations: {a: b}, resourceVersion: \"7\", labels:",
    );
    assert_eq!(script.step(&[("a", Some(&annotated))]), NOTHING);
}

#[test]
fn a_file_that_cannot_be_parsed_changes_nothing_and_says_so() {
    let mut script = Script::default();
    script.step(&[("a", Some(&node("n1", 1)))]);
    let broken = node("n1", 2) + "---\nkind: [\n";
    let told = script.step(&[("a", Some(&broken))]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("a:") && told[0].contains("not valid YAML"),
        "{told:?}"
    );
    assert_eq!(script.step(&[("a", Some(&node("n1", 2)))]), ["apply n1 2"]);
}

#[test]
fn half_a_file_that_is_valid_yaml_deletes_nothing() {
    let mut script = Script::default();
    let whole = node("n1", 1) + &node("n2", 1);
    script.step(&[("a", Some(&whole))]);
    let half = node("n1", 2) + "---\napiVersion: v1\nkind: Node\nmetadata:\n";
    let told = script.step(&[("a", Some(&half))]);
    assert_eq!(told[0], "apply n1 2");
    assert!(
        told.iter()
            .any(|line| line.starts_with("a: Node n2: not in the file any more, but kept")),
        "{told:?}"
    );
    assert!(
        !told.iter().any(|line| line.starts_with("delete")),
        "{told:?}"
    );
    assert_eq!(
        script.step(&[("a", Some(&node("n1", 2)))]),
        ["delete Node n2"]
    );
}

#[test]
fn an_object_that_becomes_invalid_stays_as_it_was_and_says_so() {
    let mut script = Script::default();
    let good = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}\n";
    let bad = good.replace("port: 80", "port: 0");
    assert_eq!(
        script.step(&[("a", Some(good))]),
        ["apply Service default/s"]
    );
    let told = script.step(&[("a", Some(&bad))]);
    assert_eq!(told[0], "keep Service default/s");
    let stays = "a:1: Service default/s: cannot be used as it is now; its last good version stays in use; see the other warnings about it";
    assert!(told.iter().any(|line| line == stays), "{told:?}");
    assert_eq!(
        script.step(&[("a", Some(good))]),
        NOTHING,
        "the good version is what is in use"
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
    let told = script.step(&[("a", Some(&good))]);
    assert_eq!(
        told,
        ["apply ClusterTopologyPolicy p", "apply TopologyDrain d"]
    );
    let bad = good
        .replace("mode: Hard", "mode: Harder")
        .replace("values: [b]", "values: []");
    let told = script.step(&[("a", Some(&bad))]);
    assert_eq!(
        told[..2],
        ["keep ClusterTopologyPolicy p", "keep TopologyDrain d"]
    );
    let stays = told
        .iter()
        .filter(|line| line.contains("its last good version stays in use"));
    assert_eq!(stays.count(), 2, "{told:?}");
    let told = script.step(&[("a", None)]);
    assert_eq!(
        told,
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
fn a_service_that_becomes_another_proxy_s_is_told_kp_in_06() {
    let mut script = Script::default();
    let ours = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}\n";
    let theirs = ours.replace(
        "{name: s}",
        "{name: s, labels: {service.kubernetes.io/service-proxy-name: x}}",
    );
    script.step(&[("a", Some(ours))]);
    let told = script.step(&[("a", Some(&theirs))]);
    assert_eq!(
        told,
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
fn the_last_file_by_path_counts_whenever_it_comes() {
    let mut script = Script::default();
    assert_eq!(script.step(&[("b", Some(&node("n1", 2)))]), ["apply n1 2"]);
    let told = script.step(&[("a", Some(&node("n1", 1)))]);
    assert_eq!(
        told,
        ["a:2: Node n1: written again at b:2, which comes later and counts; remove one of the two"]
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
fn when_the_copy_that_counts_goes_the_one_before_it_counts() {
    let mut script = Script::default();
    let first = node("n0", 1) + &node("n1", 1);
    script.step(&[("a", Some(&first))]);
    assert_eq!(script.step(&[("b", Some(&node("n1", 2)))])[0], "apply n1 2");
    assert_eq!(script.step(&[("b", None)]), ["apply n1 1"]);
    assert_eq!(
        script.disk.reads,
        ["b", "a"],
        "its content was nowhere else"
    );
    let twice = node("n2", 1) + &node("n2", 2);
    script.step(&[("c", Some(&twice))]);
    assert_eq!(script.step(&[("c", Some(&node("n2", 1)))]), ["apply n2 1"]);
}

#[test]
fn equal_copies_are_not_told_again_when_one_goes() {
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
    let told = script.step(&[("a", Some(&(node("n1", 1) + bad)))]);
    assert!(
        told[2].starts_with("a:8: Node n2: metadata.labels"),
        "{told:?}"
    );
    let told = script.step(&[("a", Some(&("# new\n".to_owned() + &node("n1", 1) + bad)))]);
    assert!(
        told[0].starts_with("a:9: Node n2: metadata.labels"),
        "{told:?}"
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
        "what was in it is known"
    );
}

#[test]
fn a_first_reading_that_had_to_begin_anew_leaves_nothing_behind() {
    let mut script = Script::default();
    script.disk.false_start = Some(node("n1", 1) + &node("n2", 1));
    let told = script.step(&[("a", Some(&node("n1", 2)))]);
    assert_eq!(
        told,
        ["apply n1 1", "apply n2 1", "apply n1 2", "delete Node n2"]
    );
}

#[test]
fn what_a_broken_file_said_is_taken_back() {
    let mut script = Script::default();
    let told = script.step(&[("a", Some(&(node("n1", 1) + "---\n[")))]);
    assert_eq!(told[..2], ["apply n1 1", "delete Node n1"]);
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
    let told = script.step(&[("c", Some(&(node("n3", 1) + "---\n[")))]);
    assert_eq!(
        told.len(),
        1,
        "a broken file says nothing but that: {told:?}"
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
fn d13_objects_that_are_written_again_are_named_up_to_twenty_and_then_counted() {
    let mut script = Script::default();
    let many: String = (0..500)
        .map(|number| node(&format!("n{number}"), 1))
        .collect();
    let twice = many.clone() + &many;
    let told = script.step(&[("a", Some(&twice))]);
    let again: Vec<&String> = told
        .iter()
        .filter(|line| line.contains("written again"))
        .collect();
    assert_eq!(again.len(), 21, "{again:?}");
    assert!(
        again.iter().any(|line| line.contains("480 more objects")),
        "{again:?}"
    );
}

#[test]
fn d13_many_files_with_one_object_cost_no_more_than_they_say() {
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
    assert_eq!(warnings.len(), FILES - 1, "the last counts");
    let named = warnings.iter().filter(|one| one.subject.key().is_some());
    assert_eq!(named.count(), 100);
    assert!(warnings.iter().all(|one| one.code == Code::Object));
    // All at once, and all gone.
    let all: Vec<(&str, Option<&str>)> = files.iter().map(|name| (&**name, Some(&*text))).collect();
    assert!(script.step(&all).len() < FILES, "reports, and no event");
    let all: Vec<(&str, Option<&str>)> = files.iter().map(|name| (&**name, None)).collect();
    assert_eq!(script.step(&all), ["delete Node n1"]);
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}
