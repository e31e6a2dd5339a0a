//! Policies, drains and the labels of namespaces in a snapshot.

use std::sync::Arc;

use super::Snapshot;
use crate::model::{Drain, Labels, Service, TopologyPolicy};

impl Snapshot {
    /// Adds a policy, or replaces the one with the same namespace and name.
    pub fn set_policy(&mut self, policy: TopologyPolicy) {
        let id = (policy.namespace.clone(), policy.name.clone());
        if self.policies.get(&id) == Some(&policy) {
            return;
        }
        self.mark_selected(&policy);
        let old = self.policies.get(&id).map(|old| &old.policy);
        self.tallies.replace(old, Some(&policy.policy), &self.nodes);
        if let Some(old) = self.policies.insert(id, policy) {
            self.mark_selected(&old);
        }
    }

    /// Removes a policy; without a namespace, a `ClusterTopologyPolicy`.
    pub fn remove_policy(&mut self, namespace: Option<&str>, name: &str) {
        let id = (namespace.map(Arc::from), Arc::from(name));
        if let Some(old) = self.policies.remove(&id) {
            self.tallies.replace(Some(&old.policy), None, &self.nodes);
            self.mark_selected(&old);
        }
    }

    /// Adds a drain, or replaces the one with the same name.
    pub fn set_drain(&mut self, drain: Drain) {
        if self.drains.get(&drain.name) == Some(&drain) {
            return;
        }
        self.marks.drain(drain.clone());
        if let Some(old) = self.drains.insert(drain.name.clone(), drain) {
            self.marks.drain(old);
        }
    }

    /// Removes a drain.
    pub fn remove_drain(&mut self, name: &str) {
        if let Some(old) = self.drains.remove(name) {
            self.marks.drain(old);
        }
    }

    /// Adds a namespace, or replaces its labels.
    pub fn set_namespace(&mut self, name: impl Into<Arc<str>>, labels: Labels) {
        let name = name.into();
        if self.namespaces.get(&name) == Some(&labels) {
            return;
        }
        self.namespaces.insert(Arc::clone(&name), labels);
        self.mark_namespace(&name);
    }

    /// Removes a namespace.
    pub fn remove_namespace(&mut self, name: &str) {
        if self.namespaces.remove(name).is_some() {
            self.mark_namespace(name);
        }
    }

    /// The labels of a namespace.
    pub fn namespace(&self, name: &str) -> Option<&Labels> {
        self.namespaces.get(name)
    }

    /// The names of all namespaces with known labels, in no order.
    pub fn namespaces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.namespaces.keys()
    }

    /// All policies: cluster-scoped ones first, then by namespace and name.
    pub fn policies(&self) -> impl Iterator<Item = &TopologyPolicy> {
        self.policies.values()
    }

    /// The policies whose selectors of namespaces and Services match `service`, cluster-scoped ones first.
    pub fn policies_for<'a>(
        &'a self,
        service: &'a Service,
    ) -> impl Iterator<Item = &'a TopologyPolicy> {
        let namespace = &service.name.namespace;
        let policies = (!self.policies.is_empty()).then(|| {
            let first = |namespace: Option<Arc<str>>| (namespace, Arc::<str>::default());
            let of_cluster = self.policies.iter();
            let of_namespace = self.policies.range(first(Some(namespace.clone()))..);
            of_cluster
                .take_while(|((owner, _), _)| owner.is_none())
                .chain(
                    of_namespace
                        .take_while(move |((owner, _), _)| owner.as_ref() == Some(namespace)),
                )
        });
        let labels = self.namespaces.get(namespace);
        policies
            .into_iter()
            .flatten()
            .map(|(_, policy)| policy)
            .filter(move |policy| selects_service(policy, labels, service))
    }

    /// The `TopologyPolicy` with this name.
    pub fn policy(&self, namespace: &Arc<str>, name: &Arc<str>) -> Option<&TopologyPolicy> {
        self.policies.get(&(Some(namespace.clone()), name.clone()))
    }

    /// All drains, by name.
    pub fn drains(&self) -> impl Iterator<Item = &Drain> {
        self.drains.values()
    }

    /// Marks the Services of `policy`. A change of namespace labels marks others later.
    fn mark_selected(&mut self, policy: &TopologyPolicy) {
        for (name, entry) in &self.services {
            let Some(service) = &entry.service else {
                continue;
            };
            let here = match &policy.namespace {
                Some(namespace) => name.namespace == *namespace,
                None => selects(policy, self.namespaces.get(&name.namespace)),
            };
            let named = service.named_policy.as_ref() == Some(&policy.name);
            if here && (named || policy.service_selector.matches(&service.labels)) {
                self.marks.service(name);
            }
        }
    }

    /// Marks the Services of a namespace if a policy selects by its labels.
    fn mark_namespace(&mut self, namespace: &str) {
        let asks = |policy: &TopologyPolicy| !policy.namespace_selector.is_empty();
        if !self.policies.values().any(asks) {
            return;
        }
        for name in self.services.keys() {
            if *name.namespace == *namespace {
                self.marks.service(name);
            }
        }
    }
}

/// Whether `policy`, a cluster-scoped one or of the same namespace, selects `service`; `labels` are its namespace's.
pub(super) fn selects_service(
    policy: &TopologyPolicy,
    labels: Option<&Labels>,
    service: &Service,
) -> bool {
    (policy.namespace.is_some() || selects(policy, labels))
        && policy.service_selector.matches(&service.labels)
}

/// Whether `policy` selects a namespace with `labels`; `None` if they are unknown.
pub(crate) fn selects(policy: &TopologyPolicy, labels: Option<&Labels>) -> bool {
    let nothing = Labels::default();
    policy
        .namespace_selector
        .matches(labels.unwrap_or(&nothing))
}
