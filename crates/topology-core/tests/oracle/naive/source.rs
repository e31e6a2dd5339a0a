//! What decides: the first source that applies.

use topology_core::model::{Enforcement, Labels, TopologyPolicy};
use topology_core::policy::{Avoid, LevelKey, Policy};
use topology_core::scheduler::Scheduler;

use super::Port;

/// What decides.
pub(crate) enum Rule {
    /// Traffic policy Local.
    Local,
    /// One of our policies.
    Policy(Policy),
    /// Hints or nothing, among the endpoints that are not avoided.
    KubeProxy(Vec<Avoid>),
}

/// The policy of annotations without levels, which is added.
#[derive(Default)]
struct Added {
    avoid: Vec<Avoid>,
    scheduler: Option<Scheduler>,
}

impl Rule {
    pub(crate) fn policy(&self) -> Option<&Policy> {
        match self {
            Self::Policy(policy) => Some(policy),
            Self::Local | Self::KubeProxy(_) => None,
        }
    }
}

impl Rule {
    pub(crate) fn avoided(&self) -> &[Avoid] {
        match self {
            Self::Policy(policy) => &policy.avoid,
            Self::KubeProxy(avoid) => avoid,
            Self::Local => &[],
        }
    }
}

impl Port<'_> {
    /// The scheduler of the deciding policy, otherwise that of annotations, otherwise the node's.
    pub(crate) fn scheduler(&self) -> Scheduler {
        let rule = self.rule();
        let of_rule = rule.policy().and_then(|policy| policy.scheduler);
        of_rule.or(self.added().scheduler).unwrap_or_default()
    }

    /// The policy of annotations without levels; a policy that overrides gets nothing added.
    fn added(&self) -> Added {
        let adds = |policy: &&std::sync::Arc<Policy>| policy.adds;
        match self.service.policy.as_ref().filter(adds) {
            Some(policy) if self.overriding().is_none() || self.local => Added {
                avoid: policy.avoid.clone(),
                scheduler: policy.scheduler,
            },
            _ => Added::default(),
        }
    }

    /// The policy that overrides annotations.
    fn overriding(&self) -> Option<&TopologyPolicy> {
        self.best(|policy| {
            policy.namespace.is_none()
                && policy.enforcement == Enforcement::Override
                && !self.refuses_everywhere(policy)
        })
    }

    pub(crate) fn rule(&self) -> Rule {
        if self.local {
            return Rule::Local;
        }
        if let Some(policy) = self.overriding() {
            return Rule::Policy(policy.policy.clone());
        }
        if let Some(policy) = self.asked_by_owner() {
            return Rule::Policy(policy);
        }
        let of_namespace = self.best(|policy| policy.namespace.is_some());
        let object = of_namespace.or_else(|| {
            self.best(|policy| policy.namespace.is_none() && !self.refuses_everywhere(policy))
        });
        let added = self.added().avoid;
        let Some(object) = object else {
            return Rule::KubeProxy(added);
        };
        let mut policy = object.policy.clone();
        for avoid in added {
            if !policy.avoid.iter().any(|known| known.key == avoid.key) {
                policy.avoid.push(avoid);
            }
        }
        Rule::Policy(policy)
    }

    /// The policy of annotations or `topologyKeys`, within the owner limits.
    fn asked_by_owner(&self) -> Option<Policy> {
        if let Some(name) = &self.service.named_policy {
            let named = self.view.cluster.policies.iter().find(|policy| {
                policy.namespace.as_ref() == Some(&self.service.name.namespace)
                    && policy.name == *name
            })?;
            return self.is_for_here(named).then(|| named.policy.clone());
        }
        let mut policy = (**self.service.policy.as_ref()?).clone();
        if policy.adds {
            return None;
        }
        let limits = self
            .best(|policy| policy.namespace.is_none() && policy.owner_limits.is_some())
            .or_else(|| self.best(|policy| policy.owner_limits.is_some()))
            .and_then(|policy| policy.owner_limits.clone());
        if let Some(limits) = limits {
            if !limits.allowed_modes.is_empty() && !limits.allowed_modes.contains(&policy.mode) {
                return None;
            }
            if let (Some(asked), Some(least)) = (policy.max_overload, limits.min_max_overload) {
                policy.max_overload = Some(asked.max(least));
            }
        }
        Some(policy)
    }

    /// The best policy of the `kind` for this Service, port and node: by priority, age and name.
    fn best(&self, kind: impl Fn(&TopologyPolicy) -> bool) -> Option<&TopologyPolicy> {
        let mut best: Option<&TopologyPolicy> = None;
        for policy in &self.view.cluster.policies {
            if !kind(policy) || !self.selects(policy) || !self.is_for_here(policy) {
                continue;
            }
            let age = |policy: &TopologyPolicy| policy.created.unwrap_or(i64::MAX);
            let beats = |other: &TopologyPolicy| {
                if policy.priority != other.priority {
                    return policy.priority > other.priority;
                }
                if age(policy) != age(other) {
                    return age(policy) < age(other);
                }
                policy.name < other.name
            };
            if best.is_none_or(beats) {
                best = Some(policy);
            }
        }
        best
    }

    fn selects(&self, policy: &TopologyPolicy) -> bool {
        let namespace = &self.service.name.namespace;
        let labels = self
            .view
            .cluster
            .namespaces
            .iter()
            .find(|(name, _)| **name == **namespace);
        let labels = labels.map_or_else(Labels::default, |(_, labels)| labels.clone());
        let here = match &policy.namespace {
            Some(own) => own == namespace,
            None => policy.namespace_selector.matches(&labels),
        };
        here && policy.service_selector.matches(&self.service.labels)
    }

    fn is_for_here(&self, policy: &TopologyPolicy) -> bool {
        let labels = self
            .view
            .cluster
            .node(self.view.me)
            .map(|node| node.labels.clone());
        let port = policy.port_names.is_empty() || policy.port_names.contains(&self.of.name);
        port && policy.node_selector.matches(&labels.unwrap_or_default())
    }

    /// Whether a hard policy of the cluster would refuse every client: no Node has a label of its levels.
    fn refuses_everywhere(&self, policy: &TopologyPolicy) -> bool {
        let nodes = &self.view.cluster.nodes;
        let exists = |level: &topology_core::policy::Level| match &level.key {
            LevelKey::Label(key) => nodes
                .iter()
                .any(|node| node.labels.get(key).is_some_and(|value| !value.is_empty())),
            LevelKey::Node | LevelKey::Any => true,
        };
        policy.namespace.is_none()
            && !nodes.is_empty()
            && super::is_hard(&policy.policy)
            && !policy.policy.levels.iter().any(exists)
    }
}
