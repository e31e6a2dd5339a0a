//! Leader election with a Lease, by the rules of client-go's `leaderelection`. No I/O, no clock.
//!
//! The holder renews the Lease. Another replica takes the Lease after it was unchanged for its
//! duration. Each replica measures this time with its own clock, from the moment when it first read
//! this version: clocks of different machines are never compared. A holder that cannot renew stops
//! leading earlier, counted from the moment before it sent its last renewal. So there is at most
//! one leader. A property test runs many replicas against one Lease with delays of any length.

#[cfg(test)]
mod tests;

use std::time::Duration;

pub const DURATION: Duration = Duration::from_secs(15);
/// The holder stops leading after this time without a renewal.
pub const DEADLINE: Duration = Duration::from_secs(10);
/// Time between two requests.
const RETRY: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The holder identity; empty when the Lease is free.
    pub holder: String,
    pub duration: Duration,
    /// The number of changes of the holder.
    pub transitions: i32,
    /// The resourceVersion, which a write must name.
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRequest {
    /// Send nothing before this time.
    Wait(Duration),
    Get,
    Create(Record),
    /// Update the Lease if it still has this version.
    Replace(Record),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    Found(Record),
    Missing,
    /// The Lease was written and has this version now.
    Written(String),
    /// Another replica wrote first.
    Lost,
    /// Any other failure.
    Failed,
}

#[derive(Debug)]
pub struct Election {
    me: String,
    /// The Lease as last read, and when this version was first read.
    seen: Option<(Record, Duration)>,
    /// When the last successful renewal was sent.
    renewed: Option<Duration>,
    /// When the current request was sent.
    sent: Duration,
    not_before: Duration,
    /// Whether the Lease has to be read before it can be written.
    unread: bool,
    missing: bool,
}

impl Election {
    /// `me`: the holder identity, which must be unique.
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

    /// Time until which this replica leads without another response; `None` if it does not lead.
    pub fn leads_until(&self, now: Duration) -> Option<Duration> {
        let until = self.renewed? + DEADLINE;
        (now < until).then_some(until)
    }

    pub fn next_request(&mut self, now: Duration) -> LeaseRequest {
        if now < self.not_before {
            return LeaseRequest::Wait(self.not_before);
        }
        self.sent = now;
        let record = Record {
            holder: self.me.clone(),
            duration: DURATION,
            ..Record::default()
        };
        if self.missing {
            return LeaseRequest::Create(record);
        }
        match &self.seen {
            Some((seen, _)) if !self.unread && seen.holder == self.me => {
                LeaseRequest::Replace(seen.clone())
            }
            Some((seen, since)) if !self.unread && is_free(seen, *since, now) => {
                LeaseRequest::Replace(Record {
                    transitions: seen.transitions.saturating_add(1),
                    version: seen.version.clone(),
                    ..record
                })
            }
            _ => LeaseRequest::Get,
        }
    }

    pub fn handle(&mut self, now: Duration, response: Response) {
        self.not_before = now + RETRY;
        match response {
            Response::Found(record) => self.found(now, record),
            Response::Missing => {
                (self.missing, self.seen) = (true, None);
                self.not_before = now;
            }
            Response::Written(version) => self.written(now, version),
            Response::Lost => {
                (self.missing, self.unread, self.renewed) = (false, true, None);
            }
            Response::Failed => self.unread = true,
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
        // Writes at once, before the Lease changes again.
        self.unread = !writes;
        if writes {
            self.not_before = now;
        } else {
            self.renewed = None;
        }
    }

    fn written(&mut self, now: Duration, version: String) {
        // A change of the holder is a transition.
        let transitions = self.seen.as_ref().map_or(0, |(seen, _)| {
            seen.transitions
                .saturating_add(i32::from(seen.holder != self.me))
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

    /// Stops leading. If the Lease is held, returns the record that frees it for another replica.
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

/// Whether another replica may take the Lease: it has no holder, or it has expired.
fn is_free(record: &Record, since: Duration, now: Duration) -> bool {
    record.holder.is_empty() || now.saturating_sub(since) > record.duration.max(DEADLINE)
}
