//! Resolves Services and stores their desired state.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use topology_core::mirror::{ObservedRealServer, RealServerDrain};
use topology_core::model::{Frontend, ObjectName, ServicePort};
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

    /// Keeps the addresses of the Service that this node serves although another Node lists them or they are
    /// infrastructure, since before that. After a restart the kernel's virtual servers still say so.
    fn keep_addresses(&mut self, name: &ObjectName) {
        let kept = self.addresses_to_keep(name);
        let held = self.me.kept_addresses.get(name);
        if held.map_or(kept.is_empty(), |held| *held == kept) {
            return;
        }
        let all = Arc::make_mut(&mut self.me.kept_addresses);
        if kept.is_empty() {
            all.remove(name);
        } else {
            all.insert(name.clone(), kept);
        }
    }

    fn addresses_to_keep(&self, name: &ObjectName) -> BTreeSet<IpAddr> {
        let snapshot = self.index.snapshot();
        let Some(service) = snapshot.service(name) else {
            return BTreeSet::new();
        };
        let is_claimed = |address: IpAddr| {
            let mut api_servers = snapshot.api_servers().iter();
            snapshot.conflicting_node(address, &self.me.node).is_some()
                || self.me.infrastructure.uses(address)
                || api_servers.any(|socket| socket.ip() == address)
        };
        let is_kept = |frontend: &&Frontend| {
            let address = frontend.address;
            if !is_claimed(address) {
                return false;
            }
            let mut ports = service.ports.iter();
            // A new port at an address of this node may be one that the node itself uses.
            if self.addresses.link_of(address).is_some() {
                ports.all(|port| self.serves(frontend, port))
            } else {
                ports.any(|port| self.serves(frontend, port))
            }
        };
        let kept = service.frontends.iter().filter(is_kept);
        kept.map(|frontend| frontend.address).collect()
    }

    /// Whether the kernel has our virtual server for the port.
    fn serves(&self, frontend: &Frontend, port: &ServicePort) -> bool {
        let Some(number) = frontend.port_of(port) else {
            return false;
        };
        let key = VirtualServerKey::Address {
            protocol: port.protocol,
            address: frontend.address,
            port: number,
        };
        self.mirror.get(&key).is_some() && self.mirror.is_ours(&key)
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
        asked.keys.extend(leaving_keys.iter().copied());
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
        let poll = if reals.any(|real| drains(real).is_some_and(is_busy)) {
            PATIENT_POLL
        } else {
            DRAIN_POLL
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
