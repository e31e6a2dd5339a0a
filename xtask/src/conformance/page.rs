//! Writes the results of runs into `docs/conformance.md`, between two lines that mark the place.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};

use testbed::e2e::Suite;
use testbed::paths;

use super::junit::{Outcomes, Reports, TestOutcome, Verdict};
use super::proxy::Proxy;
use super::selection::GROUP;

/// The first line of the generated part.
const BEGIN: &str = "<!-- results: written by `cargo xtask conformance --publish` -->\n";

/// The line behind the generated part.
const END: &str = "<!-- end of the results -->\n";

/// Characters of a reason in the table.
const REASON: usize = 100;

/// Replaces the results in the page.
pub(super) fn publish(folder: &Path) -> anyhow::Result<ExitCode> {
    ensure!(folder.exists(), "there is no folder {}", folder.display());
    let reports = Reports::open(folder)?;
    let mut results = Vec::new();
    for proxy in Proxy::ALL {
        let outcomes = reports.merged(proxy)?;
        if !outcomes.is_empty() {
            results.push((proxy, outcomes));
        }
    }
    ensure!(
        !results.is_empty(),
        "there is no report in {}",
        folder.display()
    );
    let file = paths::root().join("docs/conformance.md");
    let page = fs::read_to_string(&file)?;
    let table = table(&results, &Suite::release()?);
    let page = replaced(&page, &table).with_context(|| file.display().to_string())?;
    fs::write(&file, page)?;
    anstream::println!("{}", file.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns the page with `text` between the marks.
fn replaced(page: &str, text: &str) -> anyhow::Result<String> {
    let (before, rest) = page
        .split_once(BEGIN)
        .context("the first mark is missing")?;
    let (_, after) = rest.split_once(END).context("the second mark is missing")?;
    Ok(format!("{before}{BEGIN}{text}{END}{after}"))
}

/// Formats the totals and a row for each test.
fn table(results: &[(Proxy, Outcomes)], release: &str) -> String {
    let totals = results.iter();
    let totals: String = totals
        .map(|(proxy, outcomes)| total(*proxy, outcomes))
        .collect();
    let names: Vec<&str> = results.iter().map(|(proxy, _)| proxy.name()).collect();
    let tests: BTreeSet<&String> = results.iter().flat_map(|(_, all)| all.keys()).collect();
    let rows = tests.into_iter().map(|test| {
        let cells = results.iter().map(|(_, outcomes)| cell(outcomes.get(test)));
        let cells: Vec<String> = cells.collect();
        let name = test.strip_prefix(GROUP).unwrap_or(test).trim_start();
        format!("| {} | {} |\n", escaped(name), cells.join(" | "))
    });
    format!(
        "The tests of Kubernetes {release}:\n\n\
         | | passed | failed | do not apply |\n| --- | --- | --- | --- |\n{totals}\n\
         | test | {} |\n| --- |{}\n{}\n",
        names.join(" | "),
        " --- |".repeat(names.len()),
        rows.collect::<String>()
    )
}

/// Formats the row with the numbers of one proxy.
fn total(proxy: Proxy, outcomes: &Outcomes) -> String {
    let count = |verdict| {
        let all = outcomes.values();
        all.filter(|outcome| outcome.verdict == verdict).count()
    };
    let [passed, failed, skipped] = [Verdict::Passed, Verdict::Failed, Verdict::Skipped].map(count);
    format!("| {} | {passed} | {failed} | {skipped} |\n", proxy.name())
}

fn cell(outcome: Option<&TestOutcome>) -> String {
    let Some(outcome) = outcome else {
        return "not run".to_owned();
    };
    let reason = outcome.reason.lines().next().unwrap_or_default();
    let reason: String = escaped(reason).chars().take(REASON).collect();
    match outcome.verdict {
        Verdict::Passed => format!("passed, {:.0} s", outcome.seconds),
        Verdict::Failed => format!("**failed**: {reason}"),
        Verdict::Skipped => format!("does not apply: {reason}"),
    }
}

/// Escapes what Markdown would read as a cell's border, a link or HTML.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if "|[]<>*_`".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(all: &[(&str, Verdict, &str)]) -> Outcomes {
        let each = all.iter().map(|(name, verdict, reason)| {
            let outcome = TestOutcome {
                verdict: *verdict,
                seconds: 12.4,
                reason: (*reason).to_owned(),
            };
            ((*name).to_owned(), outcome)
        });
        each.collect()
    }

    #[test]
    fn a_row_has_the_result_with_each_proxy() {
        let results = [
            (
                Proxy::IpvsTopo,
                outcomes(&[
                    ("[sig-network] a", Verdict::Passed, ""),
                    ("[sig-network] b", Verdict::Failed, "one | two\nthree"),
                ]),
            ),
            (
                Proxy::Nftables,
                outcomes(&[("[sig-network] b", Verdict::Skipped, "six nodes")]),
            ),
        ];
        let expected = "The tests of Kubernetes v1.37.2:\n\n\
            | | passed | failed | do not apply |\n| --- | --- | --- | --- |\n\
            | ipvs-topo | 1 | 1 | 0 |\n| nftables | 0 | 0 | 1 |\n\n\
            | test | ipvs-topo | nftables |\n| --- | --- | --- |\n\
            | a | passed, 12 s | not run |\n\
            | b | **failed**: one \\| two | does not apply: six nodes |\n\n";
        assert_eq!(table(&results, "v1.37.2"), expected);
    }

    #[test]
    fn only_the_marked_part_of_the_page_is_replaced() {
        let page = format!("# Title\n{BEGIN}old\n{END}end\n");
        let expected = format!("# Title\n{BEGIN}new\n{END}end\n");
        assert_eq!(replaced(&page, "new\n").unwrap(), expected);
        assert!(replaced("# Title\n", "new\n").is_err());
    }

    #[test]
    fn the_page_in_the_tree_has_the_marks() {
        let page = fs::read_to_string(paths::root().join("docs/conformance.md")).unwrap();
        assert!(replaced(&page, "").is_ok());
    }
}
