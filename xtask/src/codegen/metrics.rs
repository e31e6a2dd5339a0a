//! Writes the reference of metrics from what the programs expose: name, type, labels and help.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::ensure;

use super::example;

/// The page.
pub(super) const DOCUMENT: &str = "docs/metrics.md";

const HEAD: &str = "# Metrics\n\n\
    `cargo xtask codegen` generates this page from the programs' own expositions.\n\
    [health-and-metrics.md](health-and-metrics.md) describes the endpoints, and which values deserve an alert.\n\n\
    Names that end in `_seconds` are in seconds.\n\
    A histogram has the series `_bucket`, `_sum` and `_count`.\n";

/// Each program: the example that prints its exposition, and its heading.
const PROGRAMS: [(&str, &str); 3] = [
    ("agent_metrics", "ipvs-topo agent"),
    ("dns_metrics", "ipvs-topo dns"),
    ("controller_metrics", "ipvs-topo-controller"),
];

/// The groups of a program's metrics, by the beginning of their names.
const GROUPS: [(&str, &str); 5] = [
    ("kubeproxy_", "Names of kube-proxy"),
    ("ipvs_topo_", "Names of ipvs-topo"),
    ("rest_client_", "Names of every client of Kubernetes"),
    (
        "kubernetes_",
        "Names of every component of Kubernetes, on `/metrics/slis`",
    ),
    ("process_", "The process"),
];

/// A metric as a scraper sees it.
#[derive(Debug, PartialEq, Eq)]
struct Metric {
    name: String,
    kind: String,
    labels: BTreeSet<String>,
    help: String,
}

/// The whole page.
pub(super) fn page() -> anyhow::Result<String> {
    let mut page = HEAD.to_owned();
    for (name, title) in PROGRAMS {
        let metrics = parse(&example::output(name)?);
        add(&mut page, title, &metrics)?;
    }
    Ok(page)
}

/// The metrics of an exposition in Prometheus' text format.
fn parse(exposition: &str) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    let (mut help, mut place) = ("", 0);
    for line in exposition.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.split_once(' '))
        {
            // A program may expose a metric on two paths.
            let known = metrics.iter().position(|known| known.name == name);
            place = known.unwrap_or(metrics.len());
            if known.is_none() {
                metrics.push(Metric {
                    name: name.to_owned(),
                    kind: kind.to_owned(),
                    labels: BTreeSet::new(),
                    help: help.trim_end_matches('.').to_owned(),
                });
            }
        } else if let Some(metric) = metrics.get_mut(place) {
            metric.labels.extend(labels(line).map(str::to_owned));
        }
    }
    metrics
}

/// The names of a sample's labels; `le` belongs to every histogram.
fn labels(sample: &str) -> impl Iterator<Item = &str> {
    let inside = sample.split_once('{').map_or("", |(_, rest)| rest);
    let pairs = inside.split("=\"").filter_map(|piece| {
        let name = piece.rsplit([',', '"']).next()?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        (!name.is_empty() && name.chars().all(is_name)).then_some(name)
    });
    pairs.filter(|name| *name != "le")
}

fn add(page: &mut String, title: &str, metrics: &[Metric]) -> anyhow::Result<()> {
    write!(page, "\n## {title}\n")?;
    let mut grouped = 0;
    for (prefix, heading) in GROUPS {
        let mut group = metrics
            .iter()
            .filter(|metric| metric.name.starts_with(prefix))
            .peekable();
        if group.peek().is_none() {
            continue;
        }
        write!(page, "\n### {heading}\n\n")?;
        page.push_str("| name | type | labels | meaning |\n| --- | --- | --- | --- |\n");
        for Metric {
            name,
            kind,
            labels,
            help,
        } in group
        {
            grouped += 1;
            let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
            let labels = labels.join(", ");
            let help = help.replace('<', "&lt;");
            writeln!(page, "| `{name}` | {kind} | {labels} | {help} |")?;
        }
    }
    ensure!(
        grouped == metrics.len(),
        "a metric of {title} is in no group; add one in xtask/src/codegen/metrics.rs"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPOSITION: &str = "# HELP ipvs_topo_drains_total Drained real servers.\n\
        # TYPE ipvs_topo_drains_total counter\n\
        ipvs_topo_drains_total{result=\"a,b=\\\"c\",node=\"n1\"} 1\n\
        # HELP kubeproxy_x_seconds Duration.\n\
        # TYPE kubeproxy_x_seconds histogram\n\
        kubeproxy_x_seconds_bucket{le=\"1\",ip_family=\"IPv4\"} 1\n\
        kubeproxy_x_seconds_sum{ip_family=\"IPv4\"} 1\n";

    #[test]
    fn a_row_has_the_name_the_type_the_labels_and_the_help() {
        let mut page = String::new();
        add(&mut page, "agent", &parse(EXPOSITION)).unwrap();
        assert!(
            page.contains(
                "| `ipvs_topo_drains_total` | counter | `node`, `result` | Drained real servers |"
            ),
            "{page}"
        );
        assert!(page.contains("| `kubeproxy_x_seconds` | histogram | `ip_family` | Duration |"));
        assert!(page.find("kubeproxy_x") < page.find("ipvs_topo_drains"));
    }

    #[test]
    fn a_metric_on_two_paths_has_one_row() {
        let metrics = parse(&format!("{EXPOSITION}{EXPOSITION}"));
        assert_eq!(metrics, parse(EXPOSITION));
        assert_eq!(metrics.len(), 2);
    }

    #[test]
    fn a_metric_without_a_group_is_an_error() {
        let metrics = parse("# HELP a A.\n# TYPE a gauge\na 1\n");
        assert!(add(&mut String::new(), "agent", &metrics).is_err());
    }
}
