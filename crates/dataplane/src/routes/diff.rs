//! Computes the writes from the held to the desired routes.

use std::collections::{BTreeMap, BTreeSet};

use topology_core::model::IpNetwork;

use super::desired::LocalRoute;

/// A write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteStep {
    Add(LocalRoute),
    Remove(LocalRoute),
}

/// Adds new routes before it removes old ones, except if only the source of a route changes. Skips the prefixes in
/// `taken`, for which another program has a route.
pub(super) fn diff(
    held: &BTreeSet<LocalRoute>,
    taken: &BTreeMap<IpNetwork, LocalRoute>,
    desired: &BTreeSet<LocalRoute>,
) -> Vec<RouteStep> {
    let old: BTreeMap<IpNetwork, LocalRoute> = held
        .difference(desired)
        .map(|route| (route.to, *route))
        .collect();
    let new: Vec<LocalRoute> = desired
        .difference(held)
        .filter(|route| !taken.contains_key(&route.to))
        .copied()
        .collect();
    let mut steps = Vec::with_capacity(old.len() + new.len());
    for route in &new {
        steps.extend(old.get(&route.to).map(|former| RouteStep::Remove(*former)));
        steps.push(RouteStep::Add(*route));
    }
    let replaced: BTreeSet<IpNetwork> = new.iter().map(|route| route.to).collect();
    let gone = old
        .into_values()
        .filter(|route| !replaced.contains(&route.to));
    steps.extend(gone.map(RouteStep::Remove));
    steps
}
