//! The loop: makes the kernel match the cluster, and keeps it so.
//!
//! ```text
//! trigger ──> desired (resolve what is dirty) ──> plan (diff against the mirror) ──> apply ──> commit
//! ```
//!
//! Only a [`Trigger`] can wake the loop; nothing else changes its state. One pass handles any set of Services and keys:
//! a change, a retry, a repair and the start differ only in the keys. Nothing is ever flushed, and nothing is written
//! before the first complete read of the input.

// A new source, reason, note or fact must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

mod addresses;
mod agent_ports;
mod applied_settings;
mod apply;
mod check;
mod clients;
mod clock;
mod conntrack;
mod counted;
mod counts;
mod deadlines;
mod desired;
mod disconnected;
mod disconnected_endpoints;
mod elements;
mod firewall_marks;
mod first_pass;
mod flow_deletions;
mod host_plan;
mod host_state;
mod infrastructure;
mod infrastructure_changes;
mod initial_read;
mod node_settings;
mod other_proxy;
mod pass;
mod pending;
mod periodic_check;
mod plan_queries;
mod plan_steps;
mod programmable;
mod publish;
mod queries;
mod reconciler;
mod resolving;
mod retry;
mod scheduler_retry;
mod schedulers;
mod sorted_list;
mod startup;
mod trash;
mod warnings;

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use cluster::event::{Batch, Completeness, Event};
use cluster::object::{Kind, Object};
use cluster::source::Watch;
use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use dataplane::routes::address_monitor::{AddressMonitor, RemovedAddresses};
use tokio::sync::mpsc;
use tokio::task::yield_now;

use crate::node_warning::Topic;
use crate::state::Query;

pub(crate) use self::infrastructure_changes::InfrastructureChanges;
pub(crate) use self::reconciler::{Parts, Reconciler};

/// All events that wake the loop.
enum Trigger {
    /// The process must exit; the data plane stays.
    Stop,
    Query(Query),
    /// A change of the cluster.
    Input(Batch),
    /// Addresses of this node were added or removed.
    Moved(RemovedAddresses),
    /// Gateways, resolvers or connections to the API server changed.
    Infrastructure,
    /// Servers on this node opened or closed connections to the agent.
    Connections,
    /// The thread that reads the cluster panicked.
    SourceEnded,
    /// A failed key, a draining real server, or failed routes or tables are due.
    Due,
    /// Ports of the agent itself were opened, or cannot be opened.
    AgentPorts,
    /// The periodic comparison starts.
    Check,
    /// The running comparison continues with the next slice.
    CheckOn,
    /// While the cluster's first list is loading, the kernel's table is read, slice by slice.
    ReadOn,
    /// The next slice of the table is compared for a query.
    ContinuePlan,
    /// After a change of the cluster, nothing else is due.
    NothingElse,
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was requested.
    Stopped,
    /// The cluster is no longer read, so the virtual servers would become stale.
    SourceLost,
    /// The thread that deletes connection tracking entries has exited.
    ConntrackLost,
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Runs until `stop` completes.
    pub(crate) async fn run(
        &mut self,
        mut source: Watch,
        mut address_monitor: AddressMonitor,
        mut queries: mpsc::Receiver<Query>,
        stop: impl Future<Output = ()>,
    ) -> Ended {
        let mut stop = pin!(stop);
        let mut health_failures = self.health_ports.failures();
        let mut loopback_failures = self.loopback_ports.failures();
        let mut infrastructure = self.infrastructure.clone();
        let mut connections = self.disconnected.connections().changes();
        // Changes that arrive all the time must not delay the other triggers forever.
        let mut others_first = false;
        loop {
            let trigger = tokio::select! {
                biased;
                () = &mut stop => Trigger::Stop,
                Some(query) = queries.recv() => Trigger::Query(query),
                batch = source.next(), if !others_first => batch.map_or(Trigger::SourceEnded, Trigger::Input),
                removed = address_monitor.next(), if self.startup.is_done() => Trigger::Moved(removed),
                () = infrastructure.changed(), if self.startup.is_done() => Trigger::Infrastructure,
                () = connections.next(), if self.startup.is_done() => Trigger::Connections,
                () = self.until_due() => Trigger::Due,
                Ok(()) = health_failures.changed() => Trigger::AgentPorts,
                Ok(()) = loopback_failures.changed() => Trigger::AgentPorts,
                () = std::future::ready(()), if self.check.is_running() => Trigger::CheckOn,
                () = std::future::ready(()), if self.initial_read.is_partly_read() => Trigger::ReadOn,
                () = tokio::time::sleep_until(self.check.next()), if self.startup.is_done() => Trigger::Check,
                () = std::future::ready(()), if self.plan_queries.is_running() => Trigger::ContinuePlan,
                () = yield_now(), if others_first => Trigger::NothingElse,
            };
            others_first = matches!(trigger, Trigger::Input(_));
            match trigger {
                Trigger::Stop => {
                    self.finish_forgetting().await;
                    tracing::info!("stopping; the data plane goes on serving");
                    return Ended::Stopped;
                }
                Trigger::Query(query) => self.answer(query).await,
                Trigger::Input(batch) => self.take_input(batch, &mut source).await,
                Trigger::Moved(removed) => self.addresses_moved(&removed).await,
                Trigger::Infrastructure => self.infrastructure_changed().await,
                Trigger::Connections => self.connections_changed().await,
                Trigger::SourceEnded => return Ended::SourceLost,
                Trigger::Due => self.handle_due().await,
                Trigger::AgentPorts => {
                    let failures = health_failures.borrow_and_update().clone();
                    self.warnings.set(Topic::HealthPorts, failures);
                    let failures = loopback_failures.borrow_and_update().clone();
                    self.warnings.set(Topic::LoopbackPorts, failures);
                }
                Trigger::Check => self.begin_check().await,
                Trigger::CheckOn => self.check_on().await,
                Trigger::ReadOn => self.read_on().await,
                Trigger::ContinuePlan => self.continue_plan().await,
                Trigger::NothingElse => continue,
            }
            if self.flow_deletions.is_lost() {
                return Ended::ConntrackLost;
            }
            self.update_warnings();
            self.publish();
        }
    }

    /// Takes a batch and everything else that has arrived, so that a burst is one pass. The first change of a burst is
    /// handled without delay.
    async fn take_input(&mut self, batch: Batch, source: &mut Watch) {
        self.pending.arrived();
        self.absorb(batch);
        while let Some(batch) = next_now(source).await {
            self.absorb(batch);
        }
        if self.index.completeness().is_some() {
            self.startup.input_is_read();
        }
        // A query during a long pass must see that changes are pending.
        self.publish();
        match (self.startup.input(), self.index.completeness()) {
            // The first complete read is not done: nothing may be programmed.
            (_, None) => {}
            (None, Some(_)) => self.start().await,
            (Some(Completeness::Partial), Some(Completeness::Whole)) => {
                self.full_pass().await;
                self.startup.input_is_whole();
            }
            (Some(_), Some(_)) => self.pass_dirty().await,
        }
    }

    fn absorb(&mut self, batch: Batch) {
        let changes = |kind| {
            batch
                .events
                .iter()
                .filter(move |event| changed(event) == Some(kind))
        };
        let count = |kind| changes(kind).count() as u64;
        let (services, slices) = (count(Kind::Service), count(Kind::EndpointSlice));
        self.metrics.input_changed(services, slices);
        self.pending.count(services, slices);
        for event in &batch.events {
            if let Event::Triggered(trigger) = event {
                self.pending.triggered(*trigger);
            }
        }
        for warning in self.index.apply(batch) {
            tracing::warn!("{warning}");
        }
    }

    async fn until_due(&self) {
        match self.agenda.next() {
            Some(due) => tokio::time::sleep_until(self.epoch + Duration::from_millis(due)).await,
            None => std::future::pending().await,
        }
    }
}

/// The kind of object that an event changes; Nodes and ranges are not counted.
fn changed(event: &Event) -> Option<Kind> {
    match event {
        Event::Apply(Object::Service(_)) => Some(Kind::Service),
        Event::Apply(Object::EndpointSlice(_)) => Some(Kind::EndpointSlice),
        Event::Delete(key) => Some(key.kind),
        Event::Begin
        | Event::Apply(_)
        | Event::Ignore(..)
        | Event::Keep(_)
        | Event::Unread(_)
        | Event::Triggered(_)
        | Event::Complete(_) => None,
    }
}

/// The next batch, if it has arrived.
async fn next_now(source: &mut Watch) -> Option<Batch> {
    let mut next = pin!(source.next());
    poll_fn(|context| match next.as_mut().poll(context) {
        Poll::Ready(batch) => Poll::Ready(batch),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests;
