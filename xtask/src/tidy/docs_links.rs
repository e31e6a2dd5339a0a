//! Rule: a relative link in a document leads to a file in the tree, and its anchor to a heading.

use super::markdown;
use super::problem::Problem;
use super::tree::Tree;

/// Finds links that lead nowhere.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in markdown::all(tree) {
        for (line, target) in markdown::links(text) {
            if let Some(wrong) = broken(tree, path, target) {
                problems.push(Problem::at(path, line, wrong));
            }
        }
    }
    problems
}

/// What is wrong with a link, if anything. Addresses outside the tree are not followed.
fn broken(tree: &Tree, document: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() {
        document.to_owned()
    } else {
        resolve(document, file)
    };
    if !tree.exists(&file) {
        return Some(format!(
            "the link `{target}` leads to {file}, which is not in the tree; correct the link or add the file"
        ));
    }
    let headings = markdown::anchors(tree.text(&file).unwrap_or_default());
    let missing = !anchor.is_empty() && !headings.iter().any(|heading| heading == anchor);
    missing.then(|| {
        format!(
            "{file} has no heading for `#{anchor}`; its anchors are: {}",
            headings.join(", ")
        )
    })
}

/// `target` as seen from the folder of `document`, without `.` and `..`.
fn resolve(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::*;

    #[test]
    fn a_link_to_a_missing_file_or_heading_is_a_problem() {
        let tree = Tree::from([
            (
                "README.md",
                "[a](docs/a.md) [b](docs/gone.md) [c](docs/a.md#levels) [d](docs/a.md#gone)",
            ),
            (
                "docs/a.md",
                "# Levels\n[up](../README.md) [out](https://example.com/x) [self](#levels)",
            ),
        ]);
        let problems = texts(&check(&tree));
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("leads to docs/gone.md, which is not in the tree"));
        assert!(problems[1].contains("no heading for `#gone`; its anchors are: levels"));
    }
}
