//! What the agent of a Node reports, as far as the status of policies and drains follows from it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::value::{list, number, text};

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
