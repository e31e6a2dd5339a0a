//! Decides the next request for one collection from what was received: no I/O, no clock, no chance of its own.
//!
//! ```text
//!            422 / 400                 last page
//!  Stream ───────────────> Page ───────────────────┐
//!    │  ^                   │ 410: from the start  v
//!    │  └───────────────────┴──── 410 ────────── Follow <── the stream ended or broke: from the last version
//!    └── bookmark "everything was named" ──────────^
//! ```
//!
//! Whatever a server does, requests stay rare: nothing is asked again at once but what has just changed its form,
//! and every failure or short stream makes the next wait longer, up to [`Backoff::LONGEST`].
#[cfg(test)]
mod tests;

use std::time::Duration;

use super::backoff::Backoff;
use crate::error::Fault;

/// A stream that lives so long resets the pauses.
const USEFUL: Duration = Duration::from_secs(10);

/// The pause before a kind that the server does not know is listed again.
const ABSENT: Duration = Duration::from_secs(20);

/// After so many failed streaming lists in a row, pages are requested.
const STREAM_TRIES: u32 = 3;

/// The next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListWatchRequest {
    /// Nothing before this moment of the caller's clock.
    Wait(Duration),
    /// Open a stream that begins with everything that exists. A new list begins.
    StreamList,
    /// Get a page; without a continue token a new list begins.
    Page {
        /// What the page before gave.
        continue_token: Option<Box<str>>,
        /// Whether everything is requested in one page.
        whole: bool,
    },
    /// Open a stream of what has changed since this resourceVersion.
    Watch(Box<str>),
}

/// What happened to a request or a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// A page; its objects have been taken.
    Page {
        /// The resourceVersion of the collection.
        resource_version: Box<str>,
        /// What to get the next page with, unless it is the last.
        continue_token: Option<Box<str>>,
    },
    /// A stream has begun.
    Opened,
    /// The stream has come to this resourceVersion.
    Version {
        /// The resourceVersion.
        resource_version: Box<str>,
        /// Whether everything that exists was named by now.
        listed: bool,
    },
    /// The stream ended without an error.
    Ended,
    /// The stream was silent for too long and was closed.
    Silent,
    /// The caller wants another list now.
    Relist,
    /// The request or the stream failed.
    Failed(Fault, Option<Duration>),
}

impl Input {
    /// The page that was asked for with the continue token `asked`. A page that names that token again would repeat forever, so
    /// it is an error.
    pub(crate) fn page(
        resource_version: Box<str>,
        continue_token: Option<Box<str>>,
        asked: Option<&str>,
    ) -> Result<Self, &'static str> {
        if continue_token.is_some() && continue_token.as_deref() == asked {
            Err("a page that names itself as the next")
        } else {
            Ok(Self::Page {
                resource_version,
                continue_token,
            })
        }
    }
}

/// What an input means for the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListPhase {
    /// Nothing.
    Nothing,
    /// The list is complete.
    Listed,
    /// The server does not know the kind, so there are no objects.
    Absent,
}

/// The state of one resource.
#[derive(Debug)]
pub(crate) struct ListWatch {
    next: NextRequest,
    /// When the present stream was opened.
    opened: Option<Duration>,
    not_before: Duration,
    backoff: Backoff,
    /// Whether lists are asked for as streams.
    streams: bool,
    /// Lists by streaming that failed in a row.
    stalled: u32,
    /// Lists by pages that expired in the middle, in a row.
    expired: u32,
    /// How often in a row the kind of object was not known.
    missing: u32,
    /// Whether the server may not know the kind of object.
    optional: bool,
    was_listed: bool,
}

/// What the next request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NextRequest {
    StreamList,
    Page(Option<Box<str>>),
    Watch(Box<str>),
}

impl ListWatch {
    /// Begins with a list. `optional`: whether the server may not know the kind of object.
    pub(crate) fn new(optional: bool) -> Self {
        Self {
            next: NextRequest::StreamList,
            opened: None,
            not_before: Duration::ZERO,
            backoff: Backoff::default(),
            streams: true,
            stalled: 0,
            expired: 0,
            missing: 0,
            optional,
            was_listed: false,
        }
    }

    /// The request that is due at `now`.
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

    /// Applies what happened. `chance` is a new random number for each call, from 0 to 1.
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

    /// Whether everything that exists was named: what comes now are changes.
    pub(crate) fn is_listed(&self) -> bool {
        matches!(self.next, NextRequest::Watch(_))
    }

    /// How many failures there were in a row.
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

    /// A stream ended, without a complaint.
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
                // The server cannot stream lists, which is nothing to wait for.
                self.streams = false;
                self.next = NextRequest::Page(None);
                return ListPhase::Nothing;
            }
            // A server that refuses the client, or cannot be reached, would do the same with pages.
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
                Fault::Gone | Fault::Garbled | Fault::NotFound | Fault::OtherVersion,
            ) => self.relist(),
            (NextRequest::Page(_) | NextRequest::Watch(_), _) => {}
        }
        let wait = self.backoff.fail(chance);
        self.not_before = now + wait.max(Backoff::asked(retry_after, chance));
        ListPhase::Nothing
    }

    /// The server does not know the kind of object. Where objects of it were known, one answer may be a mistake of a
    /// server that has just started.
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
        // The server may have been replaced by one that can stream.
        self.streams = true;
        self.stalled = 0;
        self.next = NextRequest::StreamList;
    }

    fn stream_stalled(&mut self) {
        self.stalled += 1;
        if self.stalled >= STREAM_TRIES {
            self.streams = false;
            self.stalled = 0;
            self.next = NextRequest::Page(None);
        }
    }

    /// Closes the stream, if there is one. Returns whether it was of use.
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
