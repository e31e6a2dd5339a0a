//! Chooses the labels that the map holds.
//!
//! A change of the labels writes every shard, and every agent receives all of them. Labels of
//! administrators come and go at once. Labels of tenants change together, with a pause after each
//! change, and an unused one stays for some minutes: a tenant who edits all the time costs each agent
//! on average one shard in [`PAUSE`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crd::{MAX_KEYS, REQUIRED_KEYS};
use serde_json::Value;

use super::collection::Collection;
use super::map;
use super::observed::Observed;
use super::validate::ValidatedDrain;
use super::value::list;

/// The pause after a change of tenants' labels, for each shard, in milliseconds.
pub(super) const PAUSE: i64 = 10_000;
/// How long an unused label of tenants stays, in milliseconds.
pub(super) const KEPT: i64 = 600_000;
/// How many labels the map holds besides those that every map has.
const MOST: usize = MAX_KEYS - REQUIRED_KEYS.len();

/// The labels of the map, without those that every map has.
#[derive(Debug, Default)]
pub(super) struct MapKeys {
    /// `None` before the first choice.
    chosen: Option<KeyChoice>,
    /// The time in which labels of tenants do not change.
    pause: Range<i64>,
    /// The time in which the choice does not change by itself; `None` if it never does.
    settled: Option<Range<i64>>,
}

#[derive(Debug, Default)]
struct KeyChoice {
    administrators: BTreeSet<String>,
    /// Each label of tenants, and since when it is unused (milliseconds since 1970).
    tenants: BTreeMap<String, Option<i64>>,
}

impl MapKeys {
    /// Whether time alone may change the choice now.
    pub(super) fn is_due(&self, now: i64) -> bool {
        let settled = self.settled.as_ref();
        settled.is_some_and(|settled| !settled.contains(&now))
    }

    /// Returns the labels of the map: those of policies, drains, annotations and the command line. If
    /// there are more than fit, those of administrators come first. Then each namespace gets one in
    /// turn, so that a namespace with many displaces only its own. `now`: milliseconds since 1970.
    pub(super) fn choose(&mut self, state: &Observed, now: i64) -> Vec<String> {
        let before = self.chosen.take();
        let before = before.unwrap_or_else(|| KeyChoice::of_maps(state));
        let usage = LabelUses::of(state);
        let is_paused = self.pause.contains(&now);
        let removes = !is_paused && state.annotations.is_listed;
        let stays = |since: i64| !removes || (since..since + KEPT).contains(&now);
        let may_enter = |key: &str| !is_paused || before.has(key);
        let room = MOST - usage.administrators.len();
        let mut tenants = usage.in_turn(room, may_enter);
        let unused = before.unused(&usage, now);
        let unused = unused.filter(|(_, since)| stays(*since));
        let unused = unused.take(room - tenants.len());
        tenants.extend(unused.map(|(key, since)| (key, Some(since))));
        let waits = is_paused && usage.of_tenants().any(|key| !tenants.contains_key(key));
        let chosen = KeyChoice {
            administrators: usage.administrators,
            tenants,
        };
        if !is_paused && chosen.differs_for_tenants(&before) {
            self.pause = now..now.saturating_add(pause(state));
        }
        let until = self.until(&chosen, waits, state.annotations.is_listed);
        self.settled = until.map(|until| now..until);
        let keys = chosen.keys();
        self.chosen = Some(chosen);
        keys
    }

    /// When the choice may change by itself. `waits`: a label waits for the end of the pause.
    /// `removes`: unused labels leave.
    fn until(&self, chosen: &KeyChoice, waits: bool, removes: bool) -> Option<i64> {
        let since = chosen.tenants.values().flatten().filter(|_| removes);
        let ends = since.map(|since| (since + KEPT).max(self.pause.end));
        ends.chain(waits.then_some(self.pause.end)).min()
    }
}

/// The pause after a change of tenants' labels, which writes every shard.
fn pause(state: &Observed) -> i64 {
    let shards = map::existing(state).len().max(1);
    PAUSE.saturating_mul(i64::try_from(shards).unwrap_or(i64::MAX))
}

impl KeyChoice {
    /// The choice of an earlier leader, whose labels all count as those of tenants.
    fn of_maps(state: &Observed) -> Self {
        let shards = map::existing(state);
        let keys = shards.values().flat_map(|map| list(map, "/spec/keys"));
        let special = keys.filter_map(Value::as_str).filter(|key| is_special(key));
        Self {
            administrators: BTreeSet::new(),
            tenants: special.map(|key| (key.to_owned(), None)).collect(),
        }
    }

    fn has(&self, key: &str) -> bool {
        self.administrators.contains(key) || self.tenants.contains_key(key)
    }

    /// The labels of tenants that are not used now, and since when.
    fn unused(&self, usage: &LabelUses<'_>, now: i64) -> impl Iterator<Item = (String, i64)> {
        let unused = self.tenants.iter().filter(|(key, _)| !usage.has(key));
        unused.map(move |(key, since)| (key.clone(), since.unwrap_or(now)))
    }

    /// Whether a label of tenants came into the map, or left it.
    fn differs_for_tenants(&self, before: &Self) -> bool {
        self.tenants.keys().any(|key| !before.has(key))
            || before.tenants.keys().any(|key| !self.has(key))
    }

    fn keys(&self) -> Vec<String> {
        let special = self.administrators.iter().chain(self.tenants.keys());
        let special: BTreeSet<&String> = special.collect();
        let always = REQUIRED_KEYS.map(str::to_owned).into_iter();
        always.chain(special.into_iter().cloned()).collect()
    }
}

/// The labels in use, without those that every map has.
struct LabelUses<'s> {
    administrators: BTreeSet<String>,
    /// Those that each namespace uses and administrators do not.
    tenants: BTreeMap<&'s str, BTreeSet<&'s str>>,
}

impl<'s> LabelUses<'s> {
    fn of(state: &'s Observed) -> Self {
        let mut uses = Self {
            administrators: of_administrators(state),
            tenants: BTreeMap::new(),
        };
        let policies = of_policies(state, Collection::Policies);
        for (namespace, key) in policies.chain(state.annotations.used()) {
            if is_special(key) && !uses.administrators.contains(key) {
                uses.tenants.entry(namespace).or_default().insert(key);
            }
        }
        uses
    }

    fn of_tenants(&self) -> impl Iterator<Item = &'s str> {
        self.tenants.values().flatten().copied()
    }

    fn has(&self, key: &str) -> bool {
        let mut namespaces = self.tenants.values();
        self.administrators.contains(key) || namespaces.any(|keys| keys.contains(key))
    }

    /// Chooses at most `most` labels of tenants, one of each namespace in turn.
    fn in_turn(
        &self,
        most: usize,
        may_enter: impl Fn(&str) -> bool,
    ) -> BTreeMap<String, Option<i64>> {
        let mut chosen: BTreeSet<&str> = BTreeSet::new();
        let mut namespaces: Vec<_> = self.tenants.values().map(BTreeSet::iter).collect();
        while chosen.len() < most && !namespaces.is_empty() {
            namespaces.retain_mut(|keys| {
                // Skips labels that are chosen already, so that they do not use up a turn.
                let next = keys.find(|key| may_enter(key) && !chosen.contains(*key));
                if chosen.len() < most {
                    chosen.extend(next);
                }
                next.is_some()
            });
        }
        chosen
            .into_iter()
            .map(|key| (key.to_owned(), None))
            .collect()
    }
}

fn is_special(key: &str) -> bool {
    !REQUIRED_KEYS.contains(&key)
}

fn of_administrators(state: &Observed) -> BTreeSet<String> {
    let mut keys: BTreeSet<String> = state.extra_keys.clone();
    keys.extend(of_policies(state, Collection::ClusterPolicies).map(|(_, key)| key.to_owned()));
    keys.extend(state.drains.values().filter_map(ValidatedDrain::label));
    keys.into_iter()
        .filter(|key| is_special(key))
        .take(MOST)
        .collect()
}

/// The labels that the policies of a collection use, in levels and `nodeSelector`, each with the namespace of the policy.
fn of_policies(state: &Observed, collection: Collection) -> impl Iterator<Item = (&str, &str)> {
    let validated = state.policies.iter();
    let validated = validated.filter(move |((of, _), _)| *of == collection);
    validated.flat_map(|((_, name), validated)| {
        let selected = validated.nodes.keys().map(|key| &**key);
        let keys = validated.labels.iter().map(|key| &**key).chain(selected);
        keys.map(|key| (&*name.namespace, key))
    })
}
