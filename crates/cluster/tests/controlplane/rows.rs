//! Every row of the reference: what the API server accepts the agent accepts, and the other way round.

use std::collections::BTreeMap;

use cluster::source::{Loaded, Options, read_text};

use crate::kubectl::{self, Namespace, files, folder, installed};

/// A row about which the two differ.
struct Exception {
    name: &'static str,
    /// Whether the API server takes it; the agent does the opposite.
    api_takes: bool,
    why: &'static str,
}

const EXCEPTIONS: [Exception; 8] = [
    Exception {
        name: "too-far-ahead",
        api_takes: true,
        why: "CEL rules have no clock: the controller and the agents refuse it, and its status says so",
    },
    Exception {
        name: "renewed",
        api_takes: true,
        why: "as above: what counts is how far ahead it ends when it is read",
    },
    Exception {
        name: "ends-before-it-began",
        api_takes: true,
        why: "the API server gives it a creation of its own, which CEL does not see",
    },
    Exception {
        name: "cost-aware-default",
        api_takes: false,
        why: "it has a field in its status that the API server does not know, and agents do not look there",
    },
    Exception {
        name: "number-for-a-text",
        api_takes: false,
        why: "in a file a text may stand without quotes, whatever YAML would make of it",
    },
    Exception {
        name: "flag-for-a-text",
        api_takes: false,
        why: "as above",
    },
    Exception {
        name: "share-without-a-value",
        api_takes: true,
        why: "the API server forgets an entry without a value; in a file it is told, as it was forgotten",
    },
    Exception {
        name: "label-without-a-value",
        api_takes: true,
        why: "as above: what is left may select everything",
    },
];

/// An object as it was written, and its name.
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
                // What a file says of these, the API server says itself.
                text: text
                    .replace(", namespace: shop", "")
                    .replace("  namespace: shop\n", ""),
            });
        }
    }
    rows
}

/// The rows are of 2025-11-22T09:00:00Z.
const NOW: i64 = 1_763_802_000_000;

/// What the agent makes of a row.
pub(crate) fn loaded(row: &Row) -> Loaded {
    let options = Options {
        now: Some(NOW),
        ..Options::default()
    };
    read_text("row.yaml", row.text.as_bytes(), &options).unwrap()
}

/// Whether the agent uses the object as it is. That it misses what an API server would add is no fault of it.
fn agent_accepts(row: &Row) -> bool {
    let loaded = loaded(row);
    let mut warnings = loaded.warnings.iter();
    !warnings.any(|one| {
        !one.to_string()
            .contains("without metadata.creationTimestamp")
    }) && loaded.skipped.is_empty()
}

/// What the API server says of each row, by name; nothing where it accepts.
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
    let mut verdicts = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let file = format!("{at:04}.yaml");
        let told = refused.lines().find(|line| line.contains(&file));
        match (is_accepted(row), told) {
            (true, None) => {}
            (false, Some(told)) => drop(verdicts.insert(row.name.clone(), told.to_owned())),
            other => panic!("{}: {other:?}\n{accepted}{refused}", row.name),
        }
    }
    verdicts
}

/// How many rows both accept, and how many both refuse.
#[track_caller]
pub(crate) fn agree(rows: &[Row]) -> (usize, usize) {
    installed();
    let namespace = Namespace::new();
    let refused = api_refuses(rows, &namespace.0);
    let mut differ = Vec::new();
    for row in rows {
        let exception = EXCEPTIONS.iter().find(|one| one.name == row.name);
        let told = refused.get(&row.name);
        let (agent, api) = (agent_accepts(row), told.is_none());
        if let Some(exception) = exception {
            let as_told = api == exception.api_takes && agent != api;
            assert!(
                as_told,
                "no exception any more: {}, {}",
                row.name, exception.why
            );
        } else if agent != api {
            let told = told.map_or("accepted by the API server", String::as_str);
            differ.push(format!("{}:\n{}\n{told}", row.name, row.text));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
    (rows.len() - refused.len(), refused.len())
}

#[test]
fn policies_that_the_agent_takes_the_api_server_takes() {
    assert_eq!(agree(&rows("policies")), (7, 1));
}

#[test]
fn policies_that_the_agent_refuses_the_api_server_refuses() {
    assert_eq!(agree(&rows("policies-invalid")), (0, 54));
}

#[test]
fn drains_are_judged_alike() {
    let (accepted, refused) = agree(&rows("drains"));
    assert_eq!((accepted, refused), (8, 8));
}

#[test]
fn annotations_of_services_are_judged_alike_pain_23() {
    assert_eq!(agree(&rows("annotations")), (1, 3));
}
