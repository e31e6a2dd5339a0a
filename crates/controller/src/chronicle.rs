//! Events on Services: what agents report anew, said once for all Nodes. No I/O, no clock.
//!
//! A hundred Nodes may report the same; it began when the first did, and is over when none does any more. What comes and
//! goes is one Event whose count grows. There is never more than so much a minute, and twice that in the first one; what
//! cannot be said is dropped, for the status of policies and the reports say how things stand anyway.

#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use cluster::topology_agent::FallbackReason;
use jiff::Timestamp;
use serde_json::{Value, json};
use topology_core::model::PolicyName;

pub use words::HINTS_LEFT;
use words::{APPLIED, words};

/// The most Events at once, and in each minute after that.
const PER_MINUTE: i64 = 30;
/// The most that may wait.
const WAITING: usize = 256;
/// What comes again within this time, in milliseconds, is the same Event.
const SERIES: i64 = 10 * 60_000;
/// Between two writes of one Event, in milliseconds.
const COALESCE: i64 = 60_000;
/// What began longer ago, in milliseconds, was said by the controller that led before.
const LATE: i64 = 5 * 60_000;
/// How Events call who writes them.
const REPORTER: &str = "ipvs-topo.io/controller";

/// A Service, as `shop/cart`, and the word for what happens to it.
pub type Key = (String, &'static str);

/// What a Service gets instead of what it asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instead {
    /// Who asked: a policy; none = annotations.
    pub policy: Option<PolicyName>,
    /// What was asked; empty = that cannot be told.
    pub from: String,
    /// What decides instead.
    pub to: String,
    /// Since when, on the first Node; milliseconds since 1970.
    pub since: i64,
    /// On how many Nodes.
    pub nodes: usize,
}

/// Something to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What it is about.
    pub key: Key,
    /// The namespace of the Service, and of the Event.
    pub namespace: String,
    /// The name of the Event.
    pub name: String,
    /// Whether there is such an Event already, of which this changes a part.
    pub is_known: bool,
    /// The Event, or what of it changes.
    pub body: Value,
}

/// What was said, and what has to be.
#[derive(Debug)]
pub struct Chronicle {
    /// How Events call this replica.
    me: String,
    /// What goes on; none before the first look.
    ongoing: Option<BTreeSet<Key>>,
    waiting: BTreeMap<Key, Waiting>,
    said: BTreeMap<Key, Said>,
    /// Thousandths of an Event that may be written, and when they were counted.
    credit: (i64, i64),
}

/// Something that has happened and was not said yet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Waiting {
    times: u64,
    since: i64,
    note: String,
}

/// An Event that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    name: String,
    times: u64,
    at: i64,
}

/// The key of a report's reason; none for a reason of a later version.
pub fn key(service: &str, reason: FallbackReason) -> Option<Key> {
    words(reason).map(|(word, _)| (service.to_owned(), word))
}

impl Chronicle {
    /// Nothing was said yet; `me` is how Events call this replica.
    pub fn new(me: &str) -> Self {
        Self {
            me: me.to_owned(),
            ongoing: None,
            waiting: BTreeMap::new(),
            said: BTreeMap::new(),
            credit: (PER_MINUTE * 1000, 0),
        }
    }

    /// Forgets what goes on and what was said: another replica may have said more since.
    pub fn forget(&mut self) {
        self.ongoing = None;
        self.waiting.clear();
        self.said.clear();
    }

    /// Takes note of everything that Services get instead of what they ask. `complete`: whether the reports name it all,
    /// so that what is not there is over. Returns how much was dropped.
    pub fn observe(&mut self, now: i64, seen: &BTreeMap<Key, Instead>, complete: bool) -> usize {
        let before = self.ongoing.take().unwrap_or_else(|| {
            let late = seen.iter().filter(|(_, one)| one.since < now - LATE);
            late.map(|(key, _)| key.clone()).collect()
        });
        let mut dropped = 0;
        for (key, instead) in seen.iter().filter(|(key, _)| !before.contains(*key)) {
            dropped +=
                usize::from(!self.add(key.clone(), instead.since, words::note(key.1, instead)));
        }
        let mut ongoing: BTreeSet<Key> = seen.keys().cloned().collect();
        let gone = before.into_iter().filter(|key| !seen.contains_key(key));
        if complete {
            let still: BTreeSet<&str> = seen.keys().map(|(service, _)| &**service).collect();
            let over: BTreeSet<String> = gone.map(|(service, _)| service).collect();
            for service in over
                .into_iter()
                .filter(|service| !still.contains(&**service))
            {
                let note = "no node reports anything else than asked any more".to_owned();
                dropped += usize::from(!self.add((service, APPLIED), now, note));
            }
        } else {
            ongoing.extend(gone);
        }
        self.ongoing = Some(ongoing);
        dropped
    }

    /// Takes note of something to tell. Returns whether there is room for it.
    pub fn add(&mut self, key: Key, since: i64, note: String) -> bool {
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.times += 1;
            waiting.note = note;
            return true;
        }
        if self.waiting.len() >= WAITING {
            return false;
        }
        let waiting = Waiting {
            times: 1,
            since,
            note,
        };
        self.waiting.insert(key, waiting);
        true
    }

    /// What may be written now. Each is waited for until [`Chronicle::wrote`] tells how it ended.
    pub fn due(&mut self, now: i64) -> Vec<Entry> {
        self.said.retain(|_, said| now - said.at < SERIES);
        let (credit, then) = self.credit;
        let earned = (now - then).clamp(0, 60_000) * PER_MINUTE / 60;
        let credit = (credit + earned).min(PER_MINUTE * 1000);
        let may = usize::try_from(credit / 1000).unwrap_or_default();
        let ripe = self.waiting.iter().filter(|(key, _)| {
            let said = self.said.get(*key);
            said.is_none_or(|said| now - said.at >= COALESCE)
        });
        let due: Vec<Entry> = ripe
            .take(may)
            .map(|(key, waiting)| self.entry(key, waiting, now))
            .collect();
        let spent = i64::try_from(due.len()).unwrap_or_default() * 1000;
        self.credit = (credit - spent, now);
        due
    }

    /// How a write ended: what is settled is not tried again.
    pub fn wrote(&mut self, now: i64, entry: &Entry, settled: bool) {
        if !settled {
            return;
        }
        let Some(waiting) = self.waiting.remove(&entry.key) else {
            return;
        };
        let before = self.said.get(&entry.key).map_or(0, |said| said.times);
        let said = Said {
            name: entry.name.clone(),
            times: before + waiting.times,
            at: now,
        };
        self.said.insert(entry.key.clone(), said);
    }

    fn entry(&self, key: &Key, waiting: &Waiting, now: i64) -> Entry {
        let (namespace, service) = key.0.split_once('/').unwrap_or(("default", &key.0));
        let said = self.said.get(key);
        let name = said.map_or_else(
            || format!("{service}.{}.{:x}", key.1.to_lowercase(), waiting.since),
            |said| said.name.clone(),
        );
        let body = match said {
            Some(said) => json!({
                "series": { "count": said.times + waiting.times, "lastObservedTime": moment(now) },
            }),
            None => json!({
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": { "name": name, "namespace": namespace },
                "eventTime": moment(now),
                "reportingController": REPORTER,
                "reportingInstance": self.me,
                "action": "Decide",
                "reason": key.1,
                "regarding": { "apiVersion": "v1", "kind": "Service", "namespace": namespace, "name": service },
                "note": waiting.note,
                "type": words::kind(key.1),
            }),
        };
        Entry {
            key: key.clone(),
            namespace: namespace.to_owned(),
            name,
            is_known: said.is_some(),
            body,
        }
    }
}

/// The moment as Events write it.
fn moment(now: i64) -> String {
    let moment = Timestamp::from_millisecond(now).unwrap_or_default();
    moment.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
