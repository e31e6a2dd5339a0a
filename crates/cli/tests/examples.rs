//! The output for every example of `manifests/examples`, from every node, in every format. Shows
//! the effect of a change of the resolver, the YAML reader or the tables.
//!
//! To accept a difference: `INSTA_UPDATE=always cargo test -p cli --test examples`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what it expects by failing loudly"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use cli::args::ServiceArgs;
use cli::offline::Offline;
use cli::origin::Origin;
use cli::output::{print, save};
use cli::render;

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/examples");
    let mut examples: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    examples.sort();
    assert!(examples.len() >= 5, "the examples have gone: {examples:?}");
    examples
}

fn read(example: &Path, node: &str) -> Offline {
    let args = ServiceArgs {
        service_cidr: Vec::new(),
        scheduler: topology_core::scheduler::Scheduler::Wrr,
        nodeport_addresses: Vec::new(),
        fwmark_mask: topology_core::snapshot::MarkMask::default(),
        allow_lists: cli::args::AllowListArgs::default(),
    };
    // At this time the drain of the examples is active, and its ramp is over.
    let now: jiff::Timestamp = "2026-11-22T09:00:00Z".parse().unwrap();
    let read = Offline::read(
        &Origin::Files(example.to_owned()),
        node,
        &args,
        now.as_millisecond(),
    );
    read.unwrap_or_else(|failure| panic!("{}", failure.message()))
}

fn nodes(example: &Path) -> Vec<String> {
    let offline = read(example, "none");
    let mut nodes: Vec<_> = offline
        .loaded
        .snapshot
        .nodes()
        .map(|node| node.name.to_string())
        .collect();
    nodes.sort();
    nodes
}

fn name(example: &Path) -> String {
    example.file_name().unwrap().to_string_lossy().into_owned()
}

/// One text for each node, after a line with its name.
fn for_each_node(example: &Path, show: impl Fn(Offline, &str) -> String) -> String {
    let mut text = String::new();
    for node in nodes(example) {
        writeln!(text, "# {node}\n{}", show(read(example, &node), &node)).unwrap();
    }
    text
}

#[test]
fn tables_of_every_example_are_unchanged_and_fit_eighty_columns() {
    for example in examples() {
        let text = for_each_node(&example, |offline, node| {
            let text = render::text(&offline.resolve().view(node), Some(80));
            anstream::adapter::strip_str(&text).to_string()
        });
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{}: {line}", example.display());
        }
        insta::assert_snapshot!(format!("table-{}", name(&example)), text);
    }
}

#[test]
fn ipvsadm_lines_of_every_example_are_unchanged() {
    for example in examples() {
        let text = for_each_node(&example, |offline, _| {
            let resolved = offline.resolve();
            save::save(
                &resolved
                    .servers
                    .iter()
                    .map(|one| &one.server)
                    .collect::<Vec<_>>(),
            )
        });
        insta::assert_snapshot!(format!("save-{}", name(&example)), text);
    }
}

#[test]
fn json_of_every_example_is_unchanged() {
    for example in examples() {
        let node = nodes(&example).into_iter().next().unwrap_or_default();
        let view = read(&example, &node).resolve().view(&node);
        insta::assert_snapshot!(
            format!("json-{}", name(&example)),
            print::json(&view).unwrap()
        );
    }
}
