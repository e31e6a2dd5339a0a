//! Rule: `docs/messages.md` explains every code of decisions and warnings, and `docs/troubleshooting.md` every reason of
//! a condition; neither explains a code that is gone.

use std::collections::BTreeSet;

use syn::Item;

use super::markdown;
use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

/// The document with the codes of decisions and warnings.
const MESSAGES: &str = "docs/messages.md";
/// The document with the conditions of policies and drains.
const CONDITIONS: &str = "docs/troubleshooting.md";
/// Where the controller makes conditions.
const CONTROLLER: &str = "crates/controller/src/state/";

/// An enum whose variants a table explains; each row begins with a variant in backticks.
struct Table {
    name: &'static str,
    /// Where the enum is declared.
    place: &'static str,
    document: &'static str,
    heading: &'static str,
}

const fn table(
    name: &'static str,
    place: &'static str,
    document: &'static str,
    heading: &'static str,
) -> Table {
    Table {
        name,
        place,
        document,
        heading,
    }
}

const TABLES: [Table; 13] = [
    table("Reason", CORE, MESSAGES, "## Every reason"),
    table("Refusal", CORE, MESSAGES, "## Every refusal"),
    table("FindingKind", CORE, MESSAGES, "## Every finding"),
    table("Note", CORE, MESSAGES, "## Every note"),
    table(
        "LostBecause",
        CORE,
        MESSAGES,
        "## Every reason for not deciding",
    ),
    table(
        "HintProblem",
        "crates/topology-core/src/hints/",
        MESSAGES,
        "## Every reason for no hints",
    ),
    table(
        "Code",
        "crates/cluster/src/warning",
        MESSAGES,
        "## Every warning about the input",
    ),
    table(
        "Reach",
        "crates/controller/src/state/policy.rs",
        CONDITIONS,
        "### Programmed, of a policy",
    ),
    table(
        "Levels",
        "crates/controller/src/state/levels.rs",
        CONDITIONS,
        "### LevelsKnown, of a policy",
    ),
    table(
        "FallbackReason",
        "crates/crd/src/",
        CONDITIONS,
        "### Degraded, of a policy",
    ),
    table(
        "DrainPhase",
        "crates/crd/src/object_status.rs",
        CONDITIONS,
        "### Phase of a drain",
    ),
    table(
        "Topic",
        "crates/agent/src/node_warning.rs",
        MESSAGES,
        "## Every warning about the node",
    ),
    table(
        "Fault",
        "crates/kube-io/src/error",
        MESSAGES,
        "## Every error of the API server",
    ),
];
/// Where the resolver declares its words.
const CORE: &str = "crates/topology-core/src/resolve/";

/// Finds variants without an explanation, explanations of variants that are gone, and codes that are no variant's name.
pub(super) fn check(tree: &Tree, sources: &[Source]) -> Vec<Problem> {
    TABLES
        .iter()
        .flat_map(|table| check_table(tree, sources, table))
        .chain(check_literals(tree, sources))
        .collect()
}

/// Finds reasons that are literals in `NewCondition::new(type, status, reason, message)` and that no row explains.
fn check_literals(tree: &Tree, sources: &[Source]) -> Vec<Problem> {
    let page = tree.text(CONDITIONS).unwrap_or_default();
    let made = sources
        .iter()
        .filter(|source| source.path.starts_with(CONTROLLER) && !source.is_test());
    let literals = made.flat_map(|source| {
        let calls = source.text.split("NewCondition::new(").skip(1);
        calls.filter_map(move |call| Some((source, literal(call.split(',').nth(2)?)?)))
    });
    let unexplained = literals.filter(|(_, reason)| !page.contains(&format!("`{reason}`")));
    let problem = |(source, reason): (&Source, &str)| {
        let message = format!(
            "{CONDITIONS} does not explain the reason `{reason}`; say what it means and what to do"
        );
        Problem::in_file(&source.path, message)
    };
    unexplained.map(problem).collect()
}

/// The text of an argument that is a literal.
fn literal(argument: &str) -> Option<&str> {
    argument.trim().strip_prefix('"')?.strip_suffix('"')
}

fn check_table(tree: &Tree, sources: &[Source], table: &Table) -> Vec<Problem> {
    let Table {
        name,
        place,
        document,
        heading,
    } = *table;
    let mut near = sources
        .iter()
        .filter(|source| source.path.starts_with(place));
    let Some((path, variants)) = near.find_map(|source| variants(source, name)) else {
        let message = format!(
            "no `enum {name}` was found; the table under \"{heading}\" in {document} depends on it"
        );
        return vec![Problem::in_file(place, message)];
    };
    let explained = explained(tree.text(document).unwrap_or_default(), heading);
    let unexplained = variants.difference(&explained).map(|variant| {
        let message = format!("`{name}::{variant}` ({path}) has no row under \"{heading}\"; say what it means and what to do");
        Problem::in_file(document, message)
    });
    let gone = explained.difference(&variants).map(|variant| {
        let message =
            format!("`{variant}` is explained, but {path} has no such `{name}`; delete the row");
        Problem::in_file(document, message)
    });
    let declared = tree.text(path).unwrap_or_default();
    // The name of a variant is its code where serde writes it.
    let unnamed = variants.iter().filter(|variant| {
        !is_serialized(sources, path, name) && !declared.contains(&format!("=> \"{variant}\""))
    });
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

/// Whether the enum of this file derives `Serialize`.
fn is_serialized(sources: &[Source], path: &str, name: &str) -> bool {
    let source = sources.iter().find(|source| source.path == path);
    let mut items = source.into_iter().flat_map(|source| &source.ast.items);
    let derives = |attribute: &syn::Attribute| {
        let list = attribute.meta.require_list();
        attribute.path().is_ident("derive")
            && list.is_ok_and(|list| list.tokens.to_string().contains("Serialize"))
    };
    items.any(|item| match item {
        Item::Enum(item) => item.ident == name && item.attrs.iter().any(derives),
        _ => false,
    })
}

/// The first code span of every table row under the heading.
fn explained(document: &str, heading: &str) -> BTreeSet<String> {
    document
        .lines()
        .skip_while(|line| *line != heading)
        .skip(1)
        .take_while(|line| !line.starts_with("##"))
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
            ("crates/kube-io/src/error.rs", "enum Fault {}"),
            ("crates/agent/src/node_warning.rs", "pub enum Topic {}"),
            ("crates/controller/src/state/policy.rs", "enum Reach {}"),
            ("crates/crd/src/object_status.rs", "enum DrainPhase {}"),
            ("crates/crd/src/topology_agent.rs", "pub enum FallbackReason {}"),
            ("crates/controller/src/state/levels.rs", "enum Levels {}"),
            (MESSAGES, document),
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
            (MESSAGES, "## Every reason for no hints\n| `Nodes` | x |\n"),
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
    fn an_enum_that_serde_writes_needs_no_other_code() {
        let tree = Tree::from([
            (
                "crates/crd/src/object_status.rs",
                "#[derive(Debug, Serialize)] pub enum DrainPhase { Active }",
            ),
            (CONDITIONS, "### Phase of a drain\n| `Active` | x |\n"),
        ]);
        let problems = texts(&check(&tree, &parse_all(&tree).unwrap()));
        assert!(
            !problems.iter().any(|one| one.contains("DrainPhase")),
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

    #[test]
    fn a_reason_of_a_condition_needs_an_explanation() {
        let code = "fn plan() { NewCondition::new(\"Accepted\", \"True\", \"Valid\", text()); NewCondition::new(KIND, \"True\", \"Gone\", text()); }";
        let tree = Tree::from([
            ("crates/controller/src/state/drain.rs", code),
            (CONDITIONS, "| `Valid` | x |"),
        ]);
        let problems = texts(&check_literals(&tree, &parse_all(&tree).unwrap()));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("does not explain the reason `Gone`"));
    }
}
