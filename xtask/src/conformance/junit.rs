//! Reads the `JUnit` reports of runs and merges them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::proxy::Proxy;

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed,
    /// The test found that it does not apply to this cluster.
    Skipped,
}

impl Verdict {
    /// Reads the state of a test as Ginkgo writes it.
    pub(super) fn of(state: &str) -> Self {
        match state {
            "passed" => Self::Passed,
            "skipped" => Self::Skipped,
            // Also `panicked`, `timedout`, `interrupted` and `aborted`.
            _ => Self::Failed,
        }
    }
}

/// The result of a test.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CaseOutcome {
    pub(super) verdict: Verdict,
    pub(super) seconds: f64,
    /// Why it failed or was skipped.
    pub(super) reason: String,
}

/// Results by the names of their tests.
pub(super) type Outcomes = BTreeMap<String, CaseOutcome>;

/// A folder with the reports of runs, `PROXY-NUMBER.xml`.
pub(super) struct Reports {
    folder: PathBuf,
}

impl Reports {
    pub(super) fn open(folder: &Path) -> anyhow::Result<Self> {
        let folder = std::path::absolute(folder)?;
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self { folder })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the file for a new report, after `skipped` other new ones.
    pub(super) fn next(&self, proxy: Proxy, skipped: usize) -> anyhow::Result<PathBuf> {
        let numbers = self.files(proxy)?;
        let last = numbers.last_key_value().map_or(0, |(number, _)| *number);
        let name = format!("{}-{}.xml", proxy.name(), last + 1 + skipped);
        Ok(self.folder.join(name))
    }

    /// Reads every report of runs with `proxy`; the last run of a test counts.
    pub(super) fn merged(&self, proxy: Proxy) -> anyhow::Result<Outcomes> {
        let mut merged = Outcomes::new();
        for file in self.files(proxy)?.values() {
            let text = fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let read = parse(&text);
            merged.extend(read.with_context(|| file.display().to_string())?);
        }
        Ok(merged)
    }

    /// The reports of runs with `proxy` by their number.
    fn files(&self, proxy: Proxy) -> anyhow::Result<BTreeMap<usize, PathBuf>> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            files.extend(number(&name, proxy).map(|number| (number, path.clone())));
        }
        Ok(files)
    }
}

/// Reads the number in the name of a report.
fn number(name: &str, proxy: Proxy) -> Option<usize> {
    let rest = name.strip_prefix(proxy.name())?.strip_prefix('-')?;
    rest.strip_suffix(".xml")?.parse().ok()
}

/// Parses a report.
fn parse(xml: &str) -> anyhow::Result<Outcomes> {
    let document = roxmltree::Document::parse(xml).context("this is no JUnit report")?;
    let cases = document.descendants();
    let cases = cases.filter(|node| node.has_tag_name("testcase"));
    let outcomes = cases.map(|case| {
        let attribute = |name| {
            case.attribute(name)
                .with_context(|| format!("a test case without `{name}`"))
        };
        let outcome = CaseOutcome {
            verdict: Verdict::of(attribute("status")?),
            seconds: attribute("time")?.parse()?,
            reason: reason(case),
        };
        Ok((attribute("name")?.to_owned(), outcome))
    });
    outcomes.collect()
}

/// Returns the message of a test case that did not pass.
fn reason(case: roxmltree::Node<'_, '_>) -> String {
    let mut children = case.children();
    let message = children.find_map(|child| match child.tag_name().name() {
        "failure" | "error" | "skipped" => child.attribute("message"),
        _ => None,
    });
    message.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report as Ginkgo 2.32 writes it, shortened.
    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
  <testsuites tests="3" disabled="1" errors="0" failures="1" time="0">
      <testsuite name="Kubernetes e2e suite" package="" tests="3" time="0">
          <properties><property name="SuiteSucceeded" value="false"></property></properties>
          <testcase name="[sig-network] Services should serve &#34;it&#34;" classname="Kubernetes e2e suite" status="passed" time="12.5"></testcase>
          <testcase name="[sig-network] DNS should &lt;work&gt;" classname="Kubernetes e2e suite" status="timedout" time="60">
              <failure message="no answer &amp; no error" type="timedout">[TIMEDOUT] no answer</failure>
              <system-err>a log with &lt;testcase&gt;</system-err>
          </testcase>
          <testcase name="[sig-network] Zones should be three" classname="Kubernetes e2e suite" status="skipped" time="1">
              <skipped message="skipped - need six nodes"></skipped>
          </testcase>
      </testsuite>
  </testsuites>"#;

    fn outcome(verdict: Verdict, seconds: f64, reason: &str) -> CaseOutcome {
        CaseOutcome {
            verdict,
            seconds,
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn a_report_is_read_with_names_times_and_reasons() {
        let expected = Outcomes::from([
            (
                "[sig-network] Services should serve \"it\"".to_owned(),
                outcome(Verdict::Passed, 12.5, ""),
            ),
            (
                "[sig-network] DNS should <work>".to_owned(),
                outcome(Verdict::Failed, 60.0, "no answer & no error"),
            ),
            (
                "[sig-network] Zones should be three".to_owned(),
                outcome(Verdict::Skipped, 1.0, "skipped - need six nodes"),
            ),
        ]);
        assert_eq!(parse(REPORT).unwrap(), expected);
        assert!(parse("<testsuites>").is_err());
        let nameless = "<testsuites><testcase status='passed' time='1'/></testsuites>";
        let error = parse(nameless).unwrap_err();
        assert!(error.to_string().contains("without `name`"), "{error}");
    }

    #[test]
    fn the_last_run_of_a_test_counts_and_other_proxies_do_not() {
        let folder = std::env::temp_dir().join(format!("conformance-{}", std::process::id()));
        let reports = Reports::open(&folder).unwrap();
        let write = |proxy: Proxy, status: &str| {
            let case = format!("<testcase name='a' status='{status}' time='1'/>");
            let file = reports.next(proxy, 0).unwrap();
            fs::write(file, format!("<testsuites>{case}</testsuites>")).unwrap();
        };
        for _ in 0..10 {
            write(Proxy::Nftables, "failed");
        }
        write(Proxy::Nftables, "passed");
        write(Proxy::Ipvs, "failed");
        let verdict = |proxy| reports.merged(proxy).unwrap()["a"].verdict;
        assert_eq!(verdict(Proxy::Nftables), Verdict::Passed);
        assert_eq!(verdict(Proxy::Ipvs), Verdict::Failed);
        assert!(reports.merged(Proxy::IpvsTopo).unwrap().is_empty());
        fs::remove_dir_all(folder).unwrap();
    }
}
