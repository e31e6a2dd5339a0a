//! Continuous traffic from every node. Asserts that no request failed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::cluster::{NODES, Namespace, kubectl_tries, wait_for};

/// The longest wait of a client for a response. A kernel resends a lost packet after 1 s and 3 s.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Refused requests of a client.
fn refused(count: &Value) -> u64 {
    let errors = count["errors"].as_object().into_iter().flatten();
    let refused = errors.filter(|(error, _)| error.starts_with("Connection refused"));
    refused.filter_map(|(_, times)| times.as_u64()).sum()
}

pub(crate) struct Traffic<'a> {
    namespace: &'a Namespace,
    /// The count of each client at the last check.
    seen: BTreeMap<String, Value>,
}

impl<'a> Traffic<'a> {
    /// Starts the clients if they do not run yet, and waits until every client gets responses.
    pub(crate) fn start(namespace: &'a Namespace, target: &str) -> Self {
        let objects = include_str!("traffic.yaml")
            .replace("VERSION", env!("CARGO_PKG_VERSION"))
            .replace("PATIENCE", &PATIENCE.as_millis().to_string())
            .replace("TARGET", target);
        namespace.apply(&objects);
        let ready = ["rollout", "status", "daemonset/traffic", "--timeout=180s"];
        namespace.kubectl(&ready);
        let mut traffic = Self {
            namespace,
            seen: BTreeMap::new(),
        };
        traffic.look_away(&NODES);
        traffic.flows_without_failure("the start", &NODES);
        traffic
    }

    /// Asserts that the clients on `nodes` continue without a failure since the last check.
    pub(crate) fn flows_without_failure(&mut self, scene: &str, nodes: &[&str]) {
        for node in nodes {
            let before = self.seen.get(*node).cloned().unwrap_or_default();
            let number = |count: &Value, field: &str| count[field].as_u64().unwrap_or(0);
            let now = wait_for("no client goes on", || {
                let now = self.count(node)?;
                (number(&now, "requests") > number(&before, "requests")).then_some(now)
            });
            let failed = [&before, &now].map(|count| number(count, "failed"));
            assert_eq!(
                failed[0], failed[1],
                "{scene}: from {node}: {before} and then {now}"
            );
            self.seen.insert((*node).to_owned(), now);
        }
    }

    /// Asserts that the clients on all nodes continue, and that each had at most `most` refused and
    /// no other failed requests since the last check.
    pub(crate) fn flows_but_for_refusals(&mut self, scene: &str, most: u64) {
        for node in NODES {
            let before = self.seen.get(node).cloned().unwrap_or_default();
            let now = wait_for("no client counts", || self.count(node));
            let failed = [&before, &now].map(|count| count["failed"].as_u64().unwrap_or(0));
            let refused = [&before, &now].map(refused);
            let (failed, refused) = (failed[1] - failed[0], refused[1] - refused[0]);
            assert!(
                failed == refused && refused <= most,
                "{scene}: from {node}: {before} and then {now}"
            );
        }
        self.look_away(&NODES);
        self.flows_without_failure(scene, &NODES);
    }

    /// Ignores the failures until now. New clients begin at 0.
    pub(crate) fn look_away(&mut self, nodes: &[&str]) {
        for node in nodes {
            let now = self.count(node).unwrap_or_default();
            self.seen.insert((*node).to_owned(), now);
        }
    }

    /// The last count of the client on `node`; `None` without a client.
    fn count(&self, node: &str) -> Option<Value> {
        let here = format!("--field-selector=spec.nodeName={node},status.phase=Running");
        let pods = ["get", "pods", "--selector=app=traffic", &here, "-o=name"];
        let pod = self.namespace.kubectl(&pods);
        // A node that was off lists its pods before they run.
        let logs = ["--namespace", &self.namespace.0, "logs", "--tail=1"];
        let said = kubectl_tries("", &[&logs[..], &[pod.lines().next()?]].concat()).ok()?;
        serde_json::from_str(said.trim()).ok()
    }
}
