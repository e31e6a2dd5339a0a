//! The endpoints that answers may hold, and which of them a turn gets.

use std::net::IpAddr;

use topology_core::policy::PolicySource;
use topology_core::resolve::{Decision, Note, Reason};

/// An endpoint that gets new connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChosenEndpoint {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    pub(crate) weight: u32,
    /// The position of its level in the decision.
    pub(crate) level: Option<usize>,
}

/// The endpoints of a decision with a weight, sorted by level, address and port: the addresses of the other family may be
/// in another order, but a turn is for the same level in both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WeightedEndpoints {
    endpoints: Vec<ChosenEndpoint>,
    /// For each endpoint, the sum of its weight and of those before it.
    sums: Vec<u64>,
    is_by_kube_proxy: bool,
    is_last_resort: bool,
}

impl WeightedEndpoints {
    pub(crate) fn of(decision: &Decision) -> Self {
        let weighted = decision.endpoints.iter();
        let weighted = weighted.filter(|endpoint| endpoint.weight > 0);
        let mut endpoints: Vec<ChosenEndpoint> = weighted
            .map(|endpoint| ChosenEndpoint {
                address: endpoint.address,
                port: endpoint.port,
                weight: endpoint.weight,
                level: endpoint.level.as_ref().and_then(|key| {
                    let mut levels = decision.levels.iter();
                    levels.position(|level| level.key == *key)
                }),
            })
            .collect();
        endpoints.sort_by_key(|endpoint| endpoint.level);
        let sums = endpoints.iter().scan(0, |sum, endpoint| {
            *sum += u64::from(endpoint.weight);
            Some(*sum)
        });
        Self {
            sums: sums.collect(),
            endpoints,
            is_by_kube_proxy: is_by_kube_proxy(decision),
            is_last_resort: decision.notes.iter().any(is_of_last_resort),
        }
    }

    /// Whether only the rules of kube-proxy have decided: no policy, drain or avoided domain.
    pub(crate) fn is_by_kube_proxy(&self) -> bool {
        self.is_by_kube_proxy
    }

    pub(crate) fn all(&self) -> &[ChosenEndpoint] {
        &self.endpoints
    }

    /// Whether the endpoints are used only because no other is left: they are drained or avoided, or terminate.
    pub(crate) fn is_last_resort(&self) -> bool {
        self.is_last_resort
    }

    /// Compares families: one with endpoints comes before one without, then those that are no last resort, then those with
    /// a nearer level.
    pub(crate) fn distance(&self) -> (bool, bool, usize) {
        let endpoints = self.endpoints.iter();
        let levels = endpoints.map(|endpoint| endpoint.level.unwrap_or(usize::MAX));
        let nearest = levels.min().unwrap_or(usize::MAX);
        (self.endpoints.is_empty(), self.is_last_resort, nearest)
    }

    /// The endpoints of the level of a turn, the endpoint of the turn first.
    ///
    /// In as many turns as the sum of weights, each endpoint is the first as often as its weight
    /// says. Turns that follow each other are spread over the endpoints.
    pub(crate) fn of_turn(&self, turn: u64) -> impl Iterator<Item = &ChosenEndpoint> {
        self.of_level(self.level_of_turn(turn), turn)
    }

    pub(crate) fn level_of_turn(&self, turn: u64) -> Option<usize> {
        let at = self.position_of_turn(turn)?;
        self.endpoints.get(at)?.level
    }

    /// The endpoints of a level, from the endpoint of the turn on.
    pub(crate) fn of_level(
        &self,
        level: Option<usize>,
        turn: u64,
    ) -> impl Iterator<Item = &ChosenEndpoint> {
        let at = self.position_of_turn(turn).unwrap_or_default();
        let (before, after) = self.endpoints.split_at_checked(at).unwrap_or_default();
        let all = after.iter().chain(before);
        all.filter(move |endpoint| endpoint.level == level)
    }

    fn position_of_turn(&self, turn: u64) -> Option<usize> {
        let total = *self.sums.last()?;
        let slot = u128::from(turn % total) * u128::from(step(total)) % u128::from(total);
        let slot = u64::try_from(slot).ok()?;
        Some(self.sums.partition_point(|sum| *sum <= slot))
    }
}

fn is_by_kube_proxy(decision: &Decision) -> bool {
    let by_others = matches!(
        decision.source,
        PolicySource::InternalTrafficPolicyLocal | PolicySource::Hints | PolicySource::Uniform
    );
    let is_excluded =
        |reason| matches!(reason, Reason::Drained | Reason::Draining | Reason::Avoided);
    let mut endpoints = decision.endpoints.iter();
    let excludes = endpoints.any(|endpoint| is_excluded(endpoint.reason));
    let ignores =
        |note: &Note| matches!(note, Note::DrainIgnored { .. } | Note::AvoidIgnored { .. });
    by_others && !excludes && !decision.notes.iter().any(ignores)
}

fn is_of_last_resort(note: &Note) -> bool {
    matches!(
        note,
        Note::ServingTerminating | Note::DrainIgnored { .. } | Note::AvoidIgnored { .. }
    )
}

/// A step near the golden section of `total` that visits each slot once before it repeats.
fn step(total: u64) -> u64 {
    let first = (total / 1_000 * 618 + total % 1_000 * 618 / 1_000).max(1);
    (first..=total)
        .find(|step| gcd(*step, total) == 1)
        .unwrap_or(1)
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 {
        one
    } else {
        gcd(other, one % other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(weights: &[(u32, usize)]) -> WeightedEndpoints {
        let endpoints =
            weights
                .iter()
                .zip(1_u8..)
                .map(|((weight, level), number)| ChosenEndpoint {
                    address: [10, 244, 0, number].into(),
                    port: 80,
                    weight: *weight,
                    level: Some(*level),
                });
        let endpoints: Vec<ChosenEndpoint> = endpoints.collect();
        let sums = (1..=endpoints.len()).map(|end| {
            let weights = endpoints.iter().take(end);
            weights.map(|endpoint| u64::from(endpoint.weight)).sum()
        });
        WeightedEndpoints {
            sums: sums.collect(),
            endpoints,
            is_by_kube_proxy: false,
            is_last_resort: false,
        }
    }

    #[test]
    fn every_cycle_of_turns_has_each_endpoint_first_as_often_as_its_weight() {
        for weights in [
            &[(1, 0)][..],
            &[(1, 0), (1, 0), (1, 0)],
            &[(80, 0), (15, 1), (5, 2)],
            &[(96, 0), (12, 1), (12, 1)],
            &[(1_000, 0), (1, 1)],
        ] {
            let weighted = with(weights);
            let total = *weighted.sums.last().unwrap();
            for start in [0, 17] {
                let mut counts = vec![0; weights.len()];
                for turn in start..start + total {
                    counts[weighted.position_of_turn(turn).unwrap()] += 1;
                }
                let expected: Vec<u32> = weights.iter().map(|(weight, _)| *weight).collect();
                assert_eq!(counts, expected);
            }
        }
    }

    #[test]
    fn few_turns_are_already_near_the_shares() {
        let weighted = with(&[(8_000, 0), (2_000, 1)]);
        for start in [0, 3, 4_711] {
            let turns = start..start + 20;
            let near = turns.filter(|turn| weighted.position_of_turn(*turn) == Some(0));
            let near = near.count();
            assert!((15..=17).contains(&near), "{near} of 20");
        }
    }

    #[test]
    fn a_turn_holds_one_level_whole_and_begins_with_its_endpoint() {
        let weighted = with(&[(3, 0), (1, 1), (3, 0), (1, 1)]);
        let mut seen = std::collections::BTreeSet::new();
        for turn in 0..8 {
            let numbers = weighted
                .of_turn(turn)
                .map(|endpoint| match endpoint.address {
                    IpAddr::V4(v4) => v4.octets()[3],
                    IpAddr::V6(_) => 0,
                });
            seen.insert(numbers.collect::<Vec<_>>());
        }
        let expected = [vec![1, 3], vec![2, 4], vec![3, 1], vec![4, 2]];
        assert_eq!(seen, expected.into());
    }

    #[test]
    fn without_endpoints_no_turn_has_any() {
        let weighted = WeightedEndpoints::default();
        assert_eq!(weighted.of_turn(3).count(), 0);
    }
}
