//! Events on Services, one for each fallback that agents report, for any number of Nodes; and
//! Events on `ClusterTopologyPolicy` objects with a label that no Node has. No I/O, no clock.
//!
//! A fallback begins with the first Node that reports it and ends when no Node reports it. Repeated
//! fallbacks increase the series count of one Event. The rate is limited to `PER_MINUTE`, and twice
//! that in the first minute; namespaces take turns. If too many Events are pending, those of the
//! namespace with the most are dropped, because the status of policies and the reports show the
//! state anyway.

mod fallback;
mod pending_events;
mod reasons;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crd::topology_agent::FallbackReason;
use crd::{GROUP, VERSION};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use topology_core::model::ObjectName;

pub use fallback::ServiceFallback;
use pending_events::{Occurrence, PendingEvents};
use reasons::{APPLIED, of_fallback};
pub use reasons::{HINTS_LEFT, Key, LEVEL_UNKNOWN, LEVELS_KNOWN};

/// Limit of Events at once, and in each further minute.
const PER_MINUTE: i64 = 30;
/// A repetition within this time, in milliseconds, counts in the same Event.
const SERIES_MILLIS: i64 = 10 * 60_000;
/// A fallback that may last, but is not in a report for this time, in milliseconds, is forgotten.
const FORGET_MILLIS: i64 = 10 * 60_000;
/// Time between two writes of one Event, in milliseconds.
const COALESCE_MILLIS: i64 = 60_000;
/// A fallback that is older than this, in milliseconds, was recorded by the former leader.
const RECORDED_BEFORE_MILLIS: i64 = 5 * 60_000;
const REPORTING_CONTROLLER: &str = "ipvs-topo.io/controller";
/// The namespace of Events about objects without a namespace.
const DEFAULT_NAMESPACE: &str = "default";

#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    pub key: Key,
    pub namespace: String,
    pub name: String,
    pub write: EventWrite,
}

#[derive(Debug, Clone, PartialEq)]
pub enum EventWrite {
    Create(Box<Event>),
    /// Replaces the series of an existing Event.
    Series(EventSeries),
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    /// The Event exists.
    Written,
    /// The write is not retried.
    Refused,
    /// The write is retried.
    Failed,
}

#[derive(Debug)]
pub struct EventRecorder {
    instance: String,
    /// The fallbacks that last; `None` before the first observation. A fallback that may last, but is not in a report,
    /// has the time of the first observation without it.
    lasting: Option<BTreeMap<Key, Option<i64>>>,
    pending: PendingEvents,
    recorded: BTreeMap<Key, Recorded>,
    /// Events that may be written, in thousandths, and the time of this count.
    credit: (i64, i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Recorded {
    name: String,
    times: u64,
    at: i64,
}

/// The key of a reported reason; `None` for a reason of a later version.
pub fn key(service: &ObjectName, reason: FallbackReason) -> Option<Key> {
    of_fallback(reason).map(|(reason, _)| (service.clone(), reason))
}

impl EventRecorder {
    /// `instance`: the name of this replica in Events.
    pub fn new(instance: &str) -> Self {
        Self {
            instance: instance.to_owned(),
            lasting: None,
            pending: PendingEvents::default(),
            recorded: BTreeMap::new(),
            credit: (PER_MINUTE * 1000, 0),
        }
    }

    /// Forgets all state, because another replica may have written Events since.
    pub fn forget(&mut self) {
        self.lasting = None;
        self.pending.clear();
        self.recorded.clear();
    }

    /// Records which fallbacks began and ended. `incomplete`: the namespaces of which the reports may lack fallbacks.
    /// There, a fallback that is not in `seen` may last. Returns the number of dropped Events.
    pub fn observe(
        &mut self,
        now: i64,
        seen: &BTreeMap<Key, ServiceFallback>,
        incomplete: &BTreeSet<Arc<str>>,
    ) -> usize {
        let before = self.lasting.take().unwrap_or_else(|| {
            let recorded = now - RECORDED_BEFORE_MILLIS;
            let earlier = seen
                .iter()
                .filter(|(_, fallback)| fallback.since < recorded);
            earlier.map(|(key, _)| (key.clone(), None)).collect()
        });
        let mut dropped = 0;
        for (key, fallback) in seen.iter().filter(|(key, _)| !before.contains_key(*key)) {
            let note = reasons::note(key.1, fallback);
            dropped += usize::from(!self.add(key.clone(), fallback.since, note, None));
        }
        let mut lasting: BTreeMap<Key, Option<i64>> =
            seen.keys().map(|key| (key.clone(), None)).collect();
        let mut ended = BTreeSet::new();
        for (key, missing_since) in before {
            let missing_since = missing_since.unwrap_or(now);
            if seen.contains_key(&key) || now - missing_since >= FORGET_MILLIS {
                continue;
            }
            if incomplete.contains(&key.0.namespace) {
                lasting.insert(key, Some(missing_since));
            } else {
                ended.insert(key.0);
            }
        }
        for (service, _) in lasting.keys() {
            ended.remove(service);
        }
        for service in ended {
            let note = "the policy is applied as requested on all nodes".to_owned();
            dropped += usize::from(!self.add((service, APPLIED), now, note, None));
        }
        self.lasting = Some(lasting);
        dropped
    }

    /// Adds an occurrence. `uid`: of the object, if known; `kubectl describe` selects Events by it.
    /// Returns false if an Event was dropped because too many are pending.
    pub fn add(&mut self, key: Key, since: i64, note: String, uid: Option<String>) -> bool {
        let occurrence = Occurrence {
            times: 1,
            since,
            note,
            uid,
        };
        self.pending.add(key, occurrence)
    }

    /// Returns the Events that are due. Each stays pending until [`EventRecorder::record_result`], and only those with
    /// a result have had a turn and count for the limit.
    pub fn pending(&mut self, now: i64) -> Vec<Pending> {
        self.recorded
            .retain(|_, recorded| now - recorded.at < SERIES_MILLIS);
        let (credit, counted_at) = self.credit;
        let earned = (now - counted_at).clamp(0, 60_000) * PER_MINUTE / 60;
        let credit = (credit + earned).min(PER_MINUTE * 1000);
        self.credit = (credit, now);
        let limit = usize::try_from(credit / 1000).unwrap_or_default();
        let recorded = &self.recorded;
        let keys = self.pending.in_turns(limit, |key| {
            let recorded = recorded.get(key);
            recorded.is_none_or(|recorded| now - recorded.at >= COALESCE_MILLIS)
        });
        let due = keys.iter().filter_map(|key| {
            let occurrence = self.pending.get(key)?;
            Some(self.event(key, occurrence, now))
        });
        due.collect()
    }

    /// Records the result of a write. After [`WriteResult::Refused`] the next occurrence creates an Event, because the
    /// Event may not exist: its creation was refused, or it was deleted.
    pub fn record_result(&mut self, now: i64, event: &Pending, result: WriteResult) {
        self.credit.0 -= 1000;
        self.pending.had_turn(&event.key);
        if result == WriteResult::Failed {
            return;
        }
        let Some(occurrence) = self.pending.remove(&event.key) else {
            return;
        };
        if result == WriteResult::Refused {
            self.recorded.remove(&event.key);
            return;
        }
        let before = self
            .recorded
            .get(&event.key)
            .map_or(0, |recorded| recorded.times);
        let recorded = Recorded {
            name: event.name.clone(),
            times: before + occurrence.times,
            at: now,
        };
        self.recorded.insert(event.key.clone(), recorded);
    }

    fn event(&self, key: &Key, occurrence: &Occurrence, now: i64) -> Pending {
        let (namespace, object, regarding) = regarding(key, occurrence.uid.as_deref());
        let recorded = self.recorded.get(key);
        let name = recorded.map_or_else(
            || {
                let reason = key.1.to_lowercase();
                format!("{object}.{reason}.{:x}", occurrence.since)
            },
            |recorded| recorded.name.clone(),
        );
        let write = match recorded {
            Some(recorded) => EventWrite::Series(EventSeries {
                count: (recorded.times + occurrence.times)
                    .try_into()
                    .unwrap_or(i32::MAX),
                last_observed_time: micro_time(now),
            }),
            None => EventWrite::Create(Box::new(Event {
                metadata: ObjectMeta {
                    name: Some(name.clone()),
                    namespace: Some(namespace.to_owned()),
                    ..ObjectMeta::default()
                },
                event_time: Some(micro_time(now)),
                reporting_controller: Some(REPORTING_CONTROLLER.to_owned()),
                reporting_instance: Some(self.instance.clone()),
                action: Some("Decide".to_owned()),
                reason: Some(key.1.to_owned()),
                regarding: Some(regarding),
                note: Some(occurrence.note.clone()),
                type_: Some(reasons::event_type(key.1).to_owned()),
                ..Event::default()
            })),
        };
        Pending {
            key: key.clone(),
            namespace: namespace.to_string(),
            name,
            write,
        }
    }
}

/// The namespace of an Event, and the name and the reference of its object.
fn regarding<'k>(key: &'k Key, uid: Option<&str>) -> (&'k str, &'k str, ObjectReference) {
    let (namespace, name) = match (&*key.0.namespace, &*key.0.name) {
        ("", name) => (DEFAULT_NAMESPACE, name),
        names => names,
    };
    let (version, kind, object_namespace) = if reasons::is_about_policy(key.1) {
        (format!("{GROUP}/{VERSION}"), "ClusterTopologyPolicy", None)
    } else {
        ("v1".to_owned(), "Service", Some(namespace.to_owned()))
    };
    let object = ObjectReference {
        api_version: Some(version),
        kind: Some(kind.to_owned()),
        namespace: object_namespace,
        name: Some(name.to_owned()),
        uid: uid.map(str::to_owned),
        ..ObjectReference::default()
    };
    (namespace, name, object)
}

fn micro_time(now: i64) -> MicroTime {
    MicroTime(Timestamp::from_millisecond(now).unwrap_or_default())
}
