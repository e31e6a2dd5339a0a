//! Defines what a driver reports, and who receives it.

use std::future::pending;

use crate::decode::DecodedObject;
use crate::error::ApiError;

/// What a driver received, in the order in which it came.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<O> {
    /// A list begins. An object that is not applied until [`Event::Listed`] does not exist.
    ListBegan,
    /// The object exists with this content.
    Applied(O),
    /// The object was deleted, or is no longer selected. This is its last content.
    Deleted(O),
    /// The list is complete.
    Listed,
    /// The server accepted a request: a page was decoded, or a stream was opened.
    Accepted,
    /// A stream of changes was opened from the last version.
    Watching,
}

/// What one step of a driver did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverStep {
    /// The pause before the next request is over, or was interrupted.
    Waited,
    /// A request was answered.
    Requested,
    /// A part of the stream came with this many events, bookmarks included.
    Received(usize),
    /// The stream ended.
    Ended,
}

/// A request or a stream that failed. The driver sends the next request by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverError {
    /// Why.
    pub error: ApiError,
    /// What follows.
    pub kind: NextAttempt,
    /// How many failures there were in a row.
    pub failures: u32,
}

/// What follows from a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NextAttempt {
    /// The server does not know the resource, so it has no objects. It is listed again every 20 seconds.
    Absent,
    /// The server does not support this form of the request. Another form is sent at once.
    Unsupported,
    /// The driver waits and tries again.
    Retried,
}

/// Receives the events of one driver.
pub trait Sink {
    /// The type into which objects are decoded.
    type Object: DecodedObject;

    /// Takes an event.
    fn apply(&mut self, event: Event<Self::Object>);

    /// Whether the answer to a request that is under way is no longer of use. It is then dropped.
    fn is_outdated(&self) -> bool {
        false
    }

    /// Resolves when the driver must leave its pause or its stream: [`Driver::restart`](super::Driver::restart) or
    /// [`Driver::relist`](super::Driver::relist) follows.
    fn interrupted(&self) -> impl Future<Output = ()> {
        pending()
    }
}
