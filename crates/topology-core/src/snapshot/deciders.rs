//! The policies and drains that may decide a Service, and the changes that affect them.

use std::collections::BTreeSet;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Snapshot;
use super::marks::NodeChange;
use crate::model::{CAPACITY_LABEL, Drain, Selector, Service, TopologyPolicy};
use crate::policy::{Level, LevelKey, Policy, ZONE};

/// The policies that may decide a Service, and all drains.
pub(super) struct Deciders<'a> {
    policies: SmallVec<[&'a Policy; 2]>,
    objects: SmallVec<[&'a TopologyPolicy; 2]>,
    snapshot: &'a Snapshot,
    /// Changed drains, including removed ones.
    changed: &'a [Drain],
}

impl<'a> Deciders<'a> {
    pub(super) fn of(snapshot: &'a Snapshot, changed: &'a [Drain], service: &'a Service) -> Self {
        let name = service.named_policy.as_ref();
        let named = name.and_then(|name| snapshot.policy(&service.name.namespace, name));
        let objects: SmallVec<[_; 2]> = snapshot.policies_for(service).chain(named).collect();
        let own = service.policy.as_deref();
        Self {
            policies: own
                .into_iter()
                .chain(objects.iter().map(|object| &object.policy))
                .collect(),
            objects,
            snapshot,
            changed,
        }
    }

    pub(super) fn drains(&self) -> impl Iterator<Item = &Drain> {
        self.snapshot.drains().chain(self.changed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.policies.is_empty() && self.drains().next().is_none()
    }

    /// Whether a drain of clients by `key` makes this node leave a level; the Node's own level if no other matches.
    pub(super) fn leave(&self, key: &LevelKey) -> bool {
        let left = |level: &Level| level.key == *key || level.key == LevelKey::Node;
        self.policies
            .iter()
            .any(|policy| policy.levels.iter().any(left))
    }

    /// Whether a policy uses one of the labels that were added or removed as a whole, or any label if `all`.
    pub(super) fn use_level(&self, labels: &BTreeSet<Arc<str>>, all: bool) -> bool {
        if labels.is_empty() && !all {
            return false;
        }
        let mut keys = self.policies.iter().flat_map(|policy| policy.label_keys());
        keys.any(|key| all || labels.contains(key))
    }

    /// Whether one of the changed labels determines the level of an endpoint or of this node.
    pub(super) fn use_label_of(&self, change: &NodeChange) -> bool {
        let changed = |key: &LevelKey| match key {
            LevelKey::Label(label) => change.labels.contains(label),
            LevelKey::Node | LevelKey::Any => false,
        };
        let uses = |policy: &&Policy| {
            policy.levels.iter().any(|level| changed(&level.key))
                || policy.avoid.iter().any(|avoid| changed(&avoid.key))
                || (policy.uses_capacity() && change.labels.contains(CAPACITY_LABEL))
                || (policy.max_overload.is_some() && change.labels.contains(ZONE))
        };
        self.policies.iter().any(uses) || self.drains().any(|drain| changed(&drain.key))
    }

    /// Whether a policy selects client Nodes by one of the changed labels.
    pub(super) fn select_by(&self, change: &NodeChange) -> bool {
        let selectors = self.objects.iter().map(|object| &object.node_selector);
        let mut keys = selectors.flat_map(Selector::keys);
        keys.any(|key| change.labels.contains(key))
    }

    /// Whether a cap estimates the demand from what changed, on any Node.
    pub(super) fn count_on(&self, change: &NodeChange) -> bool {
        let mut capped = self
            .policies
            .iter()
            .filter(|policy| policy.max_overload.is_some());
        let labels = |policy: &Policy| {
            let mut keys = policy.levels.iter().map(|level| &level.key);
            keys.any(|key| matches!(key, LevelKey::Label(label) if change.labels.contains(label)))
        };
        let zone = change.labels.contains(ZONE);
        capped.any(|policy| change.demand || zone || labels(policy))
    }
}
