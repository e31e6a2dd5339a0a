//! Rule: a metric that a document names is one that the agent, the controller or the DNS server exposes, and
//! `docs/metrics.md` lists every metric that they register.

use super::markdown;
use super::problem::Problem;
use super::tree::Tree;

/// The prefixes of the names: our own, and those kept from kube-proxy.
const PREFIXES: [&str; 2] = ["ipvs_topo_", "kubeproxy_"];
/// The suffixes that an exposition adds to a registered name.
const SUFFIXES: [&str; 4] = ["_total", "_bucket", "_count", "_sum"];
/// Where the names are registered.
const CODE: [&str; 3] = [
    "crates/agent/src/",
    "crates/dns-server/src/",
    "crates/controller/src/",
];
/// Where those of all programs are registered.
const SHARED: &str = "crates/telemetry/src/";
/// The generated page of all metrics.
const PAGE: &str = "docs/metrics.md";
/// The prefix that the controller's registry adds to its names.
const CONTROLLER: &str = "ipvs_topo_controller_";

/// Finds names of metrics that no code registers, and metrics that the page does not list.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = unlisted(tree);
    for (path, text) in markdown::living(tree) {
        for (index, line) in text.lines().enumerate() {
            for name in names(line).filter(|name| !registered(tree, name)) {
                let places = CODE.join(", ");
                let message = format!(
                    "no code under {places} registers the metric `{name}`; correct the name"
                );
                problems.push(Problem::at(path, index + 1, message));
            }
        }
    }
    problems
}

/// Metrics that the page does not list, because the example that prints them gives them no value.
fn unlisted(tree: &Tree) -> Vec<Problem> {
    let page = tree.text(PAGE).unwrap_or_default();
    let [agent, dns_server, controller] = CODE;
    let places = [
        (agent, ""),
        (dns_server, ""),
        (controller, CONTROLLER),
        (SHARED, ""),
    ];
    let mut problems = Vec::new();
    for (place, prefix) in places {
        for (path, text) in tree.under(place) {
            for name in literals(text).map(|name| format!("{prefix}{name}")) {
                if !page.contains(&format!("`{name}`"))
                    && !page.contains(&format!("`{name}_total`"))
                {
                    let message = format!(
                        "{PAGE} does not list the metric `{name}`; give it a value in `sample`, and run `cargo xtask codegen`"
                    );
                    problems.push(Problem::in_file(path, message));
                }
            }
        }
    }
    problems
}

/// The names that a source file registers.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    let calls = text.split(".register(").skip(1);
    calls.filter_map(|call| call.trim_start().strip_prefix('"')?.split('"').next())
}

/// The names in a line; `ipvs_topo_*` means all of them and is no name.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| {
            PREFIXES
                .iter()
                .any(|prefix| word.len() > prefix.len() && word.starts_with(prefix))
        })
}

/// Whether the code holds the name as a string, as it is or before an exposition's suffix.
fn registered(tree: &Tree, name: &str) -> bool {
    let [agent, dns_server, controller] = CODE;
    let (places, name) = match name.strip_prefix(CONTROLLER) {
        Some(rest) => (vec![controller], rest),
        None => (vec![agent, dns_server], name),
    };
    let stems = SUFFIXES
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix));
    let mut candidates = stems.chain([name]).map(|stem| format!("\"{stem}\""));
    candidates.any(|literal| {
        let mut files = places.iter().flat_map(|place| tree.under(place));
        files.any(|(_, text)| text.contains(&literal))
    })
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::*;

    #[test]
    fn a_metric_that_no_code_registers_is_a_problem() {
        let tree = Tree::from([
            (
                "crates/agent/src/metrics.rs",
                "registry.register(\"ipvs_topo_drains\", \"Drains\", drains);",
            ),
            (
                "crates/dns-server/src/metrics.rs",
                "registry.register(\"ipvs_topo_dns_requests\", \"Requests\", requests);",
            ),
            (
                "crates/controller/src/metrics.rs",
                "registry.register(\"leader\", \"1 if this replica leads.\", leader);",
            ),
            (
                PAGE,
                "`ipvs_topo_drains_total` `ipvs_topo_dns_requests_total` `ipvs_topo_controller_leader`",
            ),
            (
                "docs/operations.md",
                "`ipvs_topo_drains_total`, `ipvs_topo_dns_requests_total`, `ipvs_topo_*`, `ipvs_topo_controller_leader`\nand `kubeproxy_gone_total`\n`ipvs_topo_controller_gone`",
            ),
        ]);
        let problems = texts(&check(&tree));
        assert_eq!(problems.len(), 2, "{problems:?}");
        let none = "no code under crates/agent/src/, crates/dns-server/src/, crates/controller/src/ registers the metric";
        assert!(problems[0].starts_with(&format!(
            "docs/operations.md:2: {none} `kubeproxy_gone_total`"
        )));
        assert!(problems[1].starts_with(&format!(
            "docs/operations.md:3: {none} `ipvs_topo_controller_gone`"
        )));
    }

    #[test]
    fn a_metric_that_the_page_does_not_list_is_a_problem() {
        let tree = Tree::from([
            (
                "crates/agent/src/metrics.rs",
                "registry.register(\n  \"ipvs_topo_a\", \"A\", a); registry.register(\"ipvs_topo_b\", \"B\", b); self.register(registry);",
            ),
            (
                "crates/controller/src/metrics.rs",
                "registry.register(\"leader\", \"L\", l);",
            ),
            (PAGE, "| `ipvs_topo_a_total` | `leader` |"),
        ]);
        let problems = texts(&check(&tree));
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("does not list the metric `ipvs_topo_b`"));
        assert!(problems[1].contains("does not list the metric `ipvs_topo_controller_leader`"));
    }
}
