//! Validates policies and drains with the code of the agents, so that both always agree.
//!
//! Reading an object takes longer than the rest of a plan, so the result is cached until the object
//! changes.

use std::collections::BTreeSet;

use cluster::source::{Loaded, Options, read_text};
use serde_json::Value;
use topology_core::model::{Drain, Selector};
use topology_core::policy::Policy;

/// Reads an object with the code of the agents.
pub(super) fn read(object: &Value, now: Option<i64>) -> Option<Loaded> {
    let options = Options {
        now,
        ..Options::default()
    };
    read_text("object", object.to_string().as_bytes(), &options).ok()
}

/// The part of a policy that its status and the map depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValidatedPolicy {
    pub(super) fault: Option<String>,
    /// Selects the Nodes that it applies to; all if the policy is not used.
    pub(super) nodes: Selector,
    /// Keys of the Node labels that it uses.
    pub(super) labels: BTreeSet<String>,
    /// The labels of the levels of a hard policy; `None` if a level needs no label.
    pub(super) boundary: Option<BTreeSet<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValidatedDrain {
    pub(super) drain: Result<Drain, String>,
    /// Milliseconds since 1970. A drain that ends too late may become valid.
    at: i64,
}

impl ValidatedPolicy {
    pub(super) fn of(object: &Value) -> Self {
        let read = read(object, None);
        let policy = read
            .as_ref()
            .and_then(|read| read.snapshot.policies().next());
        let Some(policy) = policy else {
            return Self {
                fault: Some(fault(read.as_ref())),
                nodes: Selector::default(),
                labels: BTreeSet::new(),
                boundary: None,
            };
        };
        Self {
            fault: None,
            nodes: policy.node_selector.clone(),
            labels: policy
                .policy
                .label_keys()
                .map(ToString::to_string)
                .collect(),
            boundary: boundary(&policy.policy),
        }
    }
}

fn boundary(policy: &Policy) -> Option<BTreeSet<String>> {
    let levels = policy.levels.iter().filter(|_| policy.is_bounded());
    let labels: Option<BTreeSet<String>> = levels
        .map(|level| level.key.label().map(ToString::to_string))
        .collect();
    labels.filter(|labels| !labels.is_empty())
}

impl ValidatedDrain {
    pub(super) fn of(object: &Value, now: i64) -> Self {
        let read = read(object, Some(now));
        let drain = read.as_ref().and_then(|read| read.snapshot.drains().next());
        let drain = drain.cloned();
        Self {
            drain: drain.ok_or_else(|| fault(read.as_ref())),
            at: now,
        }
    }

    /// A refused drain may be valid later, and the clock may have been set back.
    pub(super) fn is_outdated(&self, now: i64) -> bool {
        now < self.at || self.drain.is_err() && now > self.at
    }

    /// The key of the Node label that it selects.
    pub(super) fn label(&self) -> Option<String> {
        let label = self.drain.as_ref().ok()?.key.label()?;
        Some(label.to_string())
    }
}

fn fault(loaded: Option<&Loaded>) -> String {
    let Some(loaded) = loaded else {
        return "the object cannot be read".to_owned();
    };
    let first = loaded.warnings.first();
    first.map_or_else(
        || "the object is not used".to_owned(),
        |warning| format!("{}; {}", warning.message, warning.remedy),
    )
}
