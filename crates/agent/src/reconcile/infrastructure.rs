//! Follows the addresses that the node and the cluster depend on, which no Service may take (PAIN-03).

use std::collections::BTreeSet;
use std::sync::Arc;

use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use topology_core::model::{FrontendKind, ObjectName, Service};
use topology_core::resolve::NodeInfrastructure;

use super::pass::Work;
use super::reconciler::Reconciler;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Takes over the present addresses. Returns the Services that this affects.
    pub(super) fn update_infrastructure(&mut self) -> BTreeSet<ObjectName> {
        let read = NodeInfrastructure {
            own: self.addresses.all(),
            ..self.infrastructure.read()
        };
        let changed = self.me.infrastructure.difference(&read);
        if changed.is_empty() {
            return BTreeSet::new();
        }
        self.me.infrastructure = Arc::new(read);
        let is_affected = |service: &&Service| {
            let mut frontends = service.frontends.iter();
            frontends.any(|frontend| match frontend.kind {
                FrontendKind::ExternalIp | FrontendKind::LoadBalancer => {
                    changed.contains(&frontend.address)
                }
                FrontendKind::ClusterIp | FrontendKind::NodePort => false,
            })
        };
        let services = self.index.snapshot().services().filter(is_affected);
        services.map(|service| service.name.clone()).collect()
    }

    /// Handles a change of these addresses.
    pub(super) async fn infrastructure_changed(&mut self) {
        let work = Work {
            services: self.update_infrastructure(),
            ..Work::default()
        };
        if work.is_nothing() {
            return;
        }
        let done = self.pass(work).await;
        self.report(&done, None);
    }
}
