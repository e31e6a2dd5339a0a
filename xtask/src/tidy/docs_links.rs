//! Rule: a relative link in a document leads to a file in the tree, its anchor to a heading, and
//! `docs/SUMMARY.md` lists every document under `docs`. A document under `docs` links only to others, because the book
//! has nothing else.

use std::collections::BTreeSet;

use super::markdown;
use super::problem::Problem;
use super::tree::Tree;

/// The list of all pages, which mdBook builds.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Finds links that lead nowhere, and documents that the summary does not list.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut listed = BTreeSet::from([SUMMARY.to_owned()]);
    for (path, text) in markdown::all(tree) {
        for (line, target) in markdown::links(text) {
            let file = target.split('#').next().unwrap_or_default();
            if path == SUMMARY {
                listed.insert(resolve(path, file));
            }
            if let Some(wrong) = broken(tree, path, target) {
                problems.push(Problem::at(path, line, wrong));
            }
        }
    }
    let documents = markdown::all(tree).filter(|(path, _)| path.starts_with("docs/"));
    for (path, _) in documents.filter(|(path, _)| !listed.contains(*path)) {
        let message = "docs/SUMMARY.md does not list this page; add it there";
        problems.push(Problem::in_file(path, message));
    }
    problems
}

/// The problem of a link, if any. Addresses outside the tree are not followed.
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
    if document.starts_with("docs/") && !file.starts_with("docs/") {
        return Some(format!(
            "the link `{target}` leads out of the book; name the path as `{file}` instead"
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
    fn a_page_that_the_summary_does_not_list_is_a_problem() {
        let tree = Tree::from([
            ("docs/SUMMARY.md", "[a](a.md#x)"),
            ("docs/a.md", "# x"),
            ("docs/b.md", ""),
        ]);
        let problems = texts(&check(&tree));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("docs/b.md: docs/SUMMARY.md does not list this page"));
    }

    #[test]
    fn a_link_to_a_missing_file_or_heading_is_a_problem() {
        let tree = Tree::from([
            (
                "README.md",
                "[a](docs/a.md) [b](docs/gone.md) [c](docs/a.md#levels) [d](docs/a.md#gone)",
            ),
            ("docs/SUMMARY.md", "[a](a.md)"),
            (
                "docs/a.md",
                "# Levels\n[up](../README.md) [over](../docs/a.md) [out](https://example.com/x) [self](#levels)",
            ),
        ]);
        let problems = texts(&check(&tree));
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].contains("leads to docs/gone.md, which is not in the tree"));
        assert!(problems[1].contains("no heading for `#gone`; its anchors are: levels"));
        assert!(problems[2].contains("leads out of the book; name the path as `README.md`"));
    }
}
