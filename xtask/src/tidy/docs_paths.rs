//! Rule: files, folders, crates and Rust items that a document names exist.

use super::markdown;
use super::members::Member;
use super::problem::Problem;
use super::tree::Tree;

/// Extensions that make a bare word in backticks a file name.
const FILE_EXTENSIONS: [&str; 8] = [
    ".rs", ".toml", ".yaml", ".json", ".md", ".svg", ".sh", ".nft",
];

/// The document that must name every crate.
const MAP: &str = "docs/architecture.md";

/// Finds names in documents that name nothing, and crates that the map forgets.
pub(super) fn check(tree: &Tree, members: &[Member]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in markdown::living(tree) {
        for code in markdown::code(text).iter().filter(|code| !code.block) {
            let wrong =
                missing_path(tree, code.text).or_else(|| missing_item(tree, members, code.text));
            problems.extend(wrong.map(|message| Problem::at(path, code.line, message)));
        }
    }
    problems.extend(missing_crates(tree, members));
    problems
}

/// A path from the root, or a bare file name, that is not in the tree.
fn missing_path(tree: &Tree, code: &str) -> Option<String> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '-' | '_' | '*');
    if code.is_empty() || !code.chars().all(plain) || code.starts_with('/') {
        return None;
    }
    let (top, rest) = code.split_once('/').unwrap_or((code, ""));
    let known = if rest.is_empty() {
        let bare = FILE_EXTENSIONS
            .iter()
            .any(|extension| code.ends_with(extension));
        !bare
            || tree.exists(code)
            || tree
                .under("")
                .any(|(path, _)| path.ends_with(&format!("/{code}")))
    } else if tree.exists(top) {
        let before_star = code.split('*').next().unwrap_or(code);
        tree.exists(code) || (code.contains('*') && tree.under(before_star).next().is_some())
    } else {
        true
    };
    (!known)
        .then(|| format!("`{code}` is not in the tree; correct the name or delete the sentence"))
}

/// Reports `some_crate::item` if that crate of the workspace does not contain the item.
fn missing_item(tree: &Tree, members: &[Member], code: &str) -> Option<String> {
    let (first, rest) = code.split_once("::")?;
    let member = members
        .iter()
        .find(|member| member.name.replace('-', "_") == first)?;
    let item = rest.rsplit("::").next()?;
    let item: String = item
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    let prefix = format!("{}/src/", member.folder);
    let word = |text: &str| {
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|word| word == item)
    };
    let found = item.is_empty() || tree.under(&prefix).any(|(_, text)| word(text));
    (!found).then(|| format!("`{code}`: {prefix} has no `{item}`; correct the name"))
}

fn missing_crates(tree: &Tree, members: &[Member]) -> Vec<Problem> {
    let map = tree.text(MAP).unwrap_or_default();
    members
        .iter()
        .filter(|member| !member.folder.ends_with("/fuzz"))
        .filter(|member| !map.contains(&format!("`{}`", member.name)))
        .map(|member| {
            let message = format!(
                "`{}` is not named; say what is in it and what it never does",
                member.name
            );
            Problem::in_file(MAP, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::*;

    fn problems_of(document: &str) -> Vec<String> {
        let tree = Tree::from([
            ("crates/agent/src/apply.rs", "pub fn apply() {}"),
            ("docs/kernel.md", document),
            (MAP, "`agent`"),
        ]);
        let member = Member {
            name: "agent".into(),
            folder: "crates/agent".into(),
            ..Member::default()
        };
        texts(&check(&tree, &[member]))
    }

    #[test]
    fn a_path_that_is_gone_is_a_problem_and_a_kernel_path_is_not() {
        let problems = problems_of(
            "See `crates/agent/src/gone.rs`, `gone.rs`, `apply.rs`, `crates/*`, `/proc/net/ip_vs`, `drivers/net/`.",
        );
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems[0].contains("docs/kernel.md:1: `crates/agent/src/gone.rs` is not in the tree")
        );
        assert!(problems[1].contains("`gone.rs` is not in the tree"));
    }

    #[test]
    fn an_item_that_is_gone_is_a_problem() {
        let problems =
            problems_of("`agent::apply::apply()` and `agent::apply::vanish` and `std::fmt`");
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("has no `vanish`"));
    }

    #[test]
    fn a_crate_that_the_map_forgets_is_a_problem() {
        let tree = Tree::from([(MAP, "nothing yet")]);
        let member = Member {
            name: "cluster".into(),
            ..Member::default()
        };
        let problems = texts(&check(&tree, &[member]));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("`cluster` is not named"));
    }
}
