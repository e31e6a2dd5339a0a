//! Rule: the first line of every Rust file says what the file is for.

use super::problem::Problem;
use super::tree::Tree;

/// Finds `.rs` files that do not begin with a `//!` line.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    tree.with_extension("rs")
        .filter(|(_, text)| !begins_with_words(text))
        .map(|(path, _)| {
            let message =
                "the first line is no `//!` line; say in one sentence what this file is for";
            Problem::at(path, 1, message)
        })
        .collect()
}

/// Returns whether the first line is `//!` with at least two words.
fn begins_with_words(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first
        .strip_prefix("//!")
        .is_some_and(|words| words.split_whitespace().count() >= 2)
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::*;

    #[test]
    fn a_file_without_a_header_is_a_problem() {
        let tree = Tree::from([
            ("a.rs", "//! What a does.\n"),
            ("b.rs", "use std::fmt;\n//! Too late.\n"),
            ("c.rs", "//!\n"),
            ("notes.md", "no header wanted here"),
        ]);
        let problems = texts(&check(&tree));
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("b.rs:1: the first line is no `//!` line"));
        assert!(problems[1].starts_with("c.rs:1: "));
    }
}
