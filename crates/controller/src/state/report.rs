//! The reports of agents, indexed by policy and drain.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crd::MAX_FALLBACKS;
use crd::topology_agent::{AgentPhase, AgentStatus, DrainInUse, Fallback, PolicyInUse};
use jiff::Timestamp;
use serde_json::Value;
use topology_core::model::PolicyName;

use crate::event_recorder::{self, Key, ServiceFallback};

/// Limit of remembered namespaces of a node, besides those in its report.
const MAX_REMEMBERED: usize = 4 * MAX_FALLBACKS;

/// The reports of all nodes, indexed so that a policy or drain need not read all of them.
#[derive(Debug, Default)]
pub(super) struct Reports {
    by_node: BTreeMap<String, AgentStatus>,
    policies: BTreeMap<PolicyName, BTreeMap<String, PolicyInUse>>,
    drains: BTreeMap<String, BTreeMap<String, DrainInUse>>,
    fallbacks: BTreeMap<PolicyName, BTreeMap<String, Vec<Fallback>>>,
    /// The namespaces of which each node may have a fallback that its report no longer lists.
    incomplete: BTreeMap<String, BTreeSet<Arc<str>>>,
}

/// Returns the status of a `TopologyAgent`, if it has one, and which part of it cannot be read.
pub(super) fn read(object: &Value) -> Result<(Option<AgentStatus>, Option<String>), String> {
    let Some(written) = object.get("status") else {
        return Ok((None, None));
    };
    let status: AgentStatus = serde_json::from_value(written.clone())
        .map_err(|error| format!("the report cannot be read: {error}"))?;
    let unread = unread(written, &status).map(|unread| {
        let version = &status.version;
        format!("{unread}; the agent has the version {version}: update the controller first")
    });
    Ok((Some(status), unread))
}

fn unread(written: &Value, status: &AgentStatus) -> Option<String> {
    let lists = [
        ("policies", status.policies.len()),
        ("drains", status.drains.len()),
        ("fallbacks", status.fallbacks.len()),
    ];
    let mut parts: Vec<String> = lists
        .into_iter()
        .filter_map(|(name, read)| {
            let all = written.get(name)?.as_array()?.len();
            (all > read).then(|| format!("{} of {all} {name} cannot be read", all - read))
        })
        .collect();
    if status.phase == AgentPhase::Unknown {
        parts.push("the phase is unknown".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

impl Reports {
    /// Records the report of a node, or removes it. Returns whether it differs from the last.
    pub(super) fn set(&mut self, node: &str, status: Option<AgentStatus>) -> bool {
        if self.by_node.get(node) == status.as_ref() {
            return false;
        }
        let mut reported = self.incomplete.remove(node).unwrap_or_default();
        if let Some(old) = self.by_node.remove(node) {
            self.index(node, &old, false);
            reported.extend(namespaces(&old));
        }
        if let Some(status) = status {
            self.index(node, &status, true);
            let incomplete = incomplete(&status, reported);
            if !incomplete.is_empty() {
                self.incomplete.insert(node.to_owned(), incomplete);
            }
            self.by_node.insert(node.to_owned(), status);
        }
        true
    }

    fn index(&mut self, node: &str, status: &AgentStatus, is_added: bool) {
        for policy in &status.policies {
            let report = is_added.then(|| policy.clone());
            put(&mut self.policies, &policy.policy, node, report);
        }
        for drain in &status.drains {
            let report = is_added.then(|| drain.clone());
            put(&mut self.drains, &drain.name, node, report);
        }
        let mut fallbacks: BTreeMap<&PolicyName, Vec<Fallback>> = BTreeMap::new();
        for fallback in &status.fallbacks {
            if let Some(policy) = &fallback.policy {
                fallbacks.entry(policy).or_default().push(fallback.clone());
            }
        }
        for (policy, reported) in fallbacks {
            let report = is_added.then_some(reported);
            put(&mut self.fallbacks, policy, node, report);
        }
    }

    pub(super) fn has(&self, node: &str) -> bool {
        self.by_node.contains_key(node)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &String> {
        self.by_node.keys()
    }

    /// The nodes on which a policy decides, and their reports about it.
    pub(super) fn of_policy(
        &self,
        policy: &PolicyName,
    ) -> impl Iterator<Item = (&String, &PolicyInUse)> {
        self.policies.get(policy).into_iter().flatten()
    }

    pub(super) fn of_drain(&self, name: &str) -> impl Iterator<Item = &DrainInUse> {
        let nodes = self.drains.get(name).into_iter();
        nodes.flat_map(BTreeMap::values)
    }

    /// The fallbacks of Services under a policy, on any node.
    pub(super) fn fallbacks_of(&self, policy: &PolicyName) -> impl Iterator<Item = &Fallback> {
        let nodes = self.fallbacks.get(policy).into_iter();
        nodes.flat_map(BTreeMap::values).flatten()
    }

    /// The fallbacks of all Nodes, and the namespaces of which a node may have more.
    pub(super) fn fallbacks(&self) -> (BTreeMap<Key, ServiceFallback>, BTreeSet<Arc<str>>) {
        let mut all = BTreeMap::<Key, ServiceFallback>::new();
        for status in self.by_node.values() {
            for fallback in &status.fallbacks {
                let Some(key) = event_recorder::key(&fallback.service, fallback.reason) else {
                    continue;
                };
                let since = fallback.since.parse().unwrap_or(Timestamp::UNIX_EPOCH);
                let since = since.as_millisecond();
                let known = all
                    .entry(key)
                    .or_insert_with(|| service_fallback(fallback, since));
                known.since = known.since.min(since);
                known.nodes += 1;
            }
        }
        let incomplete = self.incomplete.values().flatten().cloned().collect();
        (all, incomplete)
    }
}

fn namespaces(status: &AgentStatus) -> impl Iterator<Item = Arc<str>> {
    let services = status.fallbacks.iter().map(|fallback| &fallback.service);
    services.map(|service| Arc::clone(&service.namespace))
}

/// The namespaces of which the node may have a fallback that the report does not list.
///
/// `reported`: the namespaces in earlier reports of the node. Other namespaces do not count, so a node cannot withhold
/// the Events of a namespace of which it has never reported a fallback.
///
/// Namespaces take turns in the list. If a namespace has two entries fewer than another, the node has no more of it.
fn incomplete(status: &AgentStatus, reported: BTreeSet<Arc<str>>) -> BTreeSet<Arc<str>> {
    let listed = status.fallbacks.len();
    let has_all = status.counts.fallbacks <= u64::try_from(listed).unwrap_or(u64::MAX);
    if has_all && listed < MAX_FALLBACKS {
        return BTreeSet::new();
    }
    let reported = reported.into_iter().take(MAX_REMEMBERED);
    let mut entries: BTreeMap<Arc<str>, usize> = reported.map(|name| (name, 0)).collect();
    for namespace in namespaces(status) {
        *entries.entry(namespace).or_default() += 1;
    }
    let most = entries.values().copied().max().unwrap_or_default();
    let incomplete = entries.into_iter().filter(|(_, own)| own + 1 >= most);
    incomplete.map(|(namespace, _)| namespace).collect()
}

fn service_fallback(fallback: &Fallback, since: i64) -> ServiceFallback {
    ServiceFallback {
        policy: fallback.policy.clone(),
        from: fallback.from.clone().unwrap_or_default(),
        to: fallback.to.clone(),
        since,
        nodes: 0,
    }
}

/// Sets the report of one node under a key, or removes it; a key without reports is removed, too.
fn put<K: Ord + Clone, V>(
    index: &mut BTreeMap<K, BTreeMap<String, V>>,
    key: &K,
    node: &str,
    report: Option<V>,
) {
    let nodes = index.entry(key.clone()).or_default();
    match report {
        Some(report) => drop(nodes.insert(node.to_owned(), report)),
        None => drop(nodes.remove(node)),
    }
    if nodes.is_empty() {
        index.remove(key);
    }
}
