//! The head and the tail of `status`: the state of the agent, and problems.

use std::fmt::Write as _;

use agent_api::numbers::many;
use agent_api::status::{
    CollectionView, ForeignView, HeadView, InputView, KernelView, StatusView, TimeoutsView,
};
use agent_api::view::{NotProgrammedView, WarningView};

use super::grid::{CellStyle, paint};
use super::plain::Plain;
use super::server::{Detail, table};
use super::time::length;

/// Listed foreign objects; the others are counted.
const NAMED: usize = 20;

/// The whole status as text.
pub fn status(view: &StatusView, detail: Detail, width: Option<usize>) -> String {
    let StatusView { head, services } = view;
    let mut text = head_lines(head);
    text.push('\n');
    if services.virtual_servers.is_empty() {
        text.push_str("no virtual servers\n");
    }
    text.push_str(&table(&services.virtual_servers, detail, width));
    text.push_str(&not_programmed(&services.not_programmed));
    text.push_str(&foreign(&head.foreign));
    let node = head
        .node_warnings
        .iter()
        .map(|warning| warning.text.clone());
    text.push_str(&section("Wrong with this node", CellStyle::Warn, node));
    text.push_str(&warnings(&head.warnings, &services.findings));
    text
}

fn head_lines(head: &HeadView) -> String {
    let line = |label: &str, words: &str| {
        let label = paint(format!("{label:<7}"), CellStyle::Quiet);
        format!("{label} {words}\n")
    };
    let agent = &head.agent;
    let up = length(agent.uptime_seconds);
    let node = paint(&head.node, CellStyle::Strong);
    let version = Plain::from(&agent.version);
    let process = format!("agent {version} (pid {}), up {up}", agent.pid);
    let timeouts = head.kernel.timeouts.as_ref().map(timeouts);
    let timeouts = timeouts.map(|words| line("timeout", &words));
    [
        line("node", &format!("{node}, {process}")),
        line("input", &input(&head.input)),
        line("kernel", &kernel(&head.kernel)),
        timeouts.unwrap_or_default(),
    ]
    .concat()
}

fn input(input: &InputView) -> String {
    let source = Plain::from(&input.source);
    let late = late(&input.collections);
    if !input.ready {
        let words = format!("{source}, not read completely yet; no change until then");
        return format!("{}{late}", paint(&words, CellStyle::Warn));
    }
    let services = many(input.services, "Service");
    let endpoints = many(input.endpoints, "endpoint");
    let changed = ago(", changed", input.last_change_seconds);
    format!("{source}, {services}, {endpoints}{changed}{late}")
}

/// A line for each resource with an interrupted watch, without its CRD, or with an error.
fn late(collections: &[CollectionView]) -> String {
    let mut text = String::new();
    for one in collections {
        let CollectionView { name, state, .. } = one;
        let (words, look) = match (&**state, one.heard_seconds) {
            _ if one.map_gap.is_some() => {
                let gap = one.map_gap.as_deref().unwrap_or_default();
                let words = format!("{name}: {gap}; reads the Nodes instead");
                (words, CellStyle::Warn)
            }
            ("stale", Some(seconds)) => {
                let words = format!(
                    "{name}: no data from the API server for {}; may be out of date",
                    length(seconds)
                );
                (words, CellStyle::Bad)
            }
            ("listing", _) => (format!("{name}: not read yet"), CellStyle::Warn),
            ("absent", _) => (format!("{name}: not installed"), CellStyle::Quiet),
            _ => continue,
        };
        // Writing to a String cannot fail.
        let _written = write!(text, "\n        {}", paint(&words, look));
    }
    text
}

/// One line, or two with an error.
fn kernel(kernel: &KernelView) -> String {
    let servers = many(kernel.virtual_servers, "virtual server");
    let reals = many(kernel.real_servers + kernel.draining, "real server");
    let drain = match kernel.draining {
        0 => String::new(),
        count => format!(" ({count} draining)"),
    };
    let compared = ago(", compared", kernel.last_pass_seconds);
    let held = format!("{servers}, {reals}{drain}{compared}");
    if kernel.in_sync {
        return format!("{}, {held}", paint("in sync", CellStyle::Good));
    }
    let standing = match (kernel.waiting, kernel.oldest_pending_seconds) {
        (count @ 1.., _) => paint(
            format!("not in sync: {count} failed, will be retried"),
            CellStyle::Bad,
        ),
        (0, Some(wait)) => paint(
            format!("not in sync: a change waits for {}", length(wait)),
            CellStyle::Warn,
        ),
        (0, None) => paint("not in sync: the first pass is not done", CellStyle::Warn),
    };
    format!("{standing}\n        {held}")
}

/// How long connections without packets are known, in the order of `ipvsadm --list --timeout`.
fn timeouts(timeouts: &TimeoutsView) -> String {
    let TimeoutsView { tcp, tcp_fin, udp } = timeouts;
    let seconds = |seconds: Option<u64>| {
        seconds.map_or_else(|| "?".to_owned(), |seconds| seconds.to_string())
    };
    let rows = [("tcp", tcp), ("tcpfin", tcp_fin), ("udp", udp)];
    let effective = rows.map(|(name, one)| format!("{name} {} s", seconds(one.effective_seconds)));
    let ipvs = rows.map(|(_, one)| seconds(one.ipvs_seconds));
    let conntrack = rows.map(|(_, one)| seconds(one.conntrack_seconds));
    format!(
        "{} (IPVS {}, conntrack {})",
        effective.join(", "),
        ipvs.join(" "),
        conntrack.join(" ")
    )
}

/// `, changed 5 s ago`, or nothing.
fn ago(words: &str, seconds: Option<u64>) -> String {
    seconds.map_or_else(String::new, |seconds| {
        format!("{words} {} ago", length(seconds))
    })
}

/// The section about parts that are not programmed.
pub fn not_programmed(parts: &[NotProgrammedView]) -> String {
    let line =
        |part: &NotProgrammedView| format!("{}: {}: {}", part.service, part.field, part.reason);
    section("Not programmed", CellStyle::Warn, parts.iter().map(line))
}

fn warnings(input: &[WarningView], findings: &[WarningView]) -> String {
    let lines = input
        .iter()
        .chain(findings)
        .map(|warning| warning.text.clone());
    section("Wrong with the input", CellStyle::Warn, lines)
}

fn foreign(foreign: &[ForeignView]) -> String {
    let line = |one: &ForeignView| format!("{} {}", one.kind, one.what);
    let hidden = foreign.len().saturating_sub(NAMED);
    let rest = (hidden > 0).then(|| format!("and {hidden} more; -o json lists all"));
    let lines = foreign.iter().take(NAMED).map(line).chain(rest);
    section("Foreign, left alone", CellStyle::Plain, lines)
}

/// A heading and its lines; nothing without lines.
fn section(title: &str, look: CellStyle, lines: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines {
        // Writing to a String cannot fail.
        if text.is_empty() {
            let _written = writeln!(text, "\n{}", paint(title, look));
        }
        let _written = writeln!(text, "  {}", Plain::from(line));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collection(name: &str, state: &str, heard_seconds: Option<u64>) -> CollectionView {
        CollectionView {
            name: name.to_owned(),
            state: state.to_owned(),
            objects: 1,
            synced_seconds: None,
            heard_seconds,
            error: None,
            map_gap: None,
        }
    }

    #[test]
    fn only_a_stale_collection_is_reported_with_its_age() {
        let late = late(&[
            collection("services", "following", Some(3)),
            collection("nodes", "stale", Some(125)),
            collection("endpointslices.discovery.k8s.io", "listing", None),
            collection("topologydrains.topology.ipvs-topo.io", "absent", None),
        ]);
        let wanted = "
        nodes: no data from the API server for 2 min 5 s; may be out of date
        endpointslices.discovery.k8s.io: not read yet
        topologydrains.topology.ipvs-topo.io: not installed";
        assert_eq!(anstream::adapter::strip_str(&late).to_string(), wanted);
    }

    /// The answer in the agent's own test.
    const ANSWER: &str = include_str!(
        "../../../agent/src/api/snapshots/agent__api__tests__status_shows_what_the_kernel_has_beside_what_is_wanted.snap"
    );

    #[test]
    fn status_shows_desired_and_observed_state() {
        let (_, json) = ANSWER.split_once("\n---\n").unwrap();
        let view: StatusView = serde_json::from_str(json).unwrap();
        let text = status(&view, Detail::Live, Some(80));
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string());
    }
}
