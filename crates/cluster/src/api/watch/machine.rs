//! What to ask next about one collection, given what was heard: no I/O, no clock, no chance of its own.
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
//! and every failure or short stream makes the next wait longer, up to [`Pace::LONGEST`].

mod pace;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::api::error::Fault;

pub(crate) use pace::Pace;

/// A stream that lives for so long has been of use: what comes after it begins with short waits.
const USEFUL: Duration = Duration::from_secs(10);

/// Between two looks for a kind of object that the server does not know.
const ABSENT: Duration = Duration::from_secs(20);

/// So many lists by streaming may fail in a row before pages are tried.
const STREAM_TRIES: u32 = 3;

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Nothing before this moment of the caller's clock.
    Wait(Duration),
    /// Open a stream that begins with everything that exists. A new list begins.
    Stream,
    /// Get a page; without a token a new list begins.
    Page {
        /// What the page before gave.
        token: Option<Box<str>>,
        /// Whether everything shall come in one page.
        whole: bool,
    },
    /// Open a stream of what has changed since this version.
    Follow(Box<str>),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A page; its objects have been taken.
    Page {
        /// The version of the collection.
        version: Box<str>,
        /// What to get the next page with, unless it is the last.
        token: Option<Box<str>>,
    },
    /// A stream has begun.
    Opened,
    /// The stream has come to this version.
    Version {
        /// The version.
        version: Box<str>,
        /// Whether everything that exists was named by now.
        listed: bool,
    },
    /// The stream has ended as streams do.
    Ended,
    /// The stream has said nothing for too long, and was left.
    Silent,
    /// The last list is not to be believed: another is wanted now.
    Doubted,
    /// The request, or the stream, has come to nothing.
    Failed(Fault, Option<Duration>),
}

impl Heard {
    /// The page that was asked for with the token `asked`. What names that token again would be asked for for ever, so
    /// it is an error.
    pub(crate) fn page(
        version: Box<str>,
        token: Option<Box<str>>,
        asked: Option<&str>,
    ) -> Result<Self, &'static str> {
        if token.is_some() && token.as_deref() == asked {
            Err("a page that names itself as the next")
        } else {
            Ok(Self::Page { version, token })
        }
    }
}

/// What it means for the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing.
    Nothing,
    /// Everything that exists was named.
    Listed,
    /// There is no such kind of object, and so no object.
    Absent,
}

/// The state of one collection.
#[derive(Debug)]
pub(crate) struct Machine {
    next: Next,
    /// When the present stream was opened.
    opened: Option<Duration>,
    not_before: Duration,
    pace: Pace,
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
enum Next {
    Stream,
    Page(Option<Box<str>>),
    Follow(Box<str>),
}

impl Machine {
    /// Begins with a list. `optional`: whether the server may not know the kind of object.
    pub(crate) fn new(optional: bool) -> Self {
        Self {
            next: Next::Stream,
            opened: None,
            not_before: Duration::ZERO,
            pace: Pace::default(),
            streams: true,
            stalled: 0,
            expired: 0,
            missing: 0,
            optional,
            was_listed: false,
        }
    }

    /// What to do at `now`.
    pub(crate) fn ask(&self, now: Duration) -> Ask {
        if now < self.not_before {
            return Ask::Wait(self.not_before);
        }
        match &self.next {
            Next::Stream => Ask::Stream,
            Next::Page(token) => Ask::Page {
                token: token.clone(),
                whole: self.expired > 1,
            },
            Next::Follow(version) => Ask::Follow(version.clone()),
        }
    }

    /// Takes what came of it. `chance` is drawn anew each time, from 0 to 1.
    pub(crate) fn hear(&mut self, now: Duration, heard: Heard, chance: f64) -> Turn {
        match heard {
            Heard::Page { version, token } => return self.page(version, token),
            Heard::Opened => {
                self.opened = Some(now);
                self.missing = 0;
            }
            Heard::Version { version, listed } => return self.version(version, listed),
            Heard::Doubted => {
                self.close(now);
                self.list_anew();
            }
            Heard::Ended | Heard::Silent => self.ended(now, chance),
            Heard::Failed(fault, retry_after) => {
                return self.failed(now, fault, retry_after, chance);
            }
        }
        Turn::Nothing
    }

    /// Whether everything that exists was named: what comes now are changes.
    pub(crate) fn is_listed(&self) -> bool {
        matches!(self.next, Next::Follow(_))
    }

    /// How often in a row nothing came of it.
    pub(crate) fn failures(&self) -> u32 {
        self.pace.failures()
    }

    fn page(&mut self, version: Box<str>, token: Option<Box<str>>) -> Turn {
        self.missing = 0;
        if token.is_some() {
            self.next = Next::Page(token);
            return Turn::Nothing;
        }
        self.expired = 0;
        self.listed(version)
    }

    fn version(&mut self, version: Box<str>, listed: bool) -> Turn {
        match &mut self.next {
            Next::Follow(known) => {
                *known = version;
                Turn::Nothing
            }
            Next::Stream if listed => self.listed(version),
            Next::Stream | Next::Page(_) => Turn::Nothing,
        }
    }

    fn listed(&mut self, version: Box<str>) -> Turn {
        self.stalled = 0;
        self.was_listed = true;
        self.next = Next::Follow(version);
        Turn::Listed
    }

    /// A stream ended, without a complaint.
    fn ended(&mut self, now: Duration, chance: f64) {
        if self.next == Next::Stream {
            self.stream_stalled();
        }
        let useful = self.close(now);
        let wait = if useful {
            Pace::spread(chance)
        } else {
            self.pace.fail(chance)
        };
        self.not_before = now + wait;
    }

    fn failed(
        &mut self,
        now: Duration,
        fault: Fault,
        retry_after: Option<Duration>,
        chance: f64,
    ) -> Turn {
        let opened = self.opened.is_some();
        self.close(now);
        if fault == Fault::NotFound && self.optional {
            return self.absent(now, chance);
        }
        match (&self.next, fault) {
            (Next::Stream, Fault::Invalid) if !opened => {
                // The server cannot stream lists, which is nothing to wait for.
                self.streams = false;
                self.next = Next::Page(None);
                return Turn::Nothing;
            }
            // A server that lets nobody in, or cannot be reached, would do the same with pages.
            (Next::Stream, Fault::Unauthorized | Fault::Forbidden | Fault::TooManyRequests) => {}
            (Next::Stream, Fault::Unreachable) if !opened => {}
            (Next::Stream, _) => self.stream_stalled(),
            (Next::Page(Some(_)), Fault::Gone) => {
                self.expired += 1;
                self.next = Next::Page(None);
            }
            (Next::Page(Some(_)), _) if !fault.is_passing() => self.next = Next::Page(None),
            (
                Next::Follow(_),
                Fault::Gone | Fault::Garbled | Fault::NotFound | Fault::OtherVersion,
            ) => self.list_anew(),
            (Next::Page(_) | Next::Follow(_), _) => {}
        }
        let wait = self.pace.fail(chance);
        self.not_before = now + wait.max(Pace::asked(retry_after, chance));
        Turn::Nothing
    }

    /// The server does not know the kind of object. Where objects of it were known, one answer may be a mistake of a
    /// server that has just started.
    fn absent(&mut self, now: Duration, chance: f64) -> Turn {
        self.missing += 1;
        self.list_anew();
        if self.was_listed && self.missing < 2 {
            self.not_before = now + self.pace.fail(chance);
            return Turn::Nothing;
        }
        self.was_listed = false;
        self.not_before = now + ABSENT.mul_f64(0.75 + chance / 2.0);
        Turn::Absent
    }

    fn list_anew(&mut self) {
        // The server may have been replaced by one that can stream.
        self.streams = true;
        self.stalled = 0;
        self.next = Next::Stream;
    }

    fn stream_stalled(&mut self) {
        self.stalled += 1;
        if self.stalled >= STREAM_TRIES {
            self.streams = false;
            self.stalled = 0;
            self.next = Next::Page(None);
        }
    }

    /// Closes the stream, if there is one. Returns whether it was of use.
    fn close(&mut self, now: Duration) -> bool {
        let useful = self
            .opened
            .take()
            .is_some_and(|opened| now.saturating_sub(opened) >= USEFUL);
        if useful {
            self.pace.succeed();
        }
        useful
    }
}
