//! Rule: `docs/topology.md` explains every `Reason` an endpoint can leave with, and no other.

use std::collections::BTreeSet;

use syn::Item;

use super::markdown;
use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

/// The document with the table of reasons.
const DOCUMENT: &str = "docs/topology.md";
/// The heading over the table; its rows begin with a variant in backticks.
const HEADING: &str = "## Every reason";

/// Finds reasons without an explanation, and explanations of reasons that are gone.
pub(super) fn check(tree: &Tree, sources: &[Source]) -> Vec<Problem> {
    let core = sources
        .iter()
        .filter(|source| source.path.starts_with("crates/topology-core/src/"));
    let Some((path, variants)) = core.into_iter().find_map(reasons) else {
        let message = "no `enum Reason` was found; the table in docs/topology.md depends on it";
        return vec![Problem::in_file("crates/topology-core/src", message)];
    };
    let explained = explained(tree.text(DOCUMENT).unwrap_or_default());
    let unexplained = variants.difference(&explained).map(|variant| {
        let message = format!("`Reason::{variant}` ({path}) has no row under \"{HEADING}\"; say what it means and what to do");
        Problem::in_file(DOCUMENT, message)
    });
    let gone = explained.difference(&variants).map(|variant| {
        let message =
            format!("`{variant}` is explained, but {path} has no such `Reason`; delete the row");
        Problem::in_file(DOCUMENT, message)
    });
    unexplained.chain(gone).collect()
}

/// The variants of `enum Reason`, if this file declares it.
fn reasons(source: &Source) -> Option<(&str, BTreeSet<String>)> {
    source.ast.items.iter().find_map(|item| match item {
        Item::Enum(item) if item.ident == "Reason" => {
            let variants = item
                .variants
                .iter()
                .map(|variant| variant.ident.to_string());
            Some((source.path.as_str(), variants.collect()))
        }
        _ => None,
    })
}

/// The first code span of every table row under the heading.
fn explained(document: &str) -> BTreeSet<String> {
    document
        .lines()
        .skip_while(|line| *line != HEADING)
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| {
            markdown::code(line)
                .first()
                .map(|code| code.text.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::super::source::parse_all;
    use super::*;

    fn problems_of(document: &str) -> Vec<String> {
        let tree = Tree::from([
            (
                "crates/topology-core/src/resolve/reason.rs",
                "pub enum Reason { Chosen, NotReady { since: u8 } }",
            ),
            (DOCUMENT, document),
        ]);
        texts(&check(&tree, &parse_all(&tree).unwrap()))
    }

    #[test]
    fn every_reason_needs_a_row_and_every_row_a_reason() {
        let problems = problems_of(
            "## Every reason\n\n| reason | meaning |\n| `Chosen` | x |\n| `Gone` | y |\n",
        );
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("`Reason::NotReady`"));
        assert!(problems[1].contains("`Gone` is explained"));
    }

    #[test]
    fn a_complete_table_holds() {
        let text =
            "## Every reason\n| `Chosen` | x |\n| `NotReady` | y |\n## Next\n| `Other` | z |\n";
        assert!(problems_of(text).is_empty());
    }
}
