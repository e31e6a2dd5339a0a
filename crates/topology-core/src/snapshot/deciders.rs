//! The policies and drains that may decide a Service, and the changes that affect them.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Snapshot;
use super::marks::{Marks, NodeChange};
use super::policies::selects_service;
use crate::model::{CAPACITY_LABEL, Drain, Selector, Service, TopologyPolicy};
use crate::policy::{Level, LevelKey, Policy, ZONE};

/// The policy objects that recorded changes can affect. Most changes of Nodes affect none, and then no Service is
/// compared with the selectors of the policies.
pub(super) struct AffectedPolicies<'a> {
    of_cluster: Vec<&'a TopologyPolicy>,
    by_namespace: FxHashMap<&'a str, Vec<&'a TopologyPolicy>>,
}

impl<'a> AffectedPolicies<'a> {
    /// The policy objects that `marks` can affect on the node `me`.
    pub(super) fn of(snapshot: &'a Snapshot, marks: &Marks, me: &str) -> Self {
        let all = marks.nodes_together();
        let mine = marks.nodes.get(me);
        let is_affected = |object: &&TopologyPolicy| {
            let policy = &object.policy;
            mine.is_some_and(|mine| mine.existence || selects_by(object, mine))
                || counts_on(policy, &all)
                || uses_label_of(policy, &all)
                || uses_level(policy, &marks.levels, marks.any_level)
                || marks.drains.iter().any(|drain| leaves(policy, &drain.key))
        };
        let mut found = Self {
            of_cluster: Vec::new(),
            by_namespace: FxHashMap::default(),
        };
        for object in snapshot.policies().filter(is_affected) {
            match &object.namespace {
                None => found.of_cluster.push(object),
                Some(namespace) => {
                    let of_namespace = found.by_namespace.entry(&**namespace).or_default();
                    of_namespace.push(object);
                }
            }
        }
        found
    }

    /// Those that select `service`.
    fn selecting(
        &self,
        snapshot: &Snapshot,
        service: &Service,
    ) -> impl Iterator<Item = &'a TopologyPolicy> {
        let namespace = &*service.name.namespace;
        let labels = snapshot.namespace(namespace);
        let of_namespace = self.by_namespace.get(namespace).into_iter().flatten();
        let objects = self.of_cluster.iter().chain(of_namespace).copied();
        objects.filter(move |object| selects_service(object, labels, service))
    }
}

/// The policies that may decide a Service and that changes can affect, and all drains.
pub(super) struct Deciders<'a> {
    policies: SmallVec<[&'a Policy; 2]>,
    objects: SmallVec<[&'a TopologyPolicy; 2]>,
    snapshot: &'a Snapshot,
    /// Changed drains, including removed ones.
    changed: &'a [Drain],
}

impl<'a> Deciders<'a> {
    pub(super) fn of(
        snapshot: &'a Snapshot,
        affected: &AffectedPolicies<'a>,
        changed: &'a [Drain],
        service: &'a Service,
    ) -> Self {
        let name = service.named_policy.as_ref();
        let named = name.and_then(|name| snapshot.policy(&service.name.namespace, name));
        let selecting = affected.selecting(snapshot, service);
        let objects: SmallVec<[_; 2]> = selecting.chain(named).collect();
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
        self.policies.iter().any(|policy| leaves(policy, key))
    }

    /// Whether a policy uses one of the labels that were added or removed as a whole, or any label if `all`.
    pub(super) fn use_level(&self, labels: &BTreeSet<Arc<str>>, all: bool) -> bool {
        let mut policies = self.policies.iter();
        policies.any(|policy| uses_level(policy, labels, all))
    }

    /// Whether one of the changed labels determines the level of an endpoint or of this node.
    pub(super) fn use_label_of(&self, change: &NodeChange) -> bool {
        let mut policies = self.policies.iter();
        policies.any(|policy| uses_label_of(policy, change))
            || self.drains().any(|drain| is_changed(&drain.key, change))
    }

    /// Whether a policy selects client Nodes by one of the changed labels.
    pub(super) fn select_by(&self, change: &NodeChange) -> bool {
        let mut objects = self.objects.iter();
        objects.any(|object| selects_by(object, change))
    }

    /// Whether a cap estimates the demand from what changed, on any Node.
    pub(super) fn count_on(&self, change: &NodeChange) -> bool {
        let mut policies = self.policies.iter();
        policies.any(|policy| counts_on(policy, change))
    }
}

fn leaves(policy: &Policy, key: &LevelKey) -> bool {
    let left = |level: &Level| level.key == *key || level.key == LevelKey::Node;
    policy.levels.iter().any(left)
}

fn uses_level(policy: &Policy, labels: &BTreeSet<Arc<str>>, all: bool) -> bool {
    if labels.is_empty() && !all {
        return false;
    }
    let mut keys = policy.label_keys();
    keys.any(|key| all || labels.contains(key))
}

fn uses_label_of(policy: &Policy, change: &NodeChange) -> bool {
    let changed = |label: &str| change.labels.contains(label);
    let mut levels = policy.levels.iter();
    let mut avoided = policy.avoid.iter();
    levels.any(|level| is_changed(&level.key, change))
        || avoided.any(|avoid| is_changed(&avoid.key, change))
        || (policy.uses_capacity() && changed(CAPACITY_LABEL))
        || (policy.max_overload.is_some() && changed(ZONE))
}

fn selects_by(object: &TopologyPolicy, change: &NodeChange) -> bool {
    let mut keys = Selector::keys(&object.node_selector);
    keys.any(|key| change.labels.contains(key))
}

fn counts_on(policy: &Policy, change: &NodeChange) -> bool {
    let mut levels = policy.levels.iter();
    policy.max_overload.is_some()
        && (change.demand
            || change.labels.contains(ZONE)
            || levels.any(|level| is_changed(&level.key, change)))
}

fn is_changed(key: &LevelKey, change: &NodeChange) -> bool {
    match key {
        LevelKey::Label(label) => change.labels.contains(label),
        LevelKey::Node | LevelKey::Any => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Enforcement, Node};
    use crate::policy::{Mode, PolicySource};

    fn object(name: &str, namespace: Option<&str>, level: LevelKey) -> TopologyPolicy {
        let levels = vec![Level::new(level, 100), Level::new(LevelKey::Any, 0)];
        TopologyPolicy {
            namespace: namespace.map(Arc::from),
            name: name.into(),
            created: None,
            generation: 1,
            priority: 0,
            enforcement: Enforcement::Default,
            namespace_selector: Selector::default(),
            service_selector: Selector::default(),
            node_selector: Selector::default(),
            port_names: Vec::new(),
            policy: Policy::new(PolicySource::NamespacePolicy, Mode::Prefer, levels),
            owner_limits: None,
        }
    }

    fn node(name: &str, labels: &[(&str, &str)]) -> Node {
        let labels = labels.iter();
        Node {
            labels: labels
                .map(|(key, value)| (Arc::from(*key), Arc::from(*value)))
                .collect(),
            ..Node::new(name)
        }
    }

    /// The names of the policies that the change can affect on the node `me`.
    fn affected(change: impl FnOnce(&mut Snapshot)) -> Vec<String> {
        let mut snapshot = Snapshot::default();
        snapshot.set_node(node("me", &[("rack", "1")]));
        snapshot.set_node(node("other", &[("rack", "1")]));
        let mut capped = object("capped", Some("t"), LevelKey::Node);
        capped.policy.max_overload = Some(20);
        let mut here = object("here", Some("u"), LevelKey::Node);
        here.node_selector.labels = vec![("pool".into(), "edge".into())];
        let rack = object("rack", None, LevelKey::Label("rack".into()));
        for object in [capped, here, rack] {
            snapshot.set_policy(object);
        }
        snapshot.take_dirty("me");
        change(&mut snapshot);
        let found = AffectedPolicies::of(&snapshot, &snapshot.marks, "me");
        let objects = found.by_namespace.values().flatten();
        let objects = objects.chain(&found.of_cluster);
        let mut names: Vec<_> = objects.map(|object| object.name.to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn d13_services_are_compared_with_the_policies_that_a_change_can_affect() {
        let addresses = |snapshot: &mut Snapshot| {
            let mut other = node("other", &[("rack", "1")]);
            other.addresses = vec!["192.0.2.1".parse().unwrap()];
            snapshot.set_node(other);
        };
        assert_eq!(affected(addresses), [""; 0]);
        let unready = |snapshot: &mut Snapshot| {
            let mut other = node("other", &[("rack", "1")]);
            other.ready = !other.ready;
            snapshot.set_node(other);
        };
        assert_eq!(affected(unready), ["capped"]);
        let relabelled = |name: &'static str, labels: &'static [(&str, &str)]| {
            affected(move |snapshot| snapshot.set_node(node(name, labels)))
        };
        assert_eq!(relabelled("other", &[("rack", "2")]), ["rack"]);
        assert_eq!(
            relabelled("other", &[("rack", "1"), ("pool", "edge")]),
            [""; 0]
        );
        assert_eq!(
            relabelled("me", &[("rack", "1"), ("pool", "edge")]),
            ["here"]
        );
        let all = ["capped", "here", "rack"];
        assert_eq!(affected(|snapshot| snapshot.remove_node("me")), all);
    }
}
