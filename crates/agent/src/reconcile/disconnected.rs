//! Follows endpoints of this node whose servers close their connections to the agent.
//!
//! Such an endpoint gets no traffic from the moment at which its server ends, instead of seconds later, when the
//! EndpointSlice has the news. It counts again when a server connects, or when the EndpointSlice has caught up: after the
//! endpoint was not ready there, or absent, its conditions count as those of any other endpoint.

use std::collections::BTreeSet;
use std::sync::Arc;

use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use topology_core::model::ObjectName;

use super::pass::Work;
use super::reconciler::Reconciler;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Takes over the present connections of servers, and the conditions of `changed` Services. Returns the Services
    /// that this affects.
    pub(super) fn update_disconnected(
        &mut self,
        changed: &BTreeSet<ObjectName>,
    ) -> BTreeSet<ObjectName> {
        let ended = self.disconnected.connections().ended();
        let before = &self.me.disconnected;
        if ended.is_empty() && before.is_empty() {
            return BTreeSet::new();
        }
        let snapshot = self.index.snapshot();
        let affected = self
            .disconnected
            .update(&ended, changed, snapshot, &self.me.node);
        let now = self.disconnected.endpoints();
        for server in now.difference(before) {
            tracing::warn!(
                "the server at {server} closed its connection to this agent: it gets no traffic until it connects again \
                 or its EndpointSlice changes"
            );
        }
        for server in before.difference(&now) {
            let cause = if ended.contains(server) {
                "its EndpointSlice has changed"
            } else {
                "it is connected again"
            };
            tracing::info!("the conditions of the server at {server} count again: {cause}");
        }
        let forgotten = ended.difference(&now).copied().collect();
        self.disconnected.connections().forget(&forgotten);
        if now != **before {
            self.me.disconnected = Arc::new(now);
        }
        affected
    }

    /// Handles servers that connected or ended.
    pub(super) async fn connections_changed(&mut self) {
        let work = Work {
            services: self.update_disconnected(&BTreeSet::new()),
            ..Work::default()
        };
        if work.is_nothing() {
            return;
        }
        let done = self.pass(work).await;
        self.report(&done, None);
    }
}
