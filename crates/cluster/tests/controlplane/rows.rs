//! Every row of the reference: the API server and the agent accept and refuse the same objects.

use std::collections::BTreeMap;

use cluster::source::{Loaded, Options, read_text};

use crate::kubectl::{self, Namespace, files, folder, installed};

/// A row on which the two differ.
struct Exception {
    name: &'static str,
    /// Whether the API server accepts the row; the agent does the opposite.
    api_accepts: bool,
    why: &'static str,
}

const EXCEPTIONS: [Exception; 8] = [
    Exception {
        name: "too-far-ahead",
        api_accepts: true,
        why: "CEL rules have no clock: the controller and the agents refuse it, and its status reports it",
    },
    Exception {
        name: "renewed",
        api_accepts: true,
        why: "as above: the limit counts from the time when it is read",
    },
    Exception {
        name: "ends-before-it-began",
        api_accepts: true,
        why: "the API server sets its own creation time, which CEL does not see",
    },
    Exception {
        name: "cost-aware-default",
        api_accepts: false,
        why: "its status has a field that the API server does not know, and agents do not read the status",
    },
    Exception {
        name: "number-for-a-text",
        api_accepts: false,
        why: "in a file a text needs no quotes, even if YAML reads another type",
    },
    Exception {
        name: "flag-for-a-text",
        api_accepts: false,
        why: "as above",
    },
    Exception {
        name: "share-without-a-value",
        api_accepts: true,
        why: "the API server drops an entry without a value; a file with one makes a warning",
    },
    Exception {
        name: "label-without-a-value",
        api_accepts: true,
        why: "as above: the rest may select everything",
    },
];

pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) text: String,
}

fn rows(case: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for path in files(&format!("crates/cluster/tests/cases/{case}/input")) {
        let text = std::fs::read_to_string(path).unwrap();
        for text in text.split("\n---\n") {
            let (_, rest) = text.split_once("name: ").unwrap();
            let name = rest.split([',', '}', '\n']).next().unwrap();
            rows.push(Row {
                name: name.to_owned(),
                // kubectl sets the namespace.
                text: text
                    .replace(", namespace: shop", "")
                    .replace("  namespace: shop\n", ""),
            });
        }
    }
    rows
}

/// 2025-11-22T09:00:00Z, the time that the rows assume.
const NOW: i64 = 1_763_802_000_000;

/// Reads a row as the agent does.
pub(crate) fn loaded(row: &Row) -> Loaded {
    let options = Options {
        now: Some(NOW),
        ..Options::default()
    };
    read_text("row.yaml", row.text.as_bytes(), &options).unwrap()
}

/// Whether the agent uses the object without a warning, except that of the creation time, which the
/// API server would add.
fn agent_accepts(row: &Row) -> bool {
    let loaded = loaded(row);
    let mut warnings = loaded.warnings.iter();
    !warnings.any(|warning| {
        !warning
            .to_string()
            .contains("without metadata.creationTimestamp")
    }) && loaded.skipped.is_empty()
}

/// Creates the rows with a dry run; returns the refusals by name.
pub(crate) fn api_refuses(rows: &[Row], namespace: &str) -> BTreeMap<String, String> {
    let texts: Vec<String> = rows.iter().map(|row| row.text.clone()).collect();
    let folder = folder(&texts);
    let path = folder.path().to_str().unwrap();
    let output = kubectl::run(&[
        "create",
        "--dry-run=server",
        "-o",
        "name",
        "-n",
        namespace,
        "-f",
        path,
    ]);
    let accepted = String::from_utf8(output.stdout).unwrap();
    let refused = String::from_utf8(output.stderr).unwrap();
    let is_accepted = |row: &Row| {
        let mut lines = accepted.lines();
        lines.any(|line| {
            line.split_once('/')
                .is_some_and(|(_, name)| name == row.name)
        })
    };
    let mut refusals = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let file = format!("{at:04}.yaml");
        let refusal = refused.lines().find(|line| line.contains(&file));
        match (is_accepted(row), refusal) {
            (true, None) => {}
            (false, Some(text)) => drop(refusals.insert(row.name.clone(), text.to_owned())),
            other => panic!("{}: {other:?}\n{accepted}{refused}", row.name),
        }
    }
    refusals
}

/// Fails unless the two agree; returns how many rows both accept and how many both refuse.
#[track_caller]
pub(crate) fn agree(rows: &[Row]) -> (usize, usize) {
    installed();
    let namespace = Namespace::new();
    let refused = api_refuses(rows, &namespace.0);
    let mut differ = Vec::new();
    for row in rows {
        let exception = EXCEPTIONS
            .iter()
            .find(|exception| exception.name == row.name);
        let refusal = refused.get(&row.name);
        let (agent, api) = (agent_accepts(row), refusal.is_none());
        if let Some(exception) = exception {
            let still_differs = api == exception.api_accepts && agent != api;
            assert!(
                still_differs,
                "the two no longer differ: {}, {}",
                row.name, exception.why
            );
        } else if agent != api {
            let result = refusal.map_or("accepted by the API server", String::as_str);
            differ.push(format!("{}:\n{}\n{result}", row.name, row.text));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
    (rows.len() - refused.len(), refused.len())
}

#[test]
fn agent_and_server_agree_on_policies() {
    assert_eq!(agree(&rows("policies")), (7, 1));
}

#[test]
fn agent_and_server_agree_on_invalid_policies() {
    assert_eq!(agree(&rows("policies-invalid")), (0, 54));
}

#[test]
fn agent_and_server_agree_on_drains() {
    let (accepted, refused) = agree(&rows("drains"));
    assert_eq!((accepted, refused), (8, 8));
}

#[test]
fn agent_and_server_agree_on_annotations_pain_23() {
    assert_eq!(agree(&rows("annotations")), (1, 3));
}
