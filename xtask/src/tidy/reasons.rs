//! Rule: `docs/messages.md` explains every word that decisions and warnings use, and no other.

use std::collections::BTreeSet;

use syn::Item;

use super::markdown;
use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

/// The document with the tables.
const DOCUMENT: &str = "docs/messages.md";
/// Each enum, where it is declared, and the heading over its table; the rows begin with a variant in backticks.
const TABLES: [(&str, &str, &str); 11] = [
    ("Reason", CORE, "## Every reason"),
    ("Refusal", CORE, "## Every refusal"),
    ("FindingKind", CORE, "## Every finding"),
    ("Note", CORE, "## Every note"),
    ("LostBecause", CORE, "## Every way to lose"),
    (
        "HintProblem",
        "crates/topology-core/src/hints/",
        "## Every reason for no hints",
    ),
    (
        "Code",
        "crates/cluster/src/warning",
        "## Every warning about the input",
    ),
    (
        "Reach",
        "crates/controller/src/state/policy.rs",
        "## Every reason of a policy's condition",
    ),
    (
        "Levels",
        "crates/controller/src/state/levels.rs",
        "## Every reason for known or unknown levels",
    ),
    (
        "Topic",
        "crates/agent/src/node_warning.rs",
        "## Every trouble of the node",
    ),
    (
        "Fault",
        "crates/cluster/src/api/",
        "## Every trouble with the API server",
    ),
];
/// Where the resolver declares its words.
const CORE: &str = "crates/topology-core/src/resolve/";

/// Finds variants without an explanation, explanations of variants that are gone, and codes that are no variant's name.
pub(super) fn check(tree: &Tree, sources: &[Source]) -> Vec<Problem> {
    TABLES
        .iter()
        .flat_map(|(name, place, heading)| check_table(tree, sources, (name, place), heading))
        .collect()
}

fn check_table(
    tree: &Tree,
    sources: &[Source],
    (name, place): (&str, &str),
    heading: &str,
) -> Vec<Problem> {
    let mut near = sources
        .iter()
        .filter(|source| source.path.starts_with(place));
    let Some((path, variants)) = near.find_map(|source| variants(source, name)) else {
        let message = format!(
            "no `enum {name}` was found; the table under \"{heading}\" in {DOCUMENT} depends on it"
        );
        return vec![Problem::in_file(place, message)];
    };
    let explained = explained(tree.text(DOCUMENT).unwrap_or_default(), heading);
    let unexplained = variants.difference(&explained).map(|variant| {
        let message = format!("`{name}::{variant}` ({path}) has no row under \"{heading}\"; say what it means and what to do");
        Problem::in_file(DOCUMENT, message)
    });
    let gone = explained.difference(&variants).map(|variant| {
        let message =
            format!("`{variant}` is explained, but {path} has no such `{name}`; delete the row");
        Problem::in_file(DOCUMENT, message)
    });
    let declared = tree.text(path).unwrap_or_default();
    let unnamed = variants
        .iter()
        .filter(|variant| !declared.contains(&format!("=> \"{variant}\"")));
    let unnamed = unnamed.map(|variant| {
        let message = format!("`{name}::{variant}` has no code; give it its name in `code()`");
        Problem::in_file(path, message)
    });
    unexplained.chain(gone).chain(unnamed).collect()
}

/// The variants of the enum, if this file declares it.
fn variants<'a>(source: &'a Source, name: &str) -> Option<(&'a str, BTreeSet<String>)> {
    source.ast.items.iter().find_map(|item| match item {
        Item::Enum(item) if item.ident == name => {
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
fn explained(document: &str, heading: &str) -> BTreeSet<String> {
    document
        .lines()
        .skip_while(|line| *line != heading)
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
                "pub enum Reason { Chosen, NotReady { since: u8 } } enum Refusal {} enum FindingKind {} enum Note {} enum LostBecause {}
                 fn code() { match self { Chosen => \"Chosen\", NotReady => \"NotReady\" } }",
            ),
            ("crates/topology-core/src/hints/event.rs", "enum HintProblem {}"),
            ("crates/cluster/src/warning/code.rs", "pub enum Code {}"),
            ("crates/cluster/src/api/error.rs", "enum Fault {}"),
            ("crates/agent/src/node_warning.rs", "pub enum Topic {}"),
            ("crates/controller/src/state/policy.rs", "enum Reach {}"),
            ("crates/controller/src/state/levels.rs", "enum Levels {}"),
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
    fn every_variant_has_its_name_as_its_code() {
        let tree = Tree::from([
            (
                "crates/topology-core/src/hints/event.rs",
                "enum HintProblem { Nodes } fn code() { match self { Nodes => \"nodes\" } }",
            ),
            (DOCUMENT, "## Every reason for no hints\n| `Nodes` | x |\n"),
        ]);
        let problems = texts(&check(&tree, &parse_all(&tree).unwrap()));
        assert!(
            problems
                .iter()
                .any(|one| one.contains("`HintProblem::Nodes` has no code")),
            "{problems:?}"
        );
    }

    #[test]
    fn an_enum_that_is_gone_is_a_problem() {
        let tree = Tree::from([(
            "crates/topology-core/src/resolve/reason.rs",
            "enum Reason {}",
        )]);
        let problems = texts(&check(&tree, &parse_all(&tree).unwrap()));
        assert_eq!(problems.len(), TABLES.len() - 1, "{problems:?}");
        assert!(problems[0].contains("no `enum Refusal` was found"));
    }

    #[test]
    fn a_complete_table_holds() {
        let text =
            "## Every reason\n| `Chosen` | x |\n| `NotReady` | y |\n## Next\n| `Other` | z |\n";
        assert!(problems_of(text).is_empty());
    }
}
