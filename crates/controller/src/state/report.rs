//! The reports of agents, indexed by policy and drain.

use std::collections::BTreeMap;

use crd::MAX_FALLBACKS;
use crd::topology_agent::{AgentPhase, AgentStatus, DrainInUse, Fallback, PolicyInUse};
use jiff::Timestamp;
use serde_json::Value;
use topology_core::model::PolicyName;

use crate::event_recorder::{self, Key, ServiceFallback};

/// The reports of all nodes, indexed so that a policy or drain need not read all of them.
#[derive(Debug, Default)]
pub(super) struct Reports {
    by_node: BTreeMap<String, AgentStatus>,
    policies: BTreeMap<PolicyName, BTreeMap<String, PolicyInUse>>,
    drains: BTreeMap<String, BTreeMap<String, DrainInUse>>,
    fallbacks: BTreeMap<PolicyName, BTreeMap<String, Vec<Fallback>>>,
}

/// Returns the status of a `TopologyAgent`, if it can be read, and which part cannot be read.
pub(super) fn read(object: &Value) -> (Option<AgentStatus>, Option<String>) {
    let Some(written) = object.get("status") else {
        return (None, None);
    };
    let status: AgentStatus = match serde_json::from_value(written.clone()) {
        Ok(status) => status,
        Err(error) => return (None, Some(format!("the report cannot be read: {error}"))),
    };
    let unread = unread(written, &status).map(|unread| {
        let version = &status.version;
        format!("{unread}; the agent has the version {version}: update the controller first")
    });
    (Some(status), unread)
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
        if let Some(old) = self.by_node.remove(node) {
            self.index(node, &old, false);
        }
        if let Some(status) = status {
            self.index(node, &status, true);
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

    /// The fallbacks of all Nodes, and whether the reports hold all of them.
    pub(super) fn fallbacks(&self) -> (BTreeMap<Key, ServiceFallback>, bool) {
        let (mut all, mut complete) = (BTreeMap::<Key, ServiceFallback>::new(), true);
        for status in self.by_node.values() {
            let listed = status.fallbacks.len();
            let has_all = status.counts.fallbacks <= u64::try_from(listed).unwrap_or(u64::MAX);
            complete &= has_all && listed < MAX_FALLBACKS;
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
        (all, complete)
    }
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
