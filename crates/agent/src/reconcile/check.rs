//! The periodic comparison of the kernel with the desired state, slice by slice.
//!
//! It reads and compares. Differences are repaired by an ordinary pass over those keys. Between two slices the loop
//! handles other triggers, so a large table delays nothing.

use std::collections::BTreeSet;

use dataplane::host::Host;
use dataplane::ipvs::{Kernel, KernelError, ListedServer, ServerReading};
use dataplane::routes::address_monitor::RemovedAddresses;
use topology_core::mirror::{ObservedRealServer, ObservedServer};
use topology_core::model::ObjectName;
use topology_core::virtual_server::VirtualServerKey;

use super::clock::Clock;
use super::pass::{SLICE, Work};
use super::reconciler::{Item, Reconciler};
use crate::node_warning::Topic;

/// Interval of polls for the tables, in milliseconds.
const LOOK: u64 = 100;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Compares everything small immediately, lists the virtual servers for the slices, and starts to read the tables.
    pub(super) async fn begin_check(&mut self) {
        self.check.schedule(self.config.check_period);
        self.count_repairs();
        self.follow_calendar().await;
        self.prepare().await;
        self.complete_record();
        self.warn_of_claims();
        self.look_for_schedulers().await;
        let moved = self.read_addresses().await;
        self.begin_observe().await;
        let mut services = self.services_at(&moved);
        services.extend(self.update_infrastructure());
        let mut work = Work {
            services,
            host: !moved.is_empty(),
            ..Work::default()
        };
        match self.kernel.list().await {
            Ok(listed) => {
                self.warnings.set(Topic::Kernel, Vec::new());
                let present: BTreeSet<_> = listed.iter().map(|listed| listed.key).collect();
                work.keys = self.vanished(&present);
                if self.avoid_foreign_marks(present.into_iter()) {
                    self.pass_changes().await;
                }
                self.check.begin(listed);
            }
            Err(error) => self.warnings.set(Topic::Kernel, vec![error.to_string()]),
        }
        self.repair(work, "missing").await;
        self.index
            .snapshot_mut()
            .review_all_released_firewall_marks();
        self.serve_waiting_for_marks().await;
    }

    /// Reads the calendar. If it was changed, resolves what depends on it again.
    async fn follow_calendar(&mut self) {
        let before = std::mem::replace(&mut self.clock, Clock::set());
        if !self.clock.leapt_since(&before) {
            return;
        }
        let services = self.index.snapshot().services();
        let work = Work {
            services: services.map(|service| service.name.clone()).collect(),
            ..Work::default()
        };
        let done = self.pass(work).await;
        self.report(&done, None);
    }

    /// Starts to read the tables in the background.
    pub(super) async fn begin_observe(&mut self) {
        self.host.begin_observe_tables().await;
        self.await_tables();
    }

    /// Schedules the next poll for the tables.
    pub(super) fn await_tables(&mut self) {
        self.agenda
            .visit(&Item::TablesRead, Some(self.now() + LOOK));
    }

    /// Compares routes and tables when the tables are read or written, if needed: with many pods on this node `nft`
    /// takes a while.
    pub(super) async fn end_observe(&mut self) {
        let Some(ended) = self.host.poll_tables().await else {
            self.await_tables();
            return;
        };
        self.agenda.visit(&Item::TablesRead, None);
        let changes_wait = std::mem::take(&mut self.host_writes.tables_wait);
        let waited = self.pending.take_behind_tables();
        match ended {
            Ok(()) if self.startup.is_done() => {}
            Ok(()) => return,
            Err(error) if self.startup.is_done() => return self.tables_failed(&error),
            // The first pass sets the tables; nothing is written before it.
            Err(error) => return self.warnings.set(Topic::Tables, vec![error.to_string()]),
        }
        self.read_routes().await;
        let work = Work {
            host: true,
            ..Work::default()
        };
        if changes_wait {
            // The differences are at least in part our own changes, so nothing says that another program made some.
            let done = self.pass(work).await;
            self.report(&done, waited.as_ref());
        } else {
            self.repair(work, "changed").await;
        }
    }

    /// Handles a change of the node's addresses. The kernel removes routes together with their source address, so our
    /// routes are read again, too. An address that leaves `kube-ipvs0` is none of the node's, but its route had the place
    /// of ours. An address that was removed and is back is none that moved, but its routes are gone, too.
    pub(super) async fn addresses_moved(&mut self, removed: &RemovedAddresses) {
        let moved = self.read_addresses().await;
        if moved.is_empty() && !self.placement.has_source_in(removed) {
            return self.add_taken_routes().await;
        }
        self.read_routes().await;
        let mut services = self.services_at(&moved);
        services.extend(self.update_infrastructure());
        let work = Work {
            services,
            host: true,
            ..Work::default()
        };
        let done = self.pass(work).await;
        self.report(&done, None);
    }

    /// Compares the next slice.
    pub(super) async fn check_on(&mut self) {
        let Some(slice) = self.check.next_slice(SLICE) else {
            return;
        };
        if slice.is_empty() {
            self.pending.pass_ended();
            return;
        }
        let mut keys = BTreeSet::new();
        for listed in slice {
            match self.compare(listed).await {
                Ok(differing) => keys.extend(differing),
                Err(error) => {
                    self.check.abort();
                    self.warnings.set(Topic::Kernel, vec![error.to_string()]);
                    break;
                }
            }
        }
        self.repair(
            Work {
                keys,
                ..Work::default()
            },
            "changed",
        )
        .await;
    }

    /// Reads the real servers of a listed virtual server; returns its key if it differs from the mirror.
    async fn compare(
        &mut self,
        listed: ListedServer,
    ) -> Result<Option<VirtualServerKey>, KernelError> {
        let key = listed.key;
        let Some(reading) = self.kernel.fill(listed).await? else {
            return Ok(None);
        };
        let same = self
            .mirror
            .get(&key)
            .is_some_and(|held| is_same(held, &reading));
        if !same {
            self.mirror.mark_unknown(key);
        }
        Ok((!same).then_some(key))
    }

    /// Keys that are in the mirror and not in the kernel.
    fn vanished(&mut self, present: &BTreeSet<VirtualServerKey>) -> BTreeSet<VirtualServerKey> {
        let gone: BTreeSet<_> = self
            .mirror
            .keys()
            .filter(|key| !present.contains(key))
            .copied()
            .collect();
        for key in &gone {
            self.mirror.mark_unknown(*key);
        }
        gone
    }

    /// Services with a virtual address in `addresses`.
    fn services_at(&self, addresses: &BTreeSet<std::net::IpAddr>) -> BTreeSet<ObjectName> {
        let is_at = |key: &VirtualServerKey| match key {
            VirtualServerKey::Address { address, .. } => addresses.contains(address),
            VirtualServerKey::FirewallMark { .. } => false,
        };
        let affected = self.desired.services().filter(|(_, asked)| {
            !addresses.is_empty() && asked.keys.iter().chain(asked.refused.keys()).any(is_at)
        });
        affected.map(|(name, _)| name.clone()).collect()
    }

    /// A pass over the differences; logs if it wrote anything.
    async fn repair(&mut self, work: Work, cause: &'static str) {
        let keys = work.keys.len();
        if work.is_nothing() {
            return;
        }
        let done = self.pass(work).await;
        if done.writes() == 0 {
            return;
        }
        if keys > 0 {
            self.record_repair();
        }
        let steps = done.writes();
        self.metrics.repaired(cause, steps);
        tracing::warn!(keys, steps, "the kernel was not as we left it; repaired");
        self.measure(&done, None);
    }

    /// Updates the warnings that tasks of their own find.
    pub(super) fn update_warnings(&mut self) {
        if let Some(lines) = self.host.forwarding() {
            self.warnings.set(Topic::ForwardPolicy, lines);
        }
        if let Some(found) = self.host.other_proxy() {
            self.other_proxy.set_found(found);
            self.warn_of_other_proxy();
        }
    }

    /// Starts a comparison, and evaluates the repairs of the previous ones.
    pub(super) fn count_repairs(&mut self) {
        self.other_proxy.begin_check();
        self.warn_of_other_proxy();
    }

    /// Records that the running comparison repaired virtual servers.
    pub(super) fn record_repair(&mut self) {
        self.other_proxy.repaired();
    }

    fn warn_of_other_proxy(&mut self) {
        self.warnings
            .set(Topic::OtherProxy, self.other_proxy.lines());
    }
}

/// Whether a virtual server equals the mirror, in any order of real servers.
fn is_same(held: &ObservedServer, reading: &ServerReading) -> bool {
    let ObservedServer {
        scheduler,
        persistence,
        plain,
        real_servers,
    } = &reading.observed;
    let mut seen: Vec<&ObservedRealServer> = real_servers.iter().collect();
    seen.sort_unstable_by_key(|real| (real.address, real.port));
    held.scheduler == *scheduler
        && held.persistence == *persistence
        && held.plain == *plain
        && held.real_servers.iter().eq(seen)
}
