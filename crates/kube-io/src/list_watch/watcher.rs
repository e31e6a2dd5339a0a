//! Lists and watches one resource. The caller takes the changes one by one.

use std::collections::VecDeque;

use super::driver::Driver;
use super::event::{Event, NextAttempt, Sink};
use super::resource::Resource;
use crate::connection::Connection;
use crate::decode::DecodedObject;
use crate::error::ApiError;

#[derive(Debug, Clone, PartialEq)]
pub enum WatcherChange<O> {
    /// A list begins. An object that does not come until [`WatcherChange::Listed`] does not exist.
    Begin,
    /// The object exists with this content.
    Exists(O),
    /// The object was deleted. This is its last content.
    Gone(O),
    /// The list is complete.
    Listed,
    /// A request failed. The watcher tries again.
    Trouble(ApiError),
}

/// Lists and watches one resource. A kind that the server does not know has no objects.
#[derive(Debug)]
pub struct Watcher<O> {
    driver: Driver<O>,
    ready: Queue<O>,
}

/// Changes that the caller did not take yet.
#[derive(Debug)]
struct Queue<O>(VecDeque<WatcherChange<O>>);

impl<O: DecodedObject> Sink for Queue<O> {
    type Object = O;

    fn apply(&mut self, event: Event<O>) {
        self.0.extend(match event {
            Event::ListBegan => Some(WatcherChange::Begin),
            Event::Applied(object) => Some(WatcherChange::Exists(object)),
            Event::Deleted(object) => Some(WatcherChange::Gone(object)),
            Event::Listed => Some(WatcherChange::Listed),
            Event::Accepted | Event::Watching => None,
        });
    }
}

impl<O: DecodedObject> Watcher<O> {
    /// Makes a watcher. It sends nothing before the first [`Watcher::next`].
    pub fn new(connection: Connection, resource: Resource) -> Self {
        Self {
            driver: Driver::new(connection, resource),
            ready: Queue(VecDeque::new()),
        }
    }

    /// Waits for the next change.
    pub async fn next(&mut self) -> WatcherChange<O> {
        loop {
            if let Some(change) = self.ready.0.pop_front() {
                return change;
            }
            let Err(failure) = self.driver.step(&mut self.ready).await else {
                continue;
            };
            if failure.kind == NextAttempt::Absent {
                self.ready
                    .0
                    .extend([WatcherChange::Begin, WatcherChange::Listed]);
            } else if !failure.error.is_initializing(failure.failures) {
                self.ready
                    .0
                    .push_back(WatcherChange::Trouble(failure.error));
            }
        }
    }
}
