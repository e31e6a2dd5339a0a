//! Reads one resource: drives its requests, and collects changes into batches.

use std::future::pending;
use std::time::Duration;

use kube_io::list_watch::{Driver, DriverError, DriverStep, Sink as _};
use object_tree::Node;
use tokio::time::{Instant, sleep, timeout};

use super::feed::Feed;
use super::options::Delivery;
use super::resource_sink::ResourceSink;
use super::resources::{Need, ResourceId, WatchedResource};

/// The pause after a batch of changes: changes during it become one batch. A single change after a
/// quiet time is sent at once.
const PACE: Duration = Duration::from_millis(100);

/// The pause after a batch of [`MANY`] changes or more: a long burst then causes fewer batches.
const PACE_OF_MANY: Duration = Duration::from_millis(250);

const MANY: usize = 5;

/// A part of the stream that comes within this time after the previous part joins its batch.
const GAP: Duration = Duration::from_millis(1);

/// How long the first list of Nodes waits for the labels in use.
const LABEL_USAGE: Duration = Duration::from_secs(1);

pub(super) struct ResourceReader<'s> {
    need: Need,
    driver: Driver<Node>,
    sink: ResourceSink<'s>,
    feed: &'s Feed,
}

impl<'s> ResourceReader<'s> {
    pub(super) fn new(watched: &WatchedResource, feed: &'s Feed) -> Self {
        let mut reader = Self {
            need: watched.need,
            driver: Driver::new(feed.connection.clone(), watched.resource),
            sink: ResourceSink::new(watched.id, feed),
            feed,
        };
        reader.restart();
        reader
    }

    /// Starts again with a list, with the current query.
    fn restart(&mut self) {
        if self.sink.id == ResourceId::NODES {
            self.sink.query = self.feed.reflector.borrow().node_query();
        }
        self.driver.restart(self.sink.query.only.clone());
    }

    /// Reads until the receiver of the batches is gone.
    pub(super) async fn run(mut self) -> Option<()> {
        self.until_needed().await;
        self.feed.sync_status.began(self.sink.id);
        if self.sink.id == ResourceId::NODES {
            self.until_label_usage().await;
        }
        let mut rested = Instant::now();
        loop {
            if self.sink.is_outdated() {
                self.restart();
            }
            if self.sink.take_due_doubt() {
                self.driver.relist(&mut self.sink);
            }
            let progress = self.step().await;
            let (progress, pause) = self.batch(progress, rested).await;
            if progress == Ok(DriverStep::Waited) {
                continue;
            }
            if let Err(failure) = &progress {
                self.sink.failed(failure);
            }
            self.feed.send_batches().await?;
            if let Some(pause) = pause {
                sleep(pause).await;
            }
            rested = Instant::now();
        }
    }

    async fn until_needed(&self) {
        match self.need {
            Need::Always | Need::IfKnown => {}
            Need::IfSelected => self.feed.namespaces_needed.notified().await,
            Need::IfMapped => {
                if self.feed.reflector.borrow().readiness().is_none() {
                    pending::<()>().await;
                }
            }
        }
    }

    /// Waits up to [`LABEL_USAGE`] for the labels in use, so that Nodes are not listed twice.
    async fn until_label_usage(&self) {
        let known = async {
            while !self.feed.reflector.borrow().knows_label_usage() {
                self.feed.query_changed.notified().await;
            }
        };
        let _late = timeout(LABEL_USAGE, known).await;
    }

    async fn step(&mut self) -> Result<DriverStep, DriverError> {
        let progress = self.driver.step(&mut self.sink).await?;
        if matches!(progress, DriverStep::Received(_)) {
            self.sink.received();
        }
        Ok(progress)
    }

    /// Adds the parts of the stream that follow at once, if the last pause ended less than [`PACE`]
    /// ago. Returns also the next pause: none before the list is complete, none while the stream may
    /// have more, and none if every change is delivered at once.
    async fn batch(
        &mut self,
        progress: Result<DriverStep, DriverError>,
        rested: Instant,
    ) -> (Result<DriverStep, DriverError>, Option<Duration>) {
        let Ok(DriverStep::Received(mut changes)) = progress else {
            return (progress, None);
        };
        if !self.driver.is_listed() || self.delivers_at_once() {
            return (progress, None);
        }
        if rested.elapsed() < PACE {
            let began = Instant::now();
            while let Ok(more) = timeout(GAP, self.step()).await {
                match more {
                    Ok(DriverStep::Received(more)) => changes += more,
                    other => return (other, None),
                }
                if began.elapsed() > PACE {
                    return (Ok(DriverStep::Received(changes)), None);
                }
            }
        }
        (
            Ok(DriverStep::Received(changes)),
            Some(pause_after(changes)),
        )
    }

    fn delivers_at_once(&self) -> bool {
        self.feed.delivery == Delivery::AtOnce && self.sink.id.is_of_one_service()
    }
}

fn pause_after(changes: usize) -> Duration {
    if changes < MANY { PACE } else { PACE_OF_MANY }
}
