//! Resolves Services and stores their desired state.

use std::collections::BTreeSet;
use std::sync::Arc;

use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use topology_core::model::ObjectName;
use topology_core::resolve::{Resolution, resolve};

use super::pass::{DRAIN_POLL, DesiredKeys};
use super::programmable::{desired_service, draining_marks};
use super::reconciler::{Item, Reconciler};
use crate::agent_status::Contribution;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    pub(super) fn resolve_all(
        &mut self,
        services: &BTreeSet<ObjectName>,
        desired: &mut DesiredKeys,
    ) {
        self.me.now = Some(self.clock.now());
        for service in services {
            let resolution = resolve(self.index.snapshot(), &self.me, service);
            Arc::make_mut(&mut self.me.memory).store(service, &resolution);
            self.record(service, resolution, desired);
        }
    }

    /// Stores the desired state of a Service.
    fn record(&mut self, service: &ObjectName, resolution: Resolution, desired: &mut DesiredKeys) {
        let resolve_again_at = resolution.resolve_again_at;
        let now = self.clock.now();
        self.aggregate
            .replace(service, Contribution::of(&resolution), now);
        let snapshot = self.index.snapshot();
        let (mut asked, mut servers) =
            desired_service(snapshot, service, resolution, &self.me, &self.addresses);
        asked.ports = self.agent_ports(service, &asked);
        let held = self.desired.service(service);
        let leaving = held.map(|held| draining_marks(&self.mirror, held, &asked, &servers));
        let leaving = leaving.unwrap_or_default();
        let leaving_keys: Vec<_> = leaving.iter().map(|target| target.server.key).collect();
        asked.keys.extend(&leaving_keys);
        servers.extend(leaving);
        for finding in self.desired.new_findings(service, &asked) {
            tracing::warn!("{finding}");
        }
        let due = resolve_again_at.map(|at| self.due_at(at));
        for (key, due) in asked
            .keys
            .iter()
            .zip(std::iter::once(due).chain(std::iter::repeat(None)))
        {
            self.agenda.visit(&Item::Decision(*key), due);
        }
        // Until their last real server is deleted.
        for key in leaving_keys {
            let again = self.now().saturating_add(DRAIN_POLL);
            self.agenda.visit(&Item::Decision(key), Some(again));
        }
        for orphan in self.desired.replace(service, asked) {
            self.agenda.visit(&Item::Decision(orphan), None);
            self.schedulers.set_lacking(orphan, None);
            desired.entry(orphan).or_insert(None);
        }
        for target in &servers {
            self.schedulers.set_lacking(target.server.key, target.lacks);
        }
        desired.extend(
            servers
                .into_iter()
                .map(|target| (target.server.key, Some(target))),
        );
    }

    /// Converts a calendar time to the loop's clock; a past time is now.
    fn due_at(&self, moment: i64) -> u64 {
        let ahead = moment.saturating_sub(self.clock.now());
        self.now().saturating_add(u64::try_from(ahead).unwrap_or(0))
    }
}
