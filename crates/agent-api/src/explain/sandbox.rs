//! Tries changes on the part of a cluster that one Service's decision depends on.

use std::sync::Arc;

use topology_core::model::{EndpointSlice, Faults, ObjectName, PolicyName, Service};
use topology_core::policy::Policy;
use topology_core::resolve::{Decision, Viewpoint, resolve_for_clients};
use topology_core::snapshot::Snapshot;
use topology_core::virtual_server::VirtualServerKey;

/// One Service among all Nodes, policies and drains. Each change is undone after it was tried.
#[derive(Debug)]
pub(super) struct Sandbox<'a> {
    snapshot: &'a mut Snapshot,
    me: &'a Viewpoint,
    service: Service,
    slices: Vec<EndpointSlice>,
    key: VirtualServerKey,
}

impl<'a> Sandbox<'a> {
    /// Prepares for the virtual server `key` of `service`; `None` if the Service does not exist.
    pub(super) fn of(
        snapshot: &'a mut Snapshot,
        me: &'a Viewpoint,
        service: &ObjectName,
        key: VirtualServerKey,
    ) -> Option<Self> {
        let service = snapshot.service(service)?.clone();
        let slices = snapshot.slices(&service.name).to_vec();
        Some(Self {
            snapshot,
            me,
            service,
            slices,
            key,
        })
    }

    pub(super) const fn snapshot(&self) -> &Snapshot {
        self.snapshot
    }

    /// The decision with other endpoints.
    pub(super) fn with_slices(
        &mut self,
        edit: impl Fn(&mut Vec<EndpointSlice>),
    ) -> Option<Decision> {
        let mut slices = self.slices.clone();
        edit(&mut slices);
        for slice in slices {
            self.snapshot.set_slice(slice);
        }
        let decision = self.decide();
        self.reset();
        decision
    }

    /// The decision without the Service's annotations; its `topologyKeys` stay.
    pub(super) fn without_annotations(&mut self) -> Option<Decision> {
        self.with_own_policy(self.service.topology_keys.clone())
    }

    /// The decision without the Service's `topologyKeys`; what its annotations add to them stays.
    pub(super) fn without_topology_keys(&mut self) -> Option<Decision> {
        let policy = self.service.policy.as_deref();
        let added = policy.and_then(Policy::added_to_topology_keys);
        self.with_own_policy(added.map(Arc::new))
    }

    fn with_own_policy(&mut self, policy: Option<Arc<Policy>>) -> Option<Decision> {
        self.snapshot.set_service(Service {
            policy,
            named_policy: None,
            faults: Faults::None,
            ..self.service.clone()
        });
        let decision = self.decide();
        self.reset();
        decision
    }

    /// The decision without this policy object.
    pub(super) fn without_policy(&mut self, name: &PolicyName) -> Option<Decision> {
        let policy = self
            .snapshot
            .policies()
            .find(|policy| policy.id() == *name)?
            .clone();
        self.snapshot
            .remove_policy(policy.namespace.as_deref(), &policy.name);
        let decision = self.decide();
        self.snapshot.set_policy(policy);
        decision
    }

    /// The decision without this drain.
    pub(super) fn without_drain(&mut self, name: &str) -> Option<Decision> {
        let drain = self
            .snapshot
            .drains()
            .find(|drain| &*drain.name == name)?
            .clone();
        self.snapshot.remove_drain(name);
        let decision = self.decide();
        self.snapshot.set_drain(drain);
        decision
    }

    fn decide(&self) -> Option<Decision> {
        let servers = resolve_for_clients(self.snapshot, self.me, &self.service.name).servers;
        let mine = servers
            .into_iter()
            .find(|resolved| resolved.server.key == self.key);
        mine.map(|resolved| resolved.decision)
    }

    fn reset(&mut self) {
        self.snapshot.set_service(self.service.clone());
        for slice in &self.slices {
            self.snapshot.set_slice(slice.clone());
        }
    }
}
