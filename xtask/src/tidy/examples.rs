//! Rule: every example in `manifests/examples` renders on every node that it names, without a warning.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::problem::Problem;
use super::tree::Tree;
use testbed::paths;

/// The folder of the examples; each child is one cluster, a folder or a file.
const FOLDER: &str = "manifests/examples/";

/// The time for which they are rendered: while the drain in one of them is in force.
const NOW: &str = "2026-11-22T09:00:00Z";

/// The result of `ipvs-topo render`.
struct Rendered {
    success: bool,
    output: String,
    complaints: String,
}

/// Renders every example on each of its nodes.
pub(super) fn check(tree: &Tree, agent: &Path) -> Vec<Problem> {
    check_with(tree, &|example, node| render(agent, example, node))
}

fn check_with(tree: &Tree, render: &dyn Fn(&str, &str) -> Rendered) -> Vec<Problem> {
    let mut problems = Vec::new();
    let examples = examples(tree);
    if examples.is_empty() {
        problems.push(Problem::in_file(
            FOLDER,
            "there is no example; README and tests need one",
        ));
    }
    for example in examples {
        let nodes = nodes(tree, &example);
        if nodes.is_empty() {
            let message =
                "has no `kind: Node`, so no command can render it; add the nodes it is about";
            problems.push(Problem::in_file(&example, message));
        }
        for node in nodes {
            let wrong = verdict(&render(&example, &node));
            problems.extend(wrong.map(|wrong| {
                let command =
                    format!("ipvs-topo render --cluster {example} --node {node} --now {NOW}");
                Problem::in_file(&example, format!("`{command}` {wrong}"))
            }));
        }
    }
    problems
}

fn verdict(rendered: &Rendered) -> Option<String> {
    let complaints = rendered.complaints.trim();
    if !rendered.success {
        Some(format!("failed: {complaints}"))
    } else if !complaints.is_empty() {
        Some(format!("warns; correct the example: {complaints}"))
    } else if rendered.output.trim().is_empty() {
        Some("prints nothing; give the example a Service".to_owned())
    } else {
        None
    }
}

fn render(agent: &Path, example: &str, node: &str) -> Rendered {
    let result = Command::new(agent)
        .args(["render", "-o", "save", "--now", NOW])
        .args(["--node", node, "--cluster"])
        .arg(paths::root().join(example))
        .output();
    match result {
        Ok(output) => Rendered {
            success: output.status.success(),
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            complaints: String::from_utf8_lossy(&output.stderr).into_owned(),
        },
        Err(error) => Rendered {
            success: false,
            output: String::new(),
            complaints: error.to_string(),
        },
    }
}

/// Returns the direct children of the examples' folder.
fn examples(tree: &Tree) -> BTreeSet<String> {
    tree.under(FOLDER)
        .filter_map(|(path, _)| path.strip_prefix(FOLDER)?.split('/').next())
        .filter(|name| {
            Path::new(name)
                .extension()
                .is_none_or(|extension| extension == "yaml" || extension == "json")
        })
        .map(|name| format!("{FOLDER}{name}"))
        .collect()
}

/// Returns the names of the Node objects in an example: separate documents, or items of a `kind: List`.
fn nodes(tree: &Tree, example: &str) -> BTreeSet<String> {
    let files = tree.under(example).map(|(_, text)| text);
    files.flat_map(nodes_of_file).collect()
}

/// Expects YAML as `kubectl` prints it: the first `name:` two columns right of `kind: Node` is the Node's name.
fn nodes_of_file(text: &str) -> Vec<String> {
    let mut lines = text.lines();
    let mut names = Vec::new();
    while let Some(line) = lines.next() {
        let Some(indent) = line
            .trim_start_matches([' ', '-'])
            .strip_prefix("kind: Node")
        else {
            continue;
        };
        if !indent.trim().is_empty() {
            continue;
        }
        let column = line.len() - "kind: Node".len() - indent.len() + 2;
        let prefix = format!("{}name: ", " ".repeat(column));
        names.extend(
            lines
                .find_map(|line| line.strip_prefix(&prefix))
                .map(str::to_owned),
        );
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::*;

    fn problems_of(success: bool, output: &str, complaints: &str) -> Vec<String> {
        let nodes = "kind: Node\nmetadata:\n  name: n1\n---\nkind: Node\nmetadata:\n  name: n2\n";
        let tree = Tree::from([
            ("manifests/examples/shop/nodes.yaml", nodes),
            ("manifests/examples/shop/service.yaml", "kind: Service\n"),
        ]);
        let render = |_: &str, _: &str| Rendered {
            success,
            output: output.into(),
            complaints: complaints.into(),
        };
        texts(&check_with(&tree, &render))
    }

    #[test]
    fn an_example_is_rendered_on_each_of_its_nodes() {
        let problems = problems_of(false, "", "no such field");
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("manifests/examples/shop: `ipvs-topo render --cluster manifests/examples/shop --node n1 --now 2026-11-22T09:00:00Z` failed: no such field"));
        assert!(problems[1].contains("--node n2"));
    }

    #[test]
    fn nodes_are_found_in_documents_and_in_lists() {
        let list = "items:\n- kind: Node\n  metadata:\n    labels:\n      name: no\n    name: n1\n- kind: NodeMetrics\n";
        assert_eq!(nodes_of_file(list), ["n1"]);
        let documents =
            "kind: Node\nmetadata:\n  name: n1\n---\nkind: Node\nmetadata:\n  name: n2\n";
        assert_eq!(nodes_of_file(documents), ["n1", "n2"]);
    }

    #[test]
    fn warnings_and_empty_output_are_problems_too() {
        assert!(problems_of(true, "-A", "").is_empty());
        assert!(problems_of(true, "-A", "unknown field")[0].contains("warns"));
        assert!(problems_of(true, "\n", "")[0].contains("prints nothing"));
    }

    #[test]
    fn examples_without_nodes_or_no_examples_at_all_are_problems() {
        let tree = Tree::from([("manifests/examples/a.yaml", "kind: Service\n")]);
        let render = |_: &str, _: &str| unreachable!("there is no node to render for");
        assert!(texts(&check_with(&tree, &render))[0].contains("has no `kind: Node`"));
        assert!(texts(&check_with(&Tree::default(), &render))[0].contains("there is no example"));
    }
}
