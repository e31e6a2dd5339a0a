//! The real `MetalLB` in layer 2 mode, installed with its own manifest.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::cluster::{NODES, address_of, answer_within, kubectl, kubectl_tries, on_node, variable};

/// The longest wait for a change that `MetalLB` makes or causes.
const PATIENCE: Duration = Duration::from_secs(120);

const NAMESPACE: &str = "--namespace=metallb-system";

/// The commands whose output an error shows.
const STATE: [&[&str]; 5] = [
    &["get", "pods", "--all-namespaces", "-o=wide"],
    &["get", "services", "--all-namespaces", "-o=wide"],
    &[
        "get",
        "events",
        "--field-selector=reason=nodeAssigned",
        "--all-namespaces",
    ],
    &[NAMESPACE, "get", "events"],
    &[
        NAMESPACE,
        "logs",
        "--selector=app=metallb",
        "--prefix",
        "--tail=40",
    ],
];

/// A running `MetalLB`; it is removed when dropped.
pub(crate) struct MetalLb {
    /// Its manifest and our changes to it.
    folder: tempfile::TempDir,
    /// The address of each node.
    nodes: [(&'static str, String); 3],
}

impl MetalLb {
    /// Installs it, waits until controller and speakers are ready, and gives it addresses.
    pub(crate) fn install() -> Self {
        let metallb = Self {
            folder: tempfile::tempdir().unwrap(),
            nodes: NODES.map(|node| (node, address_of(node))),
        };
        let folder = metallb.folder.path();
        let manifest = variable("LAB_METALLB");
        let name = Path::new(&manifest).file_name().unwrap();
        std::fs::copy(&manifest, folder.join(name)).unwrap();
        let changes = include_str!("metallb/kustomization.yaml");
        std::fs::write(folder.join("kustomization.yaml"), changes).unwrap();
        kubectl(&["apply", "-k", metallb.path()]);
        for what in ["deployment/controller", "daemonset/speaker"] {
            roll_out(what);
        }
        // The API server accepts objects of a new kind only after a moment.
        wait_for("no addresses can be configured", || {
            let addresses = include_str!("metallb/addresses.yaml");
            kubectl_tries(addresses, &["apply", "-f", "-"])
        });
        metallb
    }

    /// The nodes whose speakers announce `address`, by their metrics; more than one only during a change.
    ///
    /// `ServiceL2Status` names a deleted speaker's node forever: the next speaker also becomes an owner of that object,
    /// which is then not collected, and cannot change the node in it (0.15.2).
    pub(crate) fn announcing(&self, address: &str) -> BTreeSet<&'static str> {
        let labels = format!("metallb_speaker_announced{{ip=\"{address}\",");
        let announces = |metrics: &str| metrics.lines().any(|line| line.starts_with(&labels));
        let nodes = self.nodes.iter();
        let announcing = nodes.filter(|(node, address)| announces(&metrics(node, address)));
        announcing.map(|(node, _)| *node).collect()
    }

    fn path(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }
}

impl Drop for MetalLb {
    fn drop(&mut self) {
        let delete = ["delete", "-k", self.path(), "--wait=false"];
        drop(kubectl_tries("", &delete));
    }
}

/// The metrics of the speaker on `node`; empty without a speaker.
fn metrics(node: &str, address: &str) -> String {
    let ask = format!("wget -qO- http://{address}:7472/metrics 2>/dev/null || true");
    on_node(node, &ask)
}

/// Waits until every pod of `what` is ready.
fn roll_out(what: &str) {
    let patience = format!("--timeout={}s", 2 * PATIENCE.as_secs());
    let status = [NAMESPACE, "rollout", "status", what, &patience];
    if let Err(complaint) = kubectl_tries("", &status) {
        panic!("{complaint}{}", state());
    }
}

/// Repeats `answer` until it returns a value. The panic shows its last error, and the state of `MetalLB`.
pub(crate) fn wait_for<T>(what: &str, mut answer: impl FnMut() -> Result<T, String>) -> T {
    let mut last = String::new();
    let answered = answer_within(PATIENCE, || answer().map_err(|error| last = error).ok());
    answered.unwrap_or_else(|| panic!("{what}: {last}{}", state()))
}

/// Deletes the speaker on `node`. It does not come back while the node is a [`TaintedNode`].
pub(crate) fn delete_speaker(node: &str) {
    let here = format!("--field-selector=spec.nodeName={node}");
    let speakers = ["delete", "pods", "--selector=component=speaker", &here];
    kubectl(&[&[NAMESPACE], &speakers[..], &["--timeout=120s"]].concat());
}

/// What `MetalLB` and the cluster say.
fn state() -> String {
    let outputs = STATE.map(|command| {
        let output = kubectl_tries("", command).unwrap_or_else(|complaint| complaint);
        format!("\n$ kubectl {}\n{output}", command.join(" "))
    });
    outputs.concat()
}

/// A node to which no new pod goes, unless it tolerates every taint as the agents do; restored when dropped.
pub(crate) struct TaintedNode<'a>(&'a str);

const TAINT: &str = "announcer=away:NoSchedule";

impl<'a> TaintedNode<'a> {
    pub(crate) fn new(node: &'a str) -> Self {
        kubectl(&["taint", "node", node, TAINT]);
        Self(node)
    }
}

impl Drop for TaintedNode<'_> {
    fn drop(&mut self) {
        let restore = ["taint", "node", self.0, &format!("{TAINT}-")];
        drop(kubectl_tries("", &restore));
    }
}
