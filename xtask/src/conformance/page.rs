//! Writes the results of runs into `docs/conformance.md`, between two lines that mark the place.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};

use testbed::e2e::Suite;
use testbed::paths;

use super::junit::{CaseOutcome, Outcomes, Reports, Verdict};
use super::proxy::Proxy;
use super::selection::GROUP;

/// The first line of the generated part.
const BEGIN: &str = "<!-- results: written by `cargo xtask conformance --publish` -->\n";

/// The line behind the generated part.
const END: &str = "<!-- end of the results -->\n";

/// Characters of a reason in the table.
const REASON: usize = 100;

/// The cell of a test that has not run.
const NOT_RUN: &str = "not run";

/// What a cell of the table begins with.
const PASSED: &str = "passed";
const FAILED: &str = "**failed**";
const SKIPPED: &str = "does not apply";

/// The cells of the table: by test, as the table names it, and by proxy.
type Cells = BTreeMap<String, BTreeMap<Proxy, String>>;

/// Replaces the results in the page with those of the reports in `folder`.
/// Results that are in the page and not in the reports stay, because a run can be split over machines.
pub(super) fn publish(folder: &Path) -> anyhow::Result<ExitCode> {
    ensure!(folder.exists(), "there is no folder {}", folder.display());
    let file = paths::root().join("docs/conformance.md");
    let page = ResultsPage::read(&file)?;
    let mut cells = published(&page.table);
    let reports = Reports::open(folder)?;
    let mut is_empty = true;
    for proxy in Proxy::ALL {
        let outcomes = reports.merged(proxy)?;
        is_empty &= outcomes.is_empty();
        put(&mut cells, proxy, &outcomes);
    }
    ensure!(!is_empty, "there is no report in {}", folder.display());
    fs::write(&file, page.with_table(&table(&cells, &Suite::release()?)))?;
    anstream::println!("{}", file.display());
    Ok(ExitCode::SUCCESS)
}

/// The page, split at the marks.
struct ResultsPage {
    before: String,
    table: String,
    after: String,
}

impl ResultsPage {
    fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file)?;
        Self::parse(&text).with_context(|| file.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let (before, rest) = text
            .split_once(BEGIN)
            .context("the first mark is missing")?;
        let (table, after) = rest.split_once(END).context("the second mark is missing")?;
        Ok(Self {
            before: before.to_owned(),
            table: table.to_owned(),
            after: after.to_owned(),
        })
    }

    fn with_table(&self, table: &str) -> String {
        format!("{}{BEGIN}{table}{END}{}", self.before, self.after)
    }
}

/// Reads the cells of a table that `table` wrote.
fn published(markdown: &str) -> Cells {
    let rows = markdown.lines().filter_map(|line| {
        let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
        Some(row.split(" | ").collect::<Vec<_>>())
    });
    let mut columns = Vec::new();
    let mut cells = Cells::new();
    for row in rows {
        match row.as_slice() {
            ["test", names @ ..] => columns = names.iter().map(|name| named(name)).collect(),
            // Before the first header are the totals.
            [test, results @ ..] if *test != "---" && !columns.is_empty() => {
                let known = columns.iter().zip(results);
                let known = known.filter_map(|(proxy, cell)| Some(((*proxy)?, *cell)));
                let run = known.filter(|(_, cell)| *cell != NOT_RUN);
                let run = run.map(|(proxy, cell)| (proxy, cell.to_owned()));
                cells.entry((*test).to_owned()).or_default().extend(run);
            }
            _ => {}
        }
    }
    cells
}

/// The proxy with this name.
fn named(name: &str) -> Option<Proxy> {
    Proxy::ALL.into_iter().find(|proxy| proxy.name() == name)
}

/// Puts the results with `proxy` into the cells.
fn put(cells: &mut Cells, proxy: Proxy, outcomes: &Outcomes) {
    for (test, outcome) in outcomes {
        let name = test.strip_prefix(GROUP).unwrap_or(test).trim_start();
        let row = cells.entry(escaped(name)).or_default();
        row.insert(proxy, cell(outcome));
    }
}

/// Formats the totals and a row for each test. Those with this project's DNS servers are few, and have a table of their
/// own.
fn table(cells: &Cells, release: &str) -> String {
    let has_run = |proxy: &Proxy| cells.values().any(|row| row.contains_key(proxy));
    let proxies: Vec<Proxy> = Proxy::ALL.into_iter().filter(has_run).collect();
    let totals: String = proxies.iter().map(|proxy| total(*proxy, cells)).collect();
    let (dns, others): (Vec<_>, Vec<_>) = proxies
        .into_iter()
        .partition(|proxy| *proxy == Proxy::IpvsTopoDns);
    let tables = [others, dns].map(|proxies| rows(cells, &proxies)).concat();
    format!(
        "The tests of Kubernetes {release}:\n\n\
         | | passed | failed | do not apply |\n| --- | --- | --- | --- |\n{totals}\n{tables}"
    )
}

/// Formats a row for each test that has run with one of `proxies`.
fn rows(cells: &Cells, proxies: &[Proxy]) -> String {
    if proxies.is_empty() {
        return String::new();
    }
    let has_run = |row: &BTreeMap<Proxy, String>| proxies.iter().any(|one| row.contains_key(one));
    let rows = cells.iter().filter(|(_, row)| has_run(row));
    let rows = rows.map(|(test, row)| {
        let of = |proxy| row.get(proxy).map_or(NOT_RUN, String::as_str);
        let row: Vec<&str> = proxies.iter().map(of).collect();
        format!("| {test} | {} |\n", row.join(" | "))
    });
    let names: Vec<&str> = proxies.iter().map(|proxy| proxy.name()).collect();
    format!(
        "| test | {} |\n| --- |{}\n{}\n",
        names.join(" | "),
        " --- |".repeat(names.len()),
        rows.collect::<String>()
    )
}

/// Formats the row with the numbers of one proxy.
fn total(proxy: Proxy, cells: &Cells) -> String {
    let count = |verdict| {
        let all = cells.values().filter_map(|row| row.get(&proxy));
        all.filter(|cell| cell.starts_with(verdict)).count()
    };
    let [passed, failed, skipped] = [PASSED, FAILED, SKIPPED].map(count);
    format!("| {} | {passed} | {failed} | {skipped} |\n", proxy.name())
}

fn cell(outcome: &CaseOutcome) -> String {
    let reason = outcome.reason.lines().next().unwrap_or_default();
    let reason: String = escaped(reason).chars().take(REASON).collect();
    match outcome.verdict {
        Verdict::Passed => format!("{PASSED}, {:.0} s", outcome.seconds),
        Verdict::Failed => format!("{FAILED}: {reason}"),
        Verdict::Skipped => format!("{SKIPPED}: {reason}"),
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
            let outcome = CaseOutcome {
                verdict: *verdict,
                seconds: 12.4,
                reason: (*reason).to_owned(),
            };
            ((*name).to_owned(), outcome)
        });
        each.collect()
    }

    /// Two tests with the agents, the first of them also with the DNS servers, the second with kube-proxy.
    fn cells() -> Cells {
        let mut cells = Cells::new();
        let with_agents = outcomes(&[
            ("[sig-network] a [Slow]", Verdict::Passed, ""),
            ("[sig-network] b", Verdict::Failed, "one | two\nthree"),
        ]);
        put(&mut cells, Proxy::IpvsTopo, &with_agents);
        let with_dns = outcomes(&[("[sig-network] a [Slow]", Verdict::Passed, "")]);
        put(&mut cells, Proxy::IpvsTopoDns, &with_dns);
        let with_kube_proxy = outcomes(&[("[sig-network] b", Verdict::Skipped, "six nodes")]);
        put(&mut cells, Proxy::Nftables, &with_kube_proxy);
        cells
    }

    #[test]
    fn a_row_has_the_result_with_each_proxy() {
        let expected = "The tests of Kubernetes v1.37.2:\n\n\
            | | passed | failed | do not apply |\n| --- | --- | --- | --- |\n\
            | ipvs-topo | 1 | 1 | 0 |\n| ipvs-topo-dns | 1 | 0 | 0 |\n| nftables | 0 | 0 | 1 |\n\n\
            | test | ipvs-topo | nftables |\n| --- | --- | --- |\n\
            | a \\[Slow\\] | passed, 12 s | not run |\n\
            | b | **failed**: one \\| two | does not apply: six nodes |\n\n\
            | test | ipvs-topo-dns |\n| --- | --- |\n\
            | a \\[Slow\\] | passed, 12 s |\n\n";
        assert_eq!(table(&cells(), "v1.37.2"), expected);
    }

    #[test]
    fn a_published_table_is_read_as_it_was_written() {
        assert_eq!(published(&table(&cells(), "v1.37.2")), cells());
        assert!(published("no table yet\n").is_empty());
    }

    #[test]
    fn a_new_result_replaces_only_its_own_cell() {
        let mut cells = published(&table(&cells(), "v1.37.2"));
        let repeated = outcomes(&[("[sig-network] b", Verdict::Passed, "")]);
        put(&mut cells, Proxy::IpvsTopo, &repeated);
        let table = table(&cells, "v1.37.3");
        assert!(table.contains("| ipvs-topo | 2 | 0 | 0 |\n"), "{table}");
        let row = "| b | passed, 12 s | does not apply: six nodes |\n";
        assert!(table.contains(row), "{table}");
    }

    #[test]
    fn only_the_marked_part_of_the_page_is_replaced() {
        let page = ResultsPage::parse(&format!("# Title\n{BEGIN}old\n{END}end\n")).unwrap();
        let expected = format!("# Title\n{BEGIN}new\n{END}end\n");
        assert_eq!(page.with_table("new\n"), expected);
        assert!(ResultsPage::parse("# Title\n").is_err());
    }

    #[test]
    fn the_page_in_the_tree_is_read_whole() {
        let text = fs::read_to_string(paths::root().join("docs/conformance.md")).unwrap();
        let page = ResultsPage::parse(&text).unwrap();
        let release = page.table.split_once("Kubernetes ").unwrap().1;
        let (release, _) = release.split_once(':').unwrap();
        assert_eq!(table(&published(&page.table), release), page.table);
    }
}
