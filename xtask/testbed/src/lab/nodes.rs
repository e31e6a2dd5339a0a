//! Reads the Nodes of the lab from the API server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::bail;

use super::folder::Folder;
use super::node;
use crate::vm::command::output;
use crate::vm::progress::ProgressLine;

/// Limit for nodes to become ready.
const TIMEOUT: Duration = Duration::from_secs(600);

/// One line for each Node: name, boot ID, the status of `Ready`, address, pod CIDR.
const COLUMNS: &str = "-o=jsonpath={range .items[*]}{.metadata.name} {.status.nodeInfo.bootID} \
     {.status.conditions[?(@.type==\"Ready\")].status} \
     {.status.addresses[?(@.type==\"InternalIP\")].address} {.spec.podCIDR}{\"\\n\"}{end}";

/// The status of one Node.
pub(super) struct LabNode {
    /// The boot ID.
    boot: String,
    is_ready: bool,
    pub(super) address: String,
    /// Its pod CIDR.
    pub(super) range: String,
}

/// Lists the registered Nodes by name.
pub(super) fn list(folder: &Folder) -> anyhow::Result<BTreeMap<String, LabNode>> {
    let mut kubectl = folder.controlplane().kubectl()?;
    let listed = output(kubectl.args(["get", "nodes", COLUMNS]))?;
    Ok(listed.lines().filter_map(parse).collect())
}

/// Parses a line. A node that has just been registered lacks fields.
fn parse(line: &str) -> Option<(String, LabNode)> {
    let mut words = line.split_whitespace().map(str::to_owned);
    let name = words.next()?;
    let node = LabNode {
        boot: words.next()?,
        is_ready: words.next()? == "True",
        address: words.next()?,
        range: words.next()?,
    };
    Some((name, node))
}

/// Waits until each of `names` is ready with another boot ID than in `before`.
pub(super) fn wait_until_ready(
    folder: &Folder,
    names: &[&str],
    before: &BTreeMap<String, LabNode>,
) -> anyhow::Result<BTreeMap<String, LabNode>> {
    let step = ProgressLine::begin(format!("booting {}, until each is Ready", names.join(", ")));
    let deadline = Instant::now() + TIMEOUT;
    let mut shown = 0;
    loop {
        for name in names {
            if node::restart_if_clock_is_unsure(folder, name)? {
                step.report(&format!("{name} again, because its clock is unsure"));
            }
        }
        let nodes = list(folder)?;
        let is_new =
            |name: &str, node: &LabNode| before.get(name).is_none_or(|old| old.boot != node.boot);
        let is_up = |name: &&&str| {
            nodes
                .get(**name)
                .is_some_and(|node| node.is_ready && is_new(name, node))
        };
        let ready = names.iter().filter(is_up).count();
        if ready == names.len() {
            step.done("");
            return Ok(nodes);
        }
        if ready > shown {
            step.report(&format!("{ready} of {}", names.len()));
            shown = ready;
        }
        if let Some(gone) = folder.gone()? {
            bail!("node {gone} exited:\n{}", node::last_words(folder, &gone));
        }
        if Instant::now() > deadline {
            let words = names
                .iter()
                .map(|name| format!("{name}:\n{}", node::last_words(folder, name)));
            bail!("not ready:\n{}", words.collect::<Vec<_>>().join("\n"));
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Turns the node `name` on again, and waits until it is ready.
pub(super) fn start(folder: &Folder, name: &str) -> anyhow::Result<()> {
    let before = list(folder)?;
    node::turn_on(folder, name)?;
    wait_until_ready(folder, &[name], &before).map(drop)
}

/// Returns the address and the pod CIDR of each node.
pub(super) fn pod_ranges(nodes: BTreeMap<String, LabNode>) -> Vec<(String, String)> {
    let nodes = nodes.into_values();
    nodes.map(|node| (node.address, node.range)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_known_once_all_of_it_is_there() {
        let (name, node) = parse("n1 a-boot True 192.0.2.11 10.244.0.0/24").unwrap();
        assert_eq!((name.as_str(), node.is_ready), ("n1", true));
        assert!(parse("n2 a-boot  192.0.2.12 ").is_none());
    }
}
