//! Rule: code reads every annotation and label with our prefix that a document or an example names.

use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

/// The prefix of our annotations and labels.
const PREFIX: &str = "topology.ipvs-topo.io/";
/// Where they are read.
const READERS: &str = "crates/topology-core/src/";

/// Finds annotations that no code reads.
pub(super) fn check(tree: &Tree, sources: &[Source]) -> Vec<Problem> {
    let readers = sources
        .iter()
        .filter(|source| source.path.starts_with(READERS) && !source.is_test());
    let code: String = readers.map(|source| source.text.as_str()).collect();
    let known = |name: &str| {
        code.contains(&format!("\"{name}\"")) || code.contains(&format!("{PREFIX}{name}\""))
    };
    let mut problems = Vec::new();
    let documents = tree.under("").filter(|(path, _)| speaks(path));
    for (path, text) in documents {
        for (index, line) in text.lines().enumerate() {
            for name in names(line).filter(|name| !known(name)) {
                let message = format!("no code reads `{PREFIX}{name}`; correct the name");
                problems.push(Problem::at(path, index + 1, message));
            }
        }
    }
    problems
}

/// Documents, and the examples that users copy.
fn speaks(path: &str) -> bool {
    std::path::Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "md")
        || path.starts_with("manifests/examples/")
}

/// The names after the prefix in one line; a custom resource's group has a version there instead.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split(PREFIX).skip(1).filter_map(|rest| {
        let end = rest
            .find(|c: char| !c.is_ascii_lowercase() && c != '-')
            .unwrap_or(rest.len());
        rest.get(..end)
            .filter(|name| !name.is_empty() && *name != "v")
    })
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::super::source::parse_all;
    use super::*;

    #[test]
    fn an_annotation_that_no_code_reads_is_a_problem() {
        let tree = Tree::from([
            (
                "crates/topology-core/src/policy/annotations.rs",
                "const W: &str = \"weights\";",
            ),
            (
                "docs/topology.md",
                "`topology.ipvs-topo.io/weights` in `topology.ipvs-topo.io/v1alpha1`",
            ),
            (
                "manifests/examples/a.yaml",
                "\n    topology.ipvs-topo.io/wieghts: node=1",
            ),
        ]);
        let problems = texts(&check(&tree, &parse_all(&tree).unwrap()));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with(
            "manifests/examples/a.yaml:2: no code reads `topology.ipvs-topo.io/wieghts`"
        ));
    }
}
