//! Follows real files through the public API while they are created, changed and deleted.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod common;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cluster::AllowLists;
use cluster::event::{Completeness, Event};
use cluster::index::Index;
use cluster::object::Object;
use cluster::source::{Watch, watch};
use tempfile::TempDir;
use topology_core::model::{Faults, ObjectName};

struct Followed {
    runtime: tokio::runtime::Runtime,
    watch: Watch,
}

impl Followed {
    fn new(path: &Path) -> Self {
        let runtime = common::runtime();
        Self {
            watch: watch(path, AllowLists::default()).unwrap(),
            runtime,
        }
    }

    /// Waits for the next batch that is not empty; returns its events and warnings, one per line.
    fn changes(&mut self) -> Vec<String> {
        let batch = self.runtime.block_on(common::next(&mut self.watch));
        let warnings = batch.reports.iter().flat_map(|report| &report.warnings);
        let warnings = warnings.map(|warning| format!("warning: {}", warning.message));
        let lines: Vec<String> = batch.events.iter().map(show).chain(warnings).collect();
        if lines.is_empty() {
            self.changes()
        } else {
            lines
        }
    }

    /// Everything up to the first `Complete`.
    fn first(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while !all
            .last()
            .is_some_and(|line: &String| line.starts_with("complete"))
        {
            all.extend(self.changes());
        }
        all
    }

    /// Fails when a batch arrives within `time`.
    fn expect_no_change(&mut self, time: Duration) {
        let watch = &mut self.watch;
        let result = self
            .runtime
            .block_on(async { tokio::time::timeout(time, watch.next()).await });
        assert!(result.is_err(), "{result:?}");
    }
}

fn show(event: &Event) -> String {
    match event {
        Event::Begin => "begin".to_owned(),
        Event::Apply(Object::Node(node)) => {
            format!(
                "apply {} {}",
                node.name,
                node.labels.get("v").map_or("-", |value| value)
            )
        }
        Event::Apply(object) => format!("apply {}", object.key()),
        Event::Ignore(key, _) => format!("ignore {key}"),
        Event::Keep(key) => format!("keep {key}"),
        Event::Delete(key) => format!("delete {key}"),
        Event::Complete(Completeness::Whole) => "complete".to_owned(),
        Event::Complete(Completeness::Partial) => "complete, partial".to_owned(),
        Event::Unread(labels) => format!("unread {labels:?}"),
        Event::Triggered(trigger) => format!("triggered {trigger:?}"),
    }
}

fn node(name: &str, version: u32) -> String {
    format!(
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{v: \"{version}\"}}}}\n"
    )
}

fn folder(files: &[(&str, String)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

/// Renames a new file over the old one, as editors do.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("tmp~");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}

#[test]
fn a_folder_is_read_and_then_its_changes() {
    let dir = folder(&[
        ("a.yaml", node("n1", 1) + &node("n2", 1)),
        ("b.yaml", node("n3", 1)),
    ]);
    let mut followed = Followed::new(dir.path());
    assert_eq!(
        followed.first(),
        [
            "begin",
            "apply n1 1",
            "apply n2 1",
            "apply n3 1",
            "complete"
        ]
    );
    fs::write(dir.path().join("a.yaml"), node("n1", 1) + &node("n2", 2)).unwrap();
    assert_eq!(followed.changes(), ["apply n2 2"]);
    fs::write(dir.path().join("c.json"), node("n4", 1)).unwrap();
    assert_eq!(followed.changes(), ["apply n4 1"]);
    followed.expect_no_change(Duration::from_millis(300));
}

#[test]
fn a_file_replaced_as_editors_do_is_read() {
    let dir = folder(&[("a.yaml", node("n1", 1))]);
    let mut followed = Followed::new(dir.path());
    followed.first();
    replace(&dir.path().join("a.yaml"), &node("n1", 2));
    assert_eq!(followed.changes(), ["apply n1 2"]);
}

#[test]
fn a_single_file_is_followed_through_replacement_deletion_and_return() {
    let dir = folder(&[("a.yaml", node("n1", 1)), ("other.yaml", node("n9", 1))]);
    let path = dir.path().join("a.yaml");
    let mut followed = Followed::new(&path);
    assert_eq!(followed.first(), ["begin", "apply n1 1", "complete"]);
    replace(&path, &node("n1", 2));
    assert_eq!(followed.changes(), ["apply n1 2"]);
    fs::write(dir.path().join("other.yaml"), node("n9", 2)).unwrap();
    followed.expect_no_change(Duration::from_millis(300));
    fs::remove_file(&path).unwrap();
    let lines = [followed.changes(), followed.changes()].concat();
    assert!(lines.contains(&"delete Node n1".to_owned()), "{lines:?}");
    fs::write(&path, node("n1", 3)).unwrap();
    assert_eq!(followed.changes(), ["apply n1 3"]);
}

#[test]
fn a_deleted_file_deletes_what_was_in_it() {
    let dir = folder(&[("a.yaml", node("n1", 1)), ("b.yaml", node("n2", 1))]);
    let mut followed = Followed::new(dir.path());
    followed.first();
    fs::remove_file(dir.path().join("b.yaml")).unwrap();
    assert_eq!(followed.changes(), ["delete Node n2"]);
    fs::rename(dir.path().join("a.yaml"), dir.path().join("a.yaml.off")).unwrap();
    assert_eq!(followed.changes(), ["delete Node n1"]);
}

#[test]
fn a_half_written_file_changes_nothing() {
    let dir = folder(&[("a.yaml", node("n1", 1))]);
    let path = dir.path().join("a.yaml");
    let mut followed = Followed::new(dir.path());
    followed.first();
    fs::write(
        &path,
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1, lab",
    )
    .unwrap();
    let lines = followed.changes();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("warning: not valid YAML"), "{lines:?}");
    fs::write(&path, node("n1", 2)).unwrap();
    assert_eq!(followed.changes(), ["apply n1 2"]);
}

#[test]
fn a_file_is_read_when_its_slow_writer_closes_it() {
    let dir = folder(&[("a.yaml", node("n1", 1) + &node("n2", 1))]);
    let mut followed = Followed::new(dir.path());
    followed.first();
    let mut file = fs::File::create(dir.path().join("a.yaml")).unwrap();
    file.write_all(node("n1", 2).as_bytes()).unwrap();
    followed.expect_no_change(Duration::from_millis(200));
    file.write_all(node("n2", 2).as_bytes()).unwrap();
    drop(file);
    assert_eq!(followed.changes(), ["apply n1 2", "apply n2 2"]);
}

#[test]
fn a_config_map_is_read_again_when_the_kubelet_swaps_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("..v1")).unwrap();
    fs::write(path("..v1/shop.yaml"), node("n1", 1)).unwrap();
    symlink("..v1", path("..data")).unwrap();
    symlink("..data/shop.yaml", path("shop.yaml")).unwrap();
    let mut followed = Followed::new(dir.path());
    assert_eq!(followed.first(), ["begin", "apply n1 1", "complete"]);
    // The kubelet writes a new folder and renames a link to it.
    fs::create_dir(path("..v2")).unwrap();
    fs::write(path("..v2/shop.yaml"), node("n1", 2)).unwrap();
    symlink("..v2", path("..data_tmp")).unwrap();
    fs::rename(path("..data_tmp"), path("..data")).unwrap();
    fs::remove_dir_all(path("..v1")).unwrap();
    assert_eq!(followed.changes(), ["apply n1 2"]);
}

#[test]
fn one_file_of_a_config_map_is_followed_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("..v1")).unwrap();
    fs::create_dir(path("..v2")).unwrap();
    fs::write(path("..v1/shop.yaml"), node("n1", 1)).unwrap();
    fs::write(path("..v2/shop.yaml"), node("n1", 2)).unwrap();
    symlink("..v1", path("..data")).unwrap();
    symlink("..data/shop.yaml", path("shop.yaml")).unwrap();
    let mut followed = Followed::new(&path("shop.yaml"));
    assert_eq!(followed.first(), ["begin", "apply n1 1", "complete"]);
    symlink("..v2", path("..data_tmp")).unwrap();
    fs::rename(path("..data_tmp"), path("..data")).unwrap();
    assert_eq!(followed.changes(), ["apply n1 2"]);
}

#[test]
fn a_link_to_a_folder_of_releases_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for (release, version) in [("r1", 1), ("r2", 2)] {
        fs::create_dir(path(release)).unwrap();
        fs::write(path(release).join("a.yaml"), node("n1", version)).unwrap();
    }
    symlink("r1", path("current")).unwrap();
    let mut followed = Followed::new(&path("current"));
    assert_eq!(followed.first(), ["begin", "apply n1 1", "complete"]);
    symlink("r2", path("next")).unwrap();
    fs::rename(path("next"), path("current")).unwrap();
    assert_eq!(followed.changes(), ["apply n1 2"]);
    fs::write(path("r2/a.yaml"), node("n1", 3)).unwrap();
    assert_eq!(followed.changes(), ["apply n1 3"]);
}

#[test]
fn a_path_that_does_not_exist_yet_is_read_when_it_is_created() {
    let dir = tempfile::tempdir().unwrap();
    let root: PathBuf = dir.path().join("a/b/cluster");
    let mut followed = Followed::new(&root);
    assert_eq!(followed.changes(), ["begin"]);
    let lines = followed.changes();
    assert!(lines[0].contains("waiting for it"), "{lines:?}");
    fs::create_dir_all(&root).unwrap();
    let lines = followed.changes();
    assert!(lines[0].contains("waiting for a file"), "{lines:?}");
    fs::write(root.join("a.yaml"), node("n1", 1)).unwrap();
    assert_eq!(followed.first(), ["apply n1 1", "complete"]);
}

#[test]
fn folders_that_are_created_later_are_followed() {
    let dir = folder(&[("a.yaml", node("n1", 1))]);
    let mut followed = Followed::new(dir.path());
    followed.first();
    fs::create_dir_all(dir.path().join("x/y")).unwrap();
    fs::write(dir.path().join("x/y/b.yaml"), node("n2", 1)).unwrap();
    assert_eq!(followed.changes(), ["apply n2 1"]);
    fs::write(dir.path().join("x/y/b.yaml"), node("n2", 2)).unwrap();
    assert_eq!(followed.changes(), ["apply n2 2"]);
    fs::remove_dir_all(dir.path().join("x")).unwrap();
    assert_eq!(followed.changes(), ["delete Node n2"]);
}

#[test]
fn a_folder_that_is_moved_away_deletes_no_objects() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("cluster");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.yaml"), node("n1", 1)).unwrap();
    let mut followed = Followed::new(&root);
    followed.first();
    fs::rename(&root, dir.path().join("moved")).unwrap();
    let lines = followed.changes();
    assert!(
        lines[0].contains("stays in use until it is back"),
        "{lines:?}"
    );
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a.yaml"), node("n1", 2)).unwrap();
    fs::rename(&other, &root).unwrap();
    assert_eq!(followed.changes(), ["apply n1 2"]);
}

#[test]
fn a_file_broken_from_the_start_makes_the_first_list_partial() {
    let dir = folder(&[("a.yaml", "[".to_owned()), ("b.yaml", node("n1", 1))]);
    let mut followed = Followed::new(dir.path());
    let lines = followed.first();
    assert_eq!(lines.last().unwrap(), "complete, partial");
    assert!(lines.contains(&"apply n1 1".to_owned()), "{lines:?}");
    fs::write(dir.path().join("a.yaml"), node("n2", 1)).unwrap();
    assert_eq!(followed.first(), ["apply n2 1", "complete"]);
}

#[test]
fn objects_that_move_between_files_are_not_deleted_in_between() {
    let dir = folder(&[("a.yaml", node("n1", 1)), ("b.yaml", String::new())]);
    let mut followed = Followed::new(dir.path());
    followed.first();
    // The watch waits until the file is closed, so it reads both together.
    let emptied = fs::File::create(dir.path().join("a.yaml")).unwrap();
    fs::write(dir.path().join("b.yaml"), node("n1", 2)).unwrap();
    drop(emptied);
    assert_eq!(followed.changes(), ["apply n1 2"]);
}

#[test]
fn many_objects_arrive_in_batches_and_none_is_lost() {
    let many: String = (0..2000)
        .map(|index| node(&format!("n{index}"), 1))
        .collect();
    let dir = folder(&[("a.yaml", many)]);
    let mut followed = Followed::new(dir.path());
    assert_eq!(followed.first().len(), 2002);
}

#[test]
fn invalid_levels_in_a_file_keep_the_last_good_version() {
    let service = |keys: &str| {
        format!(
            "kind: Service\napiVersion: v1\nmetadata: {{name: s, namespace: t}}\nspec: {{clusterIP: 10.96.0.1, ports: [{{port: 80}}], topologyKeys: {keys}}}\n"
        )
    };
    let dir = folder(&[("a.yaml", service("[kubernetes.io/hostname]"))]);
    let mut followed = Followed::new(dir.path());
    let mut index = Index::new(Vec::new());
    let name = ObjectName::new("t", "s");
    let mut levels_after = |text: Option<String>| {
        if let Some(text) = text {
            replace(&dir.path().join("a.yaml"), &text);
        }
        loop {
            let batch = followed.runtime.block_on(common::next(&mut followed.watch));
            let has_object = batch
                .events
                .iter()
                .any(|event| matches!(event, Event::Apply(_)));
            index.apply(batch);
            if has_object {
                let service = index.snapshot().service(&name).unwrap();
                return (
                    service.faults,
                    service.policy.as_ref().unwrap().levels.len(),
                );
            }
        }
    };
    assert_eq!(levels_after(None), (Faults::None, 1));
    assert_eq!(
        levels_after(Some(service("['*', kubernetes.io/hostname]"))),
        (Faults::LastGood, 1)
    );
    assert_eq!(
        levels_after(Some(service("[topology.kubernetes.io/zone, '*']"))),
        (Faults::None, 2)
    );
}

#[test]
fn a_drain_in_a_file_takes_effect_when_it_is_no_longer_too_early() {
    let now = jiff::Timestamp::now();
    let ends = now + jiff::SignedDuration::from_secs(72 * 3600 + 2);
    let drain = format!(
        "kind: TopologyDrain\napiVersion: topology.ipvs-topo.io/v1alpha1\nmetadata: {{name: b, creationTimestamp: {now}}}\nspec: {{match: {{key: zone, values: [b]}}, expiresAt: {ends}}}\n"
    );
    let dir = folder(&[("a.yaml", drain + "---\n" + &node("n1", 1))]);
    let mut followed = Followed::new(dir.path());
    let mut index = Index::new(Vec::new());
    let mut refused = false;
    while index.snapshot().drains().count() == 0 {
        let batch = followed.runtime.block_on(common::next(&mut followed.watch));
        index.apply(batch);
        refused |= index.warnings().count() > 0;
    }
    assert!(refused, "the drain was not refused at first");
    let late = jiff::Timestamp::now().duration_since(now);
    assert!(late.as_secs() >= 1, "{late}");
}
