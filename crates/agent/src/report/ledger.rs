//! Running counts over all Services, changed by what one Service tells.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cluster::schema::{MAX_FALLBACKS, MAX_REPORTED};
use jiff::Timestamp;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use topology_core::model::{Drain, ObjectName, TopologyPolicy};
use topology_core::snapshot::Snapshot;

use super::told::{Instead, Told, Touched};
use super::{ActedBy, Drained, Fallback};

/// What an agent acts by, and what it does instead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Account {
    /// Those of the cluster first, by namespace and name.
    pub policies: Vec<ActedBy>,
    /// By name.
    pub drains: Vec<Drained>,
    /// The latest first.
    pub fallbacks: Vec<Fallback>,
}

/// What every Service tells, and what it amounts to.
#[derive(Debug, Default)]
pub struct Ledger {
    services: FxHashMap<ObjectName, Entry>,
    /// For how many Services each policy decides.
    policies: BTreeMap<Arc<str>, u64>,
    drains: BTreeMap<Arc<str>, Sum>,
    /// The latest first.
    fallbacks: BTreeSet<(Reverse<i64>, ObjectName)>,
}

/// A Service that has something to tell. Few have, so the rest is apart.
#[derive(Debug)]
struct Entry {
    told: Box<Told>,
    /// Since when it gets something else than asked, milliseconds since 1970.
    since: i64,
}

/// What a drain does to all Services.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    endpoints: u64,
    skipped: u64,
}

impl Ledger {
    /// Replaces what a Service tells; `now` in milliseconds since 1970.
    pub fn replace(&mut self, service: &ObjectName, told: Told, now: i64) {
        let old = self.services.get(service);
        if old.map_or_else(|| told.is_nothing(), |old| *old.told == told) {
            return;
        }
        let since = old.filter(|old| old.told.instead == told.instead);
        let since = since.map_or(now, |old| old.since);
        if let Some(old) = self.services.remove(service) {
            self.count(service, &old, false);
        }
        if told.is_nothing() {
            return;
        }
        let told = Box::new(told);
        let entry = Entry { told, since };
        self.count(service, &entry, true);
        self.services.insert(service.clone(), entry);
    }

    /// Adds what a Service tells, or takes it away.
    fn count(&mut self, service: &ObjectName, entry: &Entry, comes: bool) {
        for policy in &entry.told.policies {
            change(&mut self.policies, policy, |services| {
                *services = step(*services, 1, comes);
            });
        }
        for (drain, touched) in &entry.told.drains {
            change(&mut self.drains, drain, |sum| {
                *sum = sum.with(*touched, comes);
            });
        }
        if entry.told.instead.is_some() {
            let key = (Reverse(entry.since), service.clone());
            if comes {
                self.fallbacks.insert(key);
            } else {
                self.fallbacks.remove(&key);
            }
        }
    }

    /// What there is to report of the cluster that is known; `now` in milliseconds since 1970.
    pub fn account(&self, snapshot: &Snapshot, now: i64) -> Account {
        let policies = snapshot.policies().take(MAX_REPORTED);
        let drains = snapshot.drains().filter(|drain| now < drain.expires);
        let fallbacks = self.fallbacks.iter().take(MAX_FALLBACKS);
        Account {
            policies: policies.map(|policy| self.acted_by(policy)).collect(),
            drains: drains
                .take(MAX_REPORTED)
                .map(|drain| self.drained(drain))
                .collect(),
            fallbacks: fallbacks
                .filter_map(|(_, service)| self.fallback(service))
                .collect(),
        }
    }

    /// How many Services get something else than asked, reported or not.
    pub fn fallbacks(&self) -> u64 {
        self.fallbacks.len() as u64
    }

    fn acted_by(&self, policy: &TopologyPolicy) -> ActedBy {
        let title = policy.to_string();
        let (kind, _) = title.split_once(' ').unwrap_or((&title, ""));
        ActedBy {
            kind: kind.to_owned(),
            namespace: policy.namespace.as_ref().map(ToString::to_string),
            name: policy.name.to_string(),
            generation: policy.generation,
            services: self.policies.get(&*title).copied().unwrap_or_default(),
        }
    }

    fn drained(&self, drain: &Drain) -> Drained {
        let sum = self.drains.get(&drain.name).copied().unwrap_or_default();
        Drained {
            name: drain.name.to_string(),
            generation: drain.generation,
            endpoints: sum.endpoints,
            services_skipped: sum.skipped,
        }
    }

    fn fallback(&self, service: &ObjectName) -> Option<Fallback> {
        let entry = self.services.get(service)?;
        let Instead {
            why,
            policy,
            from,
            to,
        } = entry.told.instead.as_ref()?;
        let since = Timestamp::from_second(entry.since.div_euclid(1000)).unwrap_or_default();
        Some(Fallback {
            service: service.to_string(),
            policy: policy.as_ref().map(|title| title.replacen(' ', "/", 1)),
            reason: why.word().to_owned(),
            from: from.map(str::to_owned),
            to: (*to).to_owned(),
            since: since.to_string(),
        })
    }
}

impl Sum {
    fn with(self, touched: Touched, comes: bool) -> Self {
        Self {
            endpoints: step(self.endpoints, touched.endpoints(), comes),
            skipped: step(self.skipped, touched.skips.into(), comes),
        }
    }
}

fn step(count: u64, by: u64, comes: bool) -> u64 {
    if comes {
        count + by
    } else {
        count.saturating_sub(by)
    }
}

/// Changes the count under a key; what has come to nothing is forgotten.
fn change<T: Default + PartialEq>(
    counts: &mut BTreeMap<Arc<str>, T>,
    key: &Arc<str>,
    change: impl FnOnce(&mut T),
) {
    let count = counts.entry(Arc::clone(key)).or_default();
    change(count);
    if *count == T::default() {
        counts.remove(key);
    }
}
