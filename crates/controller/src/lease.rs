//! Who leads: one of several replicas, by a Lease, with the rules of Kubernetes' own components. No I/O, no clock.
//!
//! Whoever holds the Lease renews it. Another takes it once it has seen it unchanged for as long as it was promised
//! for, by its own clock from when it saw it first: clocks of different machines are never compared. A holder that
//! could not renew stops leading earlier than that, counted from before its last renewal was sent. So there is at most
//! one leader, whatever is lost or late; a test drives many against one Lease with delays of any length.

#[cfg(test)]
mod tests;

use std::time::Duration;

/// How long a Lease is promised for.
pub const DURATION: Duration = Duration::from_secs(15);
/// After so long without a renewal its holder stops.
pub const DEADLINE: Duration = Duration::from_secs(10);
/// Between two tries.
const RETRY: Duration = Duration::from_secs(2);

/// A Lease as the API server has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty = nobody.
    pub holder: String,
    /// For how long it was promised.
    pub duration: Duration,
    /// How often it changed hands.
    pub transitions: u64,
    /// The version of the object, without which it cannot be written.
    pub version: String,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Nothing before this moment.
    Wait(Duration),
    /// Read the Lease.
    Get,
    /// Make it: there is none.
    Create(Record),
    /// Write it, if it still has this version.
    Replace(Record),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It was read.
    Found(Record),
    /// There is none.
    Missing,
    /// It was written, and has this version now.
    Written(String),
    /// Somebody else wrote first.
    Lost,
    /// No answer of use.
    Failed,
}

/// One replica's part.
#[derive(Debug)]
pub struct Election {
    me: String,
    /// The Lease as it was last seen, and since when it is so.
    seen: Option<(Record, Duration)>,
    /// When the last renewal that arrived was sent.
    renewed: Option<Duration>,
    /// When the request under way was sent.
    sent: Duration,
    not_before: Duration,
    /// Whether the Lease has to be read before it can be written.
    unread: bool,
    missing: bool,
}

impl Election {
    /// A replica with a name that no other has.
    pub fn new(me: &str) -> Self {
        Self {
            me: me.to_owned(),
            seen: None,
            renewed: None,
            sent: Duration::ZERO,
            not_before: Duration::ZERO,
            unread: true,
            missing: false,
        }
    }

    /// Whether this replica leads at `now`, and until when if nothing more is heard.
    pub fn leads_until(&self, now: Duration) -> Option<Duration> {
        let until = self.renewed? + DEADLINE;
        (now < until).then_some(until)
    }

    /// What to do at `now`.
    pub fn ask(&mut self, now: Duration) -> Ask {
        if now < self.not_before {
            return Ask::Wait(self.not_before);
        }
        self.sent = now;
        let record = Record {
            holder: self.me.clone(),
            duration: DURATION,
            ..Record::default()
        };
        if self.missing {
            return Ask::Create(record);
        }
        match &self.seen {
            Some((seen, _)) if !self.unread && seen.holder == self.me => Ask::Replace(seen.clone()),
            Some((seen, since)) if !self.unread && is_free(seen, *since, now) => {
                Ask::Replace(Record {
                    transitions: seen.transitions + 1,
                    version: seen.version.clone(),
                    ..record
                })
            }
            _ => Ask::Get,
        }
    }

    /// Takes note of what came of what was asked.
    pub fn hear(&mut self, now: Duration, heard: Heard) {
        self.not_before = now + RETRY;
        match heard {
            Heard::Found(record) => self.found(now, record),
            Heard::Missing => {
                (self.missing, self.seen) = (true, None);
                self.not_before = now;
            }
            Heard::Written(version) => self.written(now, version),
            Heard::Lost => {
                (self.missing, self.unread, self.renewed) = (false, true, None);
            }
            Heard::Failed => self.unread = true,
        }
    }

    fn found(&mut self, now: Duration, record: Record) {
        self.missing = false;
        let is_mine = record.holder == self.me;
        let since = match &self.seen {
            Some((seen, since)) if seen.version == record.version => *since,
            _ => now,
        };
        let writes = is_mine || is_free(&record, since, now);
        self.seen = Some((record, since));
        // What is read anew is written at once, so that it is not old by then.
        self.unread = !writes;
        if writes {
            self.not_before = now;
        } else {
            self.renewed = None;
        }
    }

    fn written(&mut self, now: Duration, version: String) {
        // What was written over somebody else's name is one more.
        let transitions = self.seen.as_ref().map_or(0, |(seen, _)| {
            seen.transitions + u64::from(seen.holder != self.me)
        });
        let record = Record {
            holder: self.me.clone(),
            duration: DURATION,
            transitions,
            version,
        };
        self.seen = Some((record, now));
        (self.missing, self.unread, self.renewed) = (false, false, Some(self.sent));
    }

    /// Gives the Lease up, so that another need not wait: what to write, if it is held. Leads no more from now on.
    pub fn release(&mut self) -> Option<Record> {
        self.renewed.take()?;
        let (seen, _) = self.seen.take()?;
        self.unread = true;
        (seen.holder == self.me).then_some(Record {
            holder: String::new(),
            duration: Duration::from_secs(1),
            ..seen
        })
    }
}

/// Whether anybody may take it: nobody holds it, or it has not changed for as long as it was promised for.
fn is_free(record: &Record, since: Duration, now: Duration) -> bool {
    record.holder.is_empty() || now.saturating_sub(since) > record.duration.max(DEADLINE)
}
