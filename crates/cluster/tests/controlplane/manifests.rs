//! What is in `manifests`: applied, shown, repeated and deleted without a word too many.

use crate::kubectl::{
    Namespace, eventually, files, folder, installed, kubectl, ok, repository, run,
};

/// What each kind shows to `kubectl explain`, and a field whose text has to be there.
const EXPLAINED: [(&str, &str, &str); 5] = [
    (
        "clustertopologypolicies",
        "spec.levels.minReadyPercent",
        "merges into the next outer one",
    ),
    (
        "topologypolicies",
        "spec.guard.maxOverloadPercent",
        "fair share",
    ),
    ("topologydrains", "spec.expiresAt", "72 hours"),
    ("topologymaps", "spec.nodes", "by name"),
    ("topologyagents", "status.fallbacks.reason", "BelowMin"),
];

#[test]
fn every_kind_explains_itself() {
    installed();
    for (kind, field, words) in EXPLAINED {
        let whole = ok(&["explain", kind]);
        assert!(
            whole.contains("DESCRIPTION:") && !whole.contains("<empty>"),
            "{whole}"
        );
        let part = ok(&["explain", &format!("{kind}.{field}")]);
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(part.contains(words), "{part}");
    }
}

#[test]
fn every_kind_has_a_short_name_and_the_category() {
    installed();
    let listed = ok(&["api-resources", "--categories=ipvs-topo", "--no-headers"]);
    for short in [" ctp ", " tp ", " tdrain ", " tmap ", " tagent "] {
        assert!(listed.contains(short), "{listed}");
    }
}

#[test]
fn definitions_and_admission_are_the_same_when_they_are_applied_again() {
    installed();
    for folder in ["manifests/crds", "manifests/admission"] {
        let path = repository(folder);
        let again = ok(&["apply", "-k", &path]);
        assert!(
            again.lines().all(|line| line.ends_with(" unchanged")),
            "{again}"
        );
        assert_eq!(ok(&["diff", "-k", &path]), "");
    }
}

/// The objects in another namespace, since theirs need not exist.
fn elsewhere(text: &str, namespace: &str) -> String {
    let mut parts = text.split("namespace: ");
    let mut moved = parts.next().unwrap().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let (_, rest) = part.split_at(end.unwrap_or(part.len()));
        moved.extend(["namespace: ", namespace, rest]);
    }
    moved
}

#[test]
fn the_examples_are_taken_as_they_are() {
    installed();
    let namespace = Namespace::new();
    // Pods are refused until the namespace has it.
    let account = ["get", "serviceaccount", "default", "-n", &namespace.0];
    eventually("the default account", || kubectl(&account).ok());
    let mut count = 0;
    for path in files("manifests/examples") {
        let text = std::fs::read_to_string(&path).unwrap();
        // What the API server no longer has a field for is read from files only.
        let text = text
            .split("\n---\n")
            .filter(|one| !one.contains("topologyKeys:"));
        let text = text.collect::<Vec<_>>().join("\n---\n");
        let folder = folder(&[elsewhere(&text, &namespace.0)]);
        let output = run(&[
            "apply",
            "--dry-run=server",
            "-f",
            folder.path().to_str().unwrap(),
        ]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{}: {told}", path.display());
        count += String::from_utf8(output.stdout).unwrap().lines().count();
    }
    assert!(count > 100, "{count}");
}
