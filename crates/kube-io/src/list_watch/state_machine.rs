//! Decides the next request for one collection. Has no I/O, no clock and no random numbers.
//!
//! ```text
//!            422 / 400                 last page
//!  Stream ───────────────> Page ───────────────────┐
//!    │  ^                   │ 410: from the start  v
//!    │  └───────────────────┴──── 410 ────────── Watch <── stream ended or broke: last version
//!    └── bookmark: the list is complete ───────────^
//! ```
//!
//! Requests stay rare even if the server fails. Only a change from streams to pages is requested at
//! once. Each failure and each short stream makes the next wait longer, up to [`Backoff::LONGEST`].
#[cfg(test)]
mod tests;

use std::time::Duration;

use super::backoff::Backoff;
use crate::error::Fault;

/// A stream that lives this long resets the pauses.
const USEFUL: Duration = Duration::from_secs(10);

/// The average pause before another list of a kind that the server does not know.
const ABSENT: Duration = Duration::from_secs(20);

/// After this number of failed streaming lists in a row, pages are requested.
const STREAM_TRIES: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListWatchRequest {
    /// Send nothing before this moment of the caller's clock.
    Wait(Duration),
    /// Open a stream that starts with all objects. A new list begins.
    StreamList,
    /// Request a page. Without a continue token a new list begins.
    Page {
        continue_token: Option<Box<str>>,
        /// Whether everything is requested in one page.
        whole: bool,
    },
    /// Open a stream of the changes since this resourceVersion.
    Watch(Box<str>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// A page was decoded.
    Page {
        /// The resourceVersion of the collection.
        resource_version: Box<str>,
        /// For the next page; none on the last page.
        continue_token: Option<Box<str>>,
    },
    /// A stream was opened.
    Opened,
    /// An event moved the stream to this resourceVersion.
    Version {
        resource_version: Box<str>,
        /// Whether this bookmark completes the list.
        listed: bool,
    },
    /// The stream ended without an error.
    Ended,
    /// The stream was silent for too long, and the driver closed it.
    Silent,
    /// The caller requires another list now.
    Relist,
    /// The request or the stream failed.
    Failed(Fault, Option<Duration>),
}

impl Input {
    /// Makes the input for the page that was requested with the continue token `asked`. If the
    /// server returns the same token again, the list would repeat forever, so this is an error.
    pub(crate) fn page(
        resource_version: Box<str>,
        continue_token: Option<Box<str>>,
        asked: Option<&str>,
    ) -> Result<Self, &'static str> {
        if continue_token.is_some() && continue_token.as_deref() == asked {
            Err("the server returned the same continue token again")
        } else {
            Ok(Self::Page {
                resource_version,
                continue_token,
            })
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListPhase {
    Nothing,
    /// The list is complete.
    Listed,
    /// The server does not know the kind, so there are no objects.
    Absent,
}

#[derive(Debug)]
pub(crate) struct ListWatch {
    next: NextRequest,
    /// When the open stream was opened.
    opened: Option<Duration>,
    not_before: Duration,
    backoff: Backoff,
    /// Failed streaming lists in a row.
    stalled: u32,
    /// Paged lists in a row whose continue token expired.
    expired: u32,
    /// Answers in a row that the server does not know the kind.
    missing: u32,
    /// Whether the server may not know the kind.
    optional: bool,
    was_listed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NextRequest {
    StreamList,
    Page(Option<Box<str>>),
    Watch(Box<str>),
}

impl ListWatch {
    /// Starts with a list. `optional`: whether the server may not know the kind.
    pub(crate) fn new(optional: bool) -> Self {
        Self {
            next: NextRequest::StreamList,
            opened: None,
            not_before: Duration::ZERO,
            backoff: Backoff::default(),
            stalled: 0,
            expired: 0,
            missing: 0,
            optional,
            was_listed: false,
        }
    }

    /// Returns the request that is due at `now`.
    pub(crate) fn next_request(&self, now: Duration) -> ListWatchRequest {
        if now < self.not_before {
            return ListWatchRequest::Wait(self.not_before);
        }
        match &self.next {
            NextRequest::StreamList => ListWatchRequest::StreamList,
            NextRequest::Page(continue_token) => ListWatchRequest::Page {
                continue_token: continue_token.clone(),
                whole: self.expired > 1,
            },
            NextRequest::Watch(resource_version) => {
                ListWatchRequest::Watch(resource_version.clone())
            }
        }
    }

    /// Applies an input. `chance` is a new random number for each call, from 0 to 1.
    pub(crate) fn apply(&mut self, now: Duration, input: Input, chance: f64) -> ListPhase {
        match input {
            Input::Page {
                resource_version,
                continue_token,
            } => return self.page(resource_version, continue_token),
            Input::Opened => {
                self.opened = Some(now);
                self.missing = 0;
            }
            Input::Version {
                resource_version,
                listed,
            } => return self.resource_version(resource_version, listed),
            Input::Relist => {
                self.close(now);
                self.relist();
            }
            Input::Ended | Input::Silent => self.ended(now, chance),
            Input::Failed(fault, retry_after) => {
                return self.failed(now, fault, retry_after, chance);
            }
        }
        ListPhase::Nothing
    }

    pub(crate) fn is_listed(&self) -> bool {
        matches!(self.next, NextRequest::Watch(_))
    }

    /// Failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.backoff.failures()
    }

    fn page(&mut self, resource_version: Box<str>, continue_token: Option<Box<str>>) -> ListPhase {
        self.missing = 0;
        if continue_token.is_some() {
            self.next = NextRequest::Page(continue_token);
            return ListPhase::Nothing;
        }
        self.expired = 0;
        self.listed(resource_version)
    }

    fn resource_version(&mut self, resource_version: Box<str>, listed: bool) -> ListPhase {
        match &mut self.next {
            NextRequest::Watch(known) => {
                *known = resource_version;
                ListPhase::Nothing
            }
            NextRequest::StreamList if listed => self.listed(resource_version),
            NextRequest::StreamList | NextRequest::Page(_) => ListPhase::Nothing,
        }
    }

    fn listed(&mut self, resource_version: Box<str>) -> ListPhase {
        self.stalled = 0;
        self.was_listed = true;
        self.next = NextRequest::Watch(resource_version);
        ListPhase::Listed
    }

    /// Handles a stream that ended without an error.
    fn ended(&mut self, now: Duration, chance: f64) {
        if self.next == NextRequest::StreamList {
            self.stream_stalled();
        }
        let useful = self.close(now);
        let wait = if useful {
            Backoff::spread(chance)
        } else {
            self.backoff.fail(chance)
        };
        self.not_before = now + wait;
    }

    fn failed(
        &mut self,
        now: Duration,
        fault: Fault,
        retry_after: Option<Duration>,
        chance: f64,
    ) -> ListPhase {
        let opened = self.opened.is_some();
        self.close(now);
        if fault == Fault::NotFound && self.optional {
            return self.absent(now, chance);
        }
        match (&self.next, fault) {
            (NextRequest::StreamList, Fault::Invalid) if !opened => {
                // The server cannot stream lists. A wait would not change that.
                self.next = NextRequest::Page(None);
                return ListPhase::Nothing;
            }
            // Pages would fail for the same reason.
            (
                NextRequest::StreamList,
                Fault::Unauthorized | Fault::Forbidden | Fault::TooManyRequests,
            ) => {}
            (NextRequest::StreamList, Fault::Unreachable) if !opened => {}
            (NextRequest::StreamList, _) => self.stream_stalled(),
            (NextRequest::Page(Some(_)), Fault::Gone) => {
                self.expired += 1;
                self.next = NextRequest::Page(None);
            }
            (NextRequest::Page(Some(_)), _) if !fault.is_passing() => {
                self.next = NextRequest::Page(None);
            }
            (
                NextRequest::Watch(_),
                Fault::Gone | Fault::DecodeError | Fault::NotFound | Fault::OtherVersion,
            ) => self.relist(),
            (NextRequest::Page(_) | NextRequest::Watch(_), _) => {}
        }
        let wait = self.backoff.fail(chance);
        self.not_before = now + wait.max(Backoff::asked(retry_after, chance));
        ListPhase::Nothing
    }

    /// Handles a server that does not know the kind. If it knew the kind before, a second answer
    /// must confirm it: a server that has just started may give a wrong one.
    fn absent(&mut self, now: Duration, chance: f64) -> ListPhase {
        self.missing += 1;
        self.relist();
        if self.was_listed && self.missing < 2 {
            self.not_before = now + self.backoff.fail(chance);
            return ListPhase::Nothing;
        }
        self.was_listed = false;
        self.not_before = now + ABSENT.mul_f64(0.75 + chance / 2.0);
        ListPhase::Absent
    }

    fn relist(&mut self) {
        self.stalled = 0;
        // The new server may support streaming lists.
        self.next = NextRequest::StreamList;
    }

    fn stream_stalled(&mut self) {
        self.stalled += 1;
        if self.stalled >= STREAM_TRIES {
            self.stalled = 0;
            self.next = NextRequest::Page(None);
        }
    }

    /// Closes the stream, if there is one. Returns whether it lived for [`USEFUL`].
    fn close(&mut self, now: Duration) -> bool {
        let useful = self
            .opened
            .take()
            .is_some_and(|opened| now.saturating_sub(opened) >= USEFUL);
        if useful {
            self.backoff.succeed();
        }
        useful
    }
}
