//! S9: the share of each endpoint.
//!
//! The endpoints of a level divide its share by the capacity of their Nodes (label
//! [`CAPACITY_LABEL`](crate::model::CAPACITY_LABEL), 1 unless set), where annotations ask for levels; otherwise alike.
//! An endpoint whose level has no share is not used.
//!
//! Example: level `zone` has 15 % and three endpoints: 5 % each; if one of their Nodes has capacity 2: 7.5, 3.75, 3.75.

use super::candidates::Candidate;
use super::reason::Reason;
use super::work::Work;
use crate::quantise::Class;
use crate::ratio::Ratio;

/// Splits the share of each level among its endpoints.
pub(super) fn run(work: &mut Work<'_>) {
    read_capacities(work);
    let served = |tier: usize| {
        work.tiers
            .get(tier)
            .is_some_and(|tier| !tier.share.is_zero())
    };
    for candidate in &mut work.candidates {
        if candidate.reason.is_chosen() && !candidate.tier.is_some_and(served) {
            candidate.reason = Reason::NearerLevelTakesAll;
        }
    }
    let mut classes: Vec<(usize, u16, u32)> = Vec::new();
    let mut capacities = vec![0_u64; work.tiers.len()];
    for (tier, capacity) in work.candidates.iter().filter_map(class_of) {
        if let Some(sum) = capacities.get_mut(tier) {
            *sum += u64::from(capacity);
        }
        match classes.binary_search_by_key(&(tier, capacity), |class| (class.0, class.1)) {
            Ok(at) => classes
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|class| class.2 += 1),
            Err(at) => classes.insert(at, (tier, capacity, 1)),
        }
    }
    let of_tier = |(tier, capacity, count): (usize, u16, u32)| {
        let all = work.tiers.get(tier)?.share;
        let part = Ratio::new(capacity.into(), *capacities.get(tier)?);
        Some((
            capacity,
            Class {
                tier,
                share: all * part,
                count,
            },
        ))
    };
    work.classes = classes.into_iter().filter_map(of_tier).collect();
}

/// The tier and capacity of a candidate that takes traffic.
pub(super) fn class_of(candidate: &Candidate<'_>) -> Option<(usize, u16)> {
    let tier = candidate.tier.filter(|_| candidate.reason.is_chosen())?;
    Some((tier, candidate.capacity))
}

fn read_capacities(work: &mut Work<'_>) {
    let policy = work.view.service.policy.as_ref();
    if !policy.is_some_and(|policy| policy.source == work.source && policy.uses_capacity()) {
        return;
    }
    let nodes = work.view.snapshot;
    for candidate in &mut work.candidates {
        let node = candidate.endpoint.node.as_ref();
        candidate.capacity = node
            .and_then(|name| nodes.node(name))
            .map_or(1, crate::model::Node::capacity);
    }
}
