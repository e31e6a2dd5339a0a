//! The examples that README, docs and demo use have no warnings, and each begins with a comment.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use cluster::event::Completeness;
use cluster::source::{Options, read};

fn examples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/examples");
    let folders: Vec<PathBuf> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(folders.len() >= 10, "{folders:?}");
    folders
}

#[test]
fn every_example_is_read_without_a_warning() {
    for folder in examples() {
        let loaded = read(&folder, &Options::default()).unwrap();
        assert_eq!(loaded.warnings, [], "{}", folder.display());
        assert_eq!(loaded.completeness, Completeness::Whole);
        assert!(
            loaded.snapshot.services().count() > 0,
            "{}",
            folder.display()
        );
        assert_eq!(loaded.snapshot.nodes().count(), 4, "{}", folder.display());
        for service in loaded.snapshot.services() {
            assert!(
                !loaded.snapshot.slices(&service.name).is_empty(),
                "{}",
                service.name
            );
        }
    }
}

#[test]
fn every_file_of_an_example_begins_with_a_comment() {
    for folder in examples() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.starts_with("# "), "{}", path.display());
        }
    }
}

#[test]
fn pods_in_a_list_that_kubectl_printed_are_skipped() {
    let list = examples()
        .into_iter()
        .find(|path| path.ends_with("list"))
        .unwrap();
    let loaded = read(&list, &Options::default()).unwrap();
    let skipped: Vec<(&str, usize)> = loaded
        .skipped
        .iter()
        .map(|(kind, count)| (&**kind, *count))
        .collect();
    assert_eq!(skipped, [("Pod", 2)]);
}
