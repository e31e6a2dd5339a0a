//! The levels of the answers to a client.

use std::collections::BTreeMap;
use std::net::IpAddr;

use topology_core::policy::LevelKey;
use topology_core::resolve::Decision;

use crate::weighted_endpoints::WeightedEndpoints;

/// The answers to a client until they repeat: each is for one level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerCycle {
    /// The levels with endpoints, nearest first.
    pub levels: Vec<AnswerLevel>,
}

/// A level in the answers to a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerLevel {
    /// `None` for endpoints that the decision puts in no level.
    pub key: Option<LevelKey>,
    /// How many answers of a cycle are for it.
    pub answers: u64,
    /// Address and port of the endpoints in each of these answers, sorted.
    pub endpoints: Vec<(IpAddr, u16)>,
}

impl AnswerCycle {
    pub fn of(decision: &Decision) -> Self {
        let mut levels = BTreeMap::<usize, AnswerLevel>::new();
        for endpoint in WeightedEndpoints::of(decision).all() {
            let at = endpoint.level.unwrap_or(usize::MAX);
            let level = levels.entry(at).or_default();
            level.key = decision.levels.get(at).map(|level| level.key.clone());
            level.answers += u64::from(endpoint.weight);
            level.endpoints.push((endpoint.address, endpoint.port));
        }
        Self {
            levels: levels.into_values().collect(),
        }
    }

    /// The number of answers in the cycle.
    pub fn answers(&self) -> u64 {
        self.levels.iter().map(|level| level.answers).sum()
    }
}
