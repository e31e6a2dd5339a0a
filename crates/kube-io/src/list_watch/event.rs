//! Defines what a driver reports, and the trait that receives it.

use std::future::pending;

use crate::decode::DecodedObject;
use crate::error::ApiError;

/// What a driver received, in the order of arrival.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<O> {
    /// A list begins. An object that does not come until [`Event::Listed`] does not exist.
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

/// The result of one step of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverStep {
    /// The pause before the next request is over, or the sink interrupted it.
    Waited,
    /// The server answered a request.
    Requested,
    /// Part of the stream arrived, with this many events, bookmarks included.
    Received(usize),
    Ended,
}

/// A request or a stream that failed. The driver itself sends the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverError {
    pub error: ApiError,
    pub kind: NextAttempt,
    /// Failures in a row.
    pub failures: u32,
}

/// What the driver does after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NextAttempt {
    /// The server does not know the resource, so it has no objects. It is listed again every 20
    /// seconds.
    Absent,
    /// The server does not support this form of the request. Another form is sent at once.
    Unsupported,
    /// The driver waits and tries again.
    Retried,
}

pub trait Sink {
    type Object: DecodedObject;

    fn apply(&mut self, event: Event<Self::Object>);

    /// Whether the answer to the running request is no longer of use. The driver drops it.
    fn is_outdated(&self) -> bool {
        false
    }

    /// Resolves when the driver must leave its pause or its stream, because
    /// [`Driver::restart`](super::Driver::restart) or [`Driver::relist`](super::Driver::relist)
    /// follows.
    fn interrupted(&self) -> impl Future<Output = ()> {
        pending()
    }
}
