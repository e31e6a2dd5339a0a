//! What the agent of a Node reports, as far as the status of policies and drains follows from it.

use std::collections::BTreeMap;

use cluster::schema::MAX_FALLBACKS;
use jiff::Timestamp;
use serde_json::Value;

use super::value::{list, number, text};
use crate::chronicle::{self, Instead, Key};

/// A `TopologyAgent`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// By kind, namespace and name: the generation that it acts by, and for how many Services it decides.
    pub(super) policies: BTreeMap<(String, String, String), (u64, u64)>,
    /// By name: the generation that it acts by, how many endpoints are drained and how many Services passed over.
    pub(super) drains: BTreeMap<String, (u64, u64, u64)>,
    pub(super) fallbacks: Vec<Fallback>,
}

/// A Service that gets something else than asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fallback {
    pub(super) service: String,
    pub(super) policy: String,
    pub(super) reason: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) since: String,
}

/// What Services get instead of what they ask, on any Node; and whether the reports have room for all of it.
pub(super) fn fallbacks(reports: &BTreeMap<String, Report>) -> (BTreeMap<Key, Instead>, bool) {
    let (mut all, mut complete) = (BTreeMap::<Key, Instead>::new(), true);
    for report in reports.values() {
        complete &= report.fallbacks.len() < MAX_FALLBACKS;
        for fallback in &report.fallbacks {
            let Some(key) = chronicle::key(&fallback.service, &fallback.reason) else {
                continue;
            };
            let since = fallback.since.parse().unwrap_or(Timestamp::UNIX_EPOCH);
            let since = since.as_millisecond();
            let instead = all.entry(key).or_insert_with(|| fallback.instead(since));
            instead.since = instead.since.min(since);
            instead.nodes += 1;
        }
    }
    (all, complete)
}

impl Fallback {
    fn instead(&self, since: i64) -> Instead {
        Instead {
            policy: self.policy.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            since,
            nodes: 0,
        }
    }
}

impl Report {
    pub(super) fn read(object: &Value) -> Self {
        let own = |one: &Value, path: &str| text(one, path).to_owned();
        let policies = list(object, "/status/policies").iter().map(|one| {
            let key = (own(one, "/kind"), own(one, "/namespace"), own(one, "/name"));
            (key, (number(one, "/generation"), number(one, "/services")))
        });
        let drains = list(object, "/status/drains").iter().map(|one| {
            let counts = (
                number(one, "/generation"),
                number(one, "/endpoints"),
                number(one, "/servicesSkipped"),
            );
            (own(one, "/name"), counts)
        });
        let fallbacks = list(object, "/status/fallbacks").iter();
        Self {
            policies: policies.collect(),
            drains: drains.collect(),
            fallbacks: fallbacks
                .map(|one| Fallback {
                    service: own(one, "/service"),
                    policy: own(one, "/policy"),
                    reason: own(one, "/reason"),
                    from: own(one, "/from"),
                    to: own(one, "/to"),
                    since: own(one, "/since"),
                })
                .collect(),
        }
    }
}
