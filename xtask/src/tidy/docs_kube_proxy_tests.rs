//! Rule: `docs/kube-proxy-tests.md` has each of kube-proxy's unit tests, with tests that exist or a reason.

use super::markdown;
use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

const DOCUMENT: &str = "docs/kube-proxy-tests.md";

/// The numbers that the reference gives to kube-proxy's tests.
fn numbers() -> impl Iterator<Item = u32> {
    (1..=49).chain(60..=66).chain(70..=71).chain(80..=109)
}

/// Finds numbers without a row, and rows whose tests do not exist.
pub(super) fn check(tree: &Tree, sources: &[Source]) -> Vec<Problem> {
    let document = tree.text(DOCUMENT).unwrap_or_default();
    let rows: Vec<(usize, &str)> = document
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("| KP-UT-"))
        .collect();
    let missing = numbers().filter_map(|number| {
        let start = format!("| KP-UT-{number:03} |");
        let has = rows
            .iter()
            .filter(|(_, row)| row.starts_with(&start))
            .count();
        let message = format!("has {has} rows for KP-UT-{number:03}; write one");
        (has != 1).then(|| Problem::in_file(DOCUMENT, message))
    });
    let wrong = rows.iter().flat_map(|(index, row)| {
        let messages = wrong(row, sources).into_iter();
        messages.map(move |message| Problem::at(DOCUMENT, index + 1, message))
    });
    missing.chain(wrong).collect()
}

/// The problems of a row: number, test of kube-proxy, tests here, remark.
fn wrong(row: &str, sources: &[Source]) -> Vec<String> {
    let row = row.strip_prefix('|').and_then(|row| row.strip_suffix('|'));
    let cells: Vec<&str> = row.unwrap_or_default().split('|').map(str::trim).collect();
    let [number, _, tests, remark] = cells.as_slice() else {
        return vec![
            "a row has four cells: number, test of kube-proxy, tests here, remark".to_owned(),
        ];
    };
    if tests.is_empty() && remark.is_empty() {
        return vec![format!("{number} has neither a test nor a reason")];
    }
    let named = markdown::code(tests).into_iter();
    let gone = named.filter(|code| !is_test(code.text, sources));
    gone.map(|code| format!("no test has the name `{}`", code.text))
        .collect()
}

/// Whether a function has this name behind an attribute `test`, of any crate.
fn is_test(name: &str, sources: &[Source]) -> bool {
    let function = format!("fn {name}(");
    sources.iter().any(|source| {
        let mut parts = source.text.match_indices(&function);
        parts.any(|(at, _)| {
            let before = source.text.get(..at).unwrap_or_default();
            let mut lines = before.rsplit('\n').skip(1).map(str::trim);
            lines
                .find(|line| !line.starts_with("//"))
                .is_some_and(|line| line.starts_with("#[") && line.contains("test"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::super::source::parse_all;
    use super::*;

    fn problems(rows: &str) -> Vec<String> {
        let code = "//! Tests.\n#[test]\nfn it_holds() {}\nfn helper() {}\n";
        let all = numbers()
            .filter(|number| *number > 3)
            .map(|number| format!("| KP-UT-{number:03} | x | `it_holds` | |\n"));
        let document = all.chain([rows.to_owned()]).collect::<String>();
        let tree = Tree::from([
            ("crates/agent/src/a.rs", code),
            (DOCUMENT, document.as_str()),
        ]);
        texts(&check(&tree, &parse_all(&tree).unwrap()))
    }

    #[test]
    fn a_row_needs_a_test_that_exists_or_a_reason() {
        let complete = "| KP-UT-001 | x | `it_holds` | |\n| KP-UT-002 | x | | ipset |\n| KP-UT-003 | x | `it_holds` | y |\n";
        assert_eq!(problems(complete), [""; 0]);
        let wrong = "| KP-UT-001 | x | `helper` | |\n| KP-UT-002 | x | | |\n";
        let problems = problems(wrong);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].contains("has 0 rows for KP-UT-003"));
        assert!(problems[1].contains("no test has the name `helper`"));
        assert!(problems[2].contains("neither a test nor a reason"));
    }
}
