//! Resolves Services and stores their desired state.

use std::collections::BTreeSet;
use std::sync::Arc;

use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use topology_core::mirror::{ObservedRealServer, RealServerDrain};
use topology_core::model::{Frontend, ObjectName};
use topology_core::resolve::{Resolution, resolve};
use topology_core::virtual_server::VirtualServerKey;

use super::pass::{DRAIN_POLL, DesiredKeys, PATIENT_POLL};
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
            self.keep_addresses(service);
            let resolution = resolve(self.index.snapshot(), &self.me, service);
            Arc::make_mut(&mut self.me.memory).store(service, &resolution);
            self.record(service, resolution, desired);
        }
    }

    /// Keeps the addresses of the Service that this node serves although another Node lists them, since before the
    /// listing. After a restart the kernel's virtual servers still say so.
    fn keep_addresses(&mut self, name: &ObjectName) {
        let snapshot = self.index.snapshot();
        let Some(service) = snapshot.service(name) else {
            return;
        };
        let is_served = |frontend: &Frontend| {
            service.ports.iter().any(|port| {
                let key = frontend
                    .port_of(port)
                    .map(|number| VirtualServerKey::Address {
                        protocol: port.protocol,
                        address: frontend.address,
                        port: number,
                    });
                key.is_some_and(|key| self.mirror.get(&key).is_some() && self.mirror.is_ours(&key))
            })
        };
        for frontend in &service.frontends {
            let address = frontend.address;
            let is_claimed = snapshot.conflicting_node(address, &self.me.node).is_some();
            let is_kept = is_claimed && is_served(frontend);
            if is_kept != self.me.kept_addresses.contains(&address) {
                let kept = Arc::make_mut(&mut self.me.kept_addresses);
                if is_kept {
                    kept.insert(address);
                } else {
                    kept.remove(&address);
                }
            }
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
        let snapshot = self.index.snapshot_mut();
        let released = snapshot.review_released_firewall_marks(service);
        let held = self.desired.service(service);
        let leaving = draining_marks(&self.mirror, held, &released, &asked, &servers);
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
        for key in leaving_keys {
            self.watch_leaving(key);
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

    /// Resolves the Service of a leaving virtual server again, and reads the connections of its real servers before, until
    /// the last one is deleted.
    fn watch_leaving(&mut self, key: VirtualServerKey) {
        let drains = |real: &ObservedRealServer| self.mirror.drain(&key, real.address, real.port);
        let is_busy = |drain: &RealServerDrain| drain.connections > Some(0);
        let held = self.mirror.get(&key);
        let mut reals = held.into_iter().flat_map(|held| &held.real_servers);
        let poll = match reals.any(|real| drains(real).is_some_and(is_busy)) {
            true => PATIENT_POLL,
            false => DRAIN_POLL,
        };
        let again = self.now().saturating_add(poll);
        self.agenda.visit(&Item::Decision(key), Some(again));
        self.mirror.mark_unknown(key);
    }

    /// Converts a calendar time to the loop's clock; a past time is now.
    fn due_at(&self, moment: i64) -> u64 {
        let ahead = moment.saturating_sub(self.clock.now());
        self.now().saturating_add(u64::try_from(ahead).unwrap_or(0))
    }
}
