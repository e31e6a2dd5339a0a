//! Reads folders of YAML and compares the objects, warnings and counts with `expected.txt`.
//!
//! Every folder in `tests/cases` is a test. `UPDATE=1 cargo test -p cluster --test golden` rewrites
//! each `expected.txt`; read the difference before committing it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod common;
#[path = "golden/show.rs"]
mod show;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use cluster::AllowLists;
use cluster::event::{Event, FileReport};
use cluster::source::watch;

/// Makes a test of each case, and a test that every folder is a case.
macro_rules! cases {
    ($($test:ident: $folder:literal,)*) => {
        $(#[test]
        fn $test() {
            run($folder);
        })*

        #[test]
        fn every_case_has_a_test() {
            let known = BTreeSet::from([$($folder.to_owned()),*]);
            let found = fs::read_dir(folder("")).unwrap();
            let found: BTreeSet<String> =
                found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            assert_eq!(known, found);
        }
    };
}

cases! {
    invalid_annotations_are_reported_and_the_service_is_still_served_pain_23: "annotations",
    a_broken_file_is_left_out_and_the_others_are_read: "broken-file",
    a_yaml_bomb_is_one_error_and_the_other_files_are_read: "bomb",
    unusable_endpoints_are_left_out_one_by_one_kp_in_14: "endpoints",
    ignored_objects_have_their_reason_kp_in_01_kp_in_07: "ignored",
    unusable_objects_are_reported: "invalid",
    kubectl_lists_and_json_are_read: "lists",
    nodes_namespaces_and_service_cidrs_are_read: "nodes",
    policies_are_read_with_every_field_and_default: "policies",
    invalid_policies_are_refused_as_a_whole: "policies-invalid",
    drains_are_read_and_refused_beyond_their_limits: "drains",
    pod_maps_are_read_and_checked_as_by_an_api_server: "pod-maps",
    invalid_ports_are_left_out_one_by_one: "ports",
    objects_written_twice_have_one_winner: "repeated",
    features_without_support_are_reported_kp_in_10: "unprogrammed",
    node_ports_and_load_balancer_addresses_are_frontends_kp_in_09_kp_in_11_kp_in_13: "frontends",
    the_old_field_topology_keys_is_read_v1_to_v13: "topology-keys",
    invalid_service_addresses_are_left_out_kp_in_09: "vips",
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases")
        .join(name)
}

fn run(name: &str) {
    let folder = folder(name);
    let input = folder.join("input");
    let (events, reports) = first_list(&input);
    let mut objects = BTreeMap::new();
    let mut end = None;
    for event in events {
        match event {
            // The first list of files has no cause.
            Event::Begin | Event::Triggered(_) => {}
            Event::Apply(object) => drop(objects.insert(object.key(), show::show(&object))),
            Event::Ignore(key, reason) => {
                drop(objects.insert(key.clone(), format!("{key}: ignored, {reason}\n")));
            }
            Event::Keep(key) => {
                drop(objects.insert(key.clone(), format!("{key}: kept as it was\n")));
            }
            Event::Delete(key) => drop(objects.remove(&key)),
            Event::Unread(labels) => assert!(labels.is_empty(), "files have all labels"),
            Event::Complete(completeness) => end = Some(completeness),
        }
    }
    let mut text: String = objects.into_values().collect();
    writeln!(text, "-- {:?}", end.unwrap()).unwrap();
    let root = format!("{}/", input.display());
    for report in &reports {
        for warning in &report.warnings {
            writeln!(text, "{}", warning.to_string().replace(&root, "")).unwrap();
        }
        for (kind, count) in &report.skipped {
            writeln!(
                text,
                "{}: skipped {count} {kind}",
                report.file.replace(&root, "")
            )
            .unwrap();
        }
    }
    let expected = folder.join("expected.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&expected, &text).unwrap();
    }
    let expected = fs::read_to_string(&expected).unwrap_or_default();
    assert!(text == expected, "found:\n{text}\nexpected:\n{expected}");
}

/// All events and reports up to the first `Complete`.
fn first_list(path: &Path) -> (Vec<Event>, Vec<FileReport>) {
    common::runtime().block_on(async {
        let external_ips = ["203.0.113.0/28", "2001:db8:7::/64"];
        let allowed = AllowLists {
            external_ips: external_ips.map(|range| range.parse().unwrap()).into(),
            ..AllowLists::default()
        };
        let mut watch = watch(path, allowed).unwrap();
        let (mut events, mut reports) = (Vec::new(), Vec::new());
        while !matches!(events.last(), Some(Event::Complete(_))) {
            let batch = common::next(&mut watch).await;
            events.extend(batch.events);
            reports.extend(batch.reports);
        }
        (events, reports)
    })
}
