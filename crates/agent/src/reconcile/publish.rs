//! Publishes the result of a pass: a log line, metrics, and the pulse.

use std::time::Duration;

use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use jiff::Timestamp;
use topology_core::model::Family;
use topology_core::virtual_server::VirtualServerKey;

use super::pass::{Completion, Done};
use super::pending::TakenChanges;
use super::reconciler::{Item, Reconciler};
use crate::state::Pulse;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Logs one line if anything was written (failures were logged before), and records metrics. `taken` are the
    /// changes of the input that the pass processed.
    pub(super) fn report(&mut self, done: &Done, taken: Option<&TakenChanges>) {
        self.measure(done, taken);
        if !done.achieved_something() {
            return;
        }
        let Done {
            applied,
            host_writes,
            services,
            only,
            ..
        } = done;
        let done = |step| applied.done(step);
        let service = only.as_ref().map(tracing::field::display);
        let since = taken.and_then(|taken| taken.since);
        let after = since.map(|since| tracing::field::debug(since.elapsed()));
        tracing::info!(
            service,
            services,
            virtual_servers_added = done("add_server"),
            virtual_servers_changed = done("edit_server"),
            virtual_servers_removed = done("delete_server"),
            real_servers_added = done("add_real"),
            real_servers_changed = done("edit_real"),
            real_servers_draining = done("drain_real"),
            real_servers_removed = done("delete_real"),
            routes_and_tables = host_writes,
            failed = applied.failed(),
            after,
            "programmed"
        );
    }

    /// How much the kernel has of these keys and, if `needs_host`, of routes and tables.
    pub(super) fn completion(&self, keys: &[VirtualServerKey], needs_host: bool) -> Completion {
        let fails = |item| self.agenda.failure(&item).is_some();
        let mut servers = keys.iter().map(|key| Item::Server(*key));
        if servers.any(fails) || (needs_host && (fails(Item::Routes) || fails(Item::Tables))) {
            Completion::Part
        } else if needs_host && self.host_writes.tables_wait {
            Completion::AllButTables
        } else {
            Completion::All
        }
    }

    /// Records the metrics of a pass. Its changes are programmed only if it did everything (KP-MX-22).
    pub(super) fn measure(&mut self, done: &Done, taken: Option<&TakenChanges>) {
        let families = [(done.v4, Family::V4), (done.v6, Family::V6)];
        for (_, family) in families.iter().filter(|(touched, _)| *touched) {
            self.metrics
                .pass_ended(*family, done.computing + done.applied.took);
        }
        match (taken, done.completion) {
            (Some(taken), Completion::All) => self.measure_changes(taken),
            (Some(taken), Completion::AllButTables) => self.pending.wait_for_tables(taken),
            (Some(_), Completion::Part) | (None, _) => {}
        }
        if done.applied.steps() > 0 {
            self.metrics.plan_applied(done.applied.took);
        }
        for tally in &done.applied.tallies {
            self.metrics
                .kernel_writes(tally.step, tally.result(), tally.times);
        }
        self.pending.pass_ended();
    }

    fn measure_changes(&self, programmed: &TakenChanges) {
        if let Some(since) = programmed.since {
            self.metrics.change_programmed(since.elapsed());
        }
        let now = Timestamp::now();
        for trigger in &programmed.triggers {
            // A clock that is ahead of this one is no reason for a negative time.
            let took = Duration::try_from(now.duration_since(trigger.at)).unwrap_or_default();
            self.metrics.endpoints_programmed(trigger.family, took);
        }
    }

    /// Publishes the pulse if it changed: a reader that queries on each change would otherwise wake itself.
    pub(super) fn publish(&self) {
        let (services, endpoints) = self.desired.size();
        let failing = |is_of_server| {
            let since = self.agenda.failing_since(|item| {
                let counts = !matches!(item, Item::SourcelessRoutes | Item::RoutesRead);
                counts && item.is_of_server() == is_of_server
            });
            since.map(|since| self.epoch + Duration::from_millis(since))
        };
        let pulse = Pulse {
            ready: self.startup.is_done(),
            input_ready: self.index.completeness().is_some(),
            input_since: self.startup.input_since(),
            last_pass: self.pending.last_pass(),
            last_queued: self.pending.last_queued(),
            input_pending: self.pending.since(),
            host_failing: failing(false),
            servers_failing: failing(true),
            v4: self.counts.v4,
            v6: self.counts.v6,
            foreign: self.counts.foreign,
            pending_services: self.pending.services(),
            pending_slices: self.pending.slices(),
            waiting: self.agenda.failing() as u64,
            fallbacks: self.aggregate.fallbacks(),
            services: services as u64,
            endpoints: endpoints as u64,
            without_local: self.desired.without_local().clone(),
            findings: self.desired.finding_codes().clone(),
            node_eligible: self.is_eligible(),
            node_warnings: self.warnings.all(),
            start: self.startup.times(),
            timeouts: self.settings.timeouts,
        };
        self.pulse.send_if_modified(|published| {
            let is_news = *published != pulse;
            *published = pulse;
            is_news
        });
    }

    /// Whether external traffic may be sent to this node (KP-HC-02); `None` while no Node is known.
    fn is_eligible(&self) -> Option<bool> {
        let snapshot = self.index.snapshot();
        let me = snapshot.node(&self.me.node);
        let known = snapshot.nodes().next().is_some();
        known.then(|| me.is_some_and(|node| !node.leaving))
    }
}
