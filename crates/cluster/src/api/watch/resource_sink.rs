//! Passes the events of one resource to the reflector, and records the state of the resource.

use std::future::pending;
use std::time::Duration;

use jiff::Timestamp;
use kube_io::Fault;
use kube_io::list_watch::{DriverError, Event, NextAttempt, Sink, chance};
use object_tree::Node;
use tokio::time::{Instant, sleep_until};

use super::feed::Feed;
use super::reflector::NodeQuery;
use super::resources::ResourceId;

/// Spreads the confirming lists of all agents over this time.
const SPREAD: Duration = Duration::from_secs(15);

pub(super) struct ResourceSink<'s> {
    pub(super) id: ResourceId,
    /// The query of the current list and watch.
    pub(super) query: NodeQuery,
    /// When to list again to confirm the last list.
    list_again: Option<Instant>,
    feed: &'s Feed,
}

impl Sink for ResourceSink<'_> {
    type Object = Node;

    fn apply(&mut self, event: Event<Node>) {
        match event {
            Event::ListBegan => self.feed.reflector.borrow_mut().begin(self.id),
            Event::Applied(object) => self
                .feed
                .reflector
                .borrow_mut()
                .apply_object(self.id, &object),
            Event::Deleted(object) => self
                .feed
                .reflector
                .borrow_mut()
                .delete_object(self.id, &object),
            Event::Listed => self.listed(),
            Event::Accepted => self.accepted(),
            Event::Watching => self.watching(),
        }
    }

    fn is_outdated(&self) -> bool {
        self.id == ResourceId::NODES && self.query != self.feed.reflector.borrow().node_query()
    }

    async fn interrupted(&self) {
        tokio::select! {
            () = self.outdated() => {}
            () = self.doubt_due() => {}
        }
    }
}

impl<'s> ResourceSink<'s> {
    pub(super) fn new(id: ResourceId, feed: &'s Feed) -> Self {
        Self {
            id,
            query: NodeQuery::default(),
            list_again: None,
            feed,
        }
    }

    /// Records that a part of a stream came, and checks objects again that were not usable yet. A
    /// bookmark comes about every minute, so no such object waits longer.
    pub(super) fn received(&self) {
        let mut reflector = self.feed.reflector.borrow_mut();
        reflector.recheck_early();
        let objects = reflector.count(self.id);
        self.feed
            .sync_status
            .received(self.id, Timestamp::now(), objects);
    }

    /// Whether to list again now to confirm the last list. Returns true once.
    pub(super) fn take_due_doubt(&mut self) -> bool {
        let is_due = |moment: &mut Instant| *moment <= Instant::now();
        self.list_again.take_if(is_due).is_some()
    }

    /// Resolves when the query has changed.
    async fn outdated(&self) {
        if self.id != ResourceId::NODES {
            pending::<()>().await;
        }
        while !self.is_outdated() {
            self.feed.query_changed.notified().await;
        }
    }

    /// Resolves when to list again to confirm the last list.
    async fn doubt_due(&self) {
        match self.list_again {
            Some(moment) => sleep_until(moment).await,
            None => pending().await,
        }
    }

    fn listed(&mut self) {
        let now = self.feed.epoch.elapsed();
        self.feed.reflector.borrow_mut().listed(self.id, now);
        let doubt = self.feed.reflector.borrow().doubt(self.id);
        let kept = doubt.map_or(0, |(_, missing)| missing);
        self.feed.sync_status.set_doubted(self.id, kept);
        self.list_again =
            doubt.map(|(moment, _)| self.feed.epoch + moment + SPREAD.mul_f64(chance()));
        self.watching();
    }

    fn accepted(&self) {
        let mut reflector = self.feed.reflector.borrow_mut();
        reflector.report_error(self.id, &self.feed.server, None);
        reflector.set_refused(self.id, false);
        let objects = reflector.count(self.id);
        self.feed
            .sync_status
            .received(self.id, Timestamp::now(), objects);
    }

    fn watching(&self) {
        self.feed.sync_status.watching(self.id, Timestamp::now());
    }

    pub(super) fn failed(&self, failure: &DriverError) {
        let Feed {
            reflector,
            sync_status,
            server,
            ..
        } = self.feed;
        let mut reflector = reflector.borrow_mut();
        let error = &failure.error;
        match failure.kind {
            NextAttempt::Absent => {
                reflector.absent(self.id);
                reflector.report_error(self.id, server, None);
                sync_status.absent(self.id, error);
                return;
            }
            NextAttempt::Unsupported => return,
            NextAttempt::Retried => {}
        }
        if self.id == ResourceId::NODES && self.query == reflector.node_query() {
            reflector.node_list_late();
        }
        if error.is_initializing(failure.failures) {
            return;
        }
        // Where nothing writes PodMaps, accounts have no permission for them.
        let is_refused = self.id == ResourceId::POD_MAPS && error.fault == Fault::Forbidden;
        if is_refused && reflector.count(self.id) == 0 {
            reflector.absent(self.id);
            sync_status.absent(self.id, error);
            return;
        }
        sync_status.failed(self.id, error);
        // A stream that breaks once is normal. A second failure in a row is reported.
        if failure.failures > 1 {
            reflector.report_error(self.id, server, Some(error));
            if !error.fault.is_passing() {
                reflector.set_refused(self.id, true);
                reflector.complete_partially();
            }
        }
    }
}
