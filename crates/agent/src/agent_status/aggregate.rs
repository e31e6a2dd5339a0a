//! Totals over all Services, updated with the contribution of each Service.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crd::topology_agent::rate::report_bytes;
use crd::topology_agent::{DrainInUse, Fallback, PolicyInUse};
use crd::{MAX_FALLBACKS, MAX_REPORTED};
use jiff::Timestamp;
use rustc_hash::FxHashMap;
use topology_core::model::{Drain, ObjectName, PolicyName, TopologyPolicy};
use topology_core::snapshot::Snapshot;

use super::contribution::{Contribution, DrainEffect, Instead};
use super::share::{Room, by_turns, first, number_of};

/// The deciding policies, drains and fallbacks of a node, as far as a report has space.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecisionSummary {
    /// Cluster-scoped policies first, by namespace and name.
    pub policies: Vec<PolicyInUse>,
    /// By name.
    pub drains: Vec<DrainInUse>,
    /// The latest first.
    pub fallbacks: Vec<Fallback>,
    /// Number of policies that decide a Service, including those without space.
    pub deciding: u64,
    /// Nodes of the cluster: the number of reporting agents.
    pub nodes: u64,
}

/// The contributions of all Services, and their totals.
#[derive(Debug, Default)]
pub struct Aggregate {
    services: FxHashMap<ObjectName, TimedContribution>,
    /// Number of Services that each policy decides.
    policies: BTreeMap<PolicyName, u64>,
    drains: BTreeMap<Arc<str>, DrainTotals>,
    /// The latest first.
    fallbacks: BTreeSet<(Reverse<i64>, ObjectName)>,
}

/// A Service with something to report. Few Services have, so this is a separate map.
#[derive(Debug)]
struct TimedContribution {
    contribution: Box<Contribution>,
    /// Since when it gets something else than requested, in milliseconds since 1970.
    since: i64,
}

/// The effect of a drain on all Services.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DrainTotals {
    endpoints: u64,
    skipped: u64,
}

impl Aggregate {
    /// Replaces the contribution of a Service; `now` is in milliseconds since 1970.
    pub fn replace(&mut self, service: &ObjectName, contribution: Contribution, now: i64) {
        let old = self.services.get(service);
        if old.map_or_else(
            || contribution.is_nothing(),
            |old| *old.contribution == contribution,
        ) {
            return;
        }
        let since = old.filter(|old| old.contribution.instead == contribution.instead);
        let since = since.map_or(now, |old| old.since);
        if let Some(old) = self.services.remove(service) {
            self.count(service, &old, false);
        }
        if contribution.is_nothing() {
            return;
        }
        let contribution = Box::new(contribution);
        let entry = TimedContribution {
            contribution,
            since,
        };
        self.count(service, &entry, true);
        self.services.insert(service.clone(), entry);
    }

    /// Adds the contribution of a Service, or removes it.
    fn count(&mut self, service: &ObjectName, entry: &TimedContribution, comes: bool) {
        for policy in &entry.contribution.policies {
            change(&mut self.policies, policy, |services| {
                *services = step(*services, 1, comes);
            });
        }
        for (drain, touched) in &entry.contribution.drains {
            change(&mut self.drains, drain, |sum| {
                *sum = sum.with(*touched, comes);
            });
        }
        if entry.contribution.instead.is_some() {
            let key = (Reverse(entry.since), service.clone());
            if comes {
                self.fallbacks.insert(key);
            } else {
                self.fallbacks.remove(&key);
            }
        }
    }

    /// The report of `node`; `now` is in milliseconds since 1970.
    ///
    /// Policies get half of the bytes, drains a quarter, fallbacks the rest.
    pub fn summarize(&self, snapshot: &Snapshot, now: i64, node: &str) -> DecisionSummary {
        let nodes = snapshot.nodes().count() as u64;
        let (bytes, turn) = (report_bytes(nodes), number_of(node));
        let room = |part: usize, entries: usize| Room {
            bytes: bytes / part,
            entries,
        };
        let drains = snapshot.drains().filter(|drain| now < drain.expires);
        let drains = drains.map(|drain| self.drained(drain));
        let fallbacks = self
            .fallbacks
            .iter()
            .map(|(_, service)| (&*service.namespace, service));
        let build = |service| self.fallback(service);
        DecisionSummary {
            policies: self.policies(snapshot, room(2, MAX_REPORTED), turn),
            drains: first(drains, &mut room(4, MAX_REPORTED)),
            fallbacks: by_turns(fallbacks, &mut room(4, MAX_FALLBACKS), turn, build),
            deciding: self.policies.len() as u64,
            nodes,
        }
    }

    /// The policies that decide a Service here. Cluster-scoped ones get half of the space, and the namespaces share the
    /// rest.
    fn policies(&self, snapshot: &Snapshot, mut room: Room, turn: u64) -> Vec<PolicyInUse> {
        let of_cluster = snapshot
            .policies()
            .filter(|policy| policy.namespace.is_none())
            .filter_map(|policy| self.in_use(policy));
        let mut half = Room {
            bytes: room.bytes / 2,
            entries: room.entries / 2,
        };
        let before = half;
        let mut policies = first(of_cluster, &mut half);
        room.bytes = room
            .bytes
            .saturating_sub(before.bytes.saturating_sub(half.bytes));
        room.entries = room.entries.saturating_sub(policies.len());
        let of_namespaces = snapshot
            .policies()
            .filter_map(|policy| Some((policy.namespace.as_ref()?, policy)));
        let build = |policy| self.in_use(policy);
        policies.extend(by_turns(of_namespaces, &mut room, turn, build));
        policies
    }

    /// Number of Services that get something else than requested, reported or not.
    pub fn fallbacks(&self) -> u64 {
        self.fallbacks.len() as u64
    }

    /// The policy, if it decides a Service.
    fn in_use(&self, policy: &TopologyPolicy) -> Option<PolicyInUse> {
        let id = policy.id();
        let services = *self.policies.get(&id)?;
        Some(PolicyInUse {
            policy: id,
            generation: policy.generation,
            services,
        })
    }

    fn drained(&self, drain: &Drain) -> DrainInUse {
        let sum = self.drains.get(&drain.name).copied().unwrap_or_default();
        DrainInUse {
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
        } = entry.contribution.instead.as_ref()?;
        let since = Timestamp::from_second(entry.since.div_euclid(1000)).unwrap_or_default();
        Some(Fallback {
            service: service.clone(),
            policy: policy.clone(),
            reason: *why,
            from: from.map(str::to_owned),
            to: (*to).to_owned(),
            since: since.to_string(),
        })
    }
}

impl DrainTotals {
    fn with(self, touched: DrainEffect, comes: bool) -> Self {
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

/// Changes the count of a key, and removes the key at zero.
fn change<K: Ord + Clone, T: Default + PartialEq>(
    counts: &mut BTreeMap<K, T>,
    key: &K,
    change: impl FnOnce(&mut T),
) {
    let count = counts.entry(key.clone()).or_default();
    change(count);
    if *count == T::default() {
        counts.remove(key);
    }
}
