//! Computes which Services a drain can affect: those with an endpoint in its domains and, for a drain of clients that
//! covers this node, those with levels that this node leaves.

use std::sync::Arc;

use super::deciders::Deciders;
use super::{ServiceAndSlices, Snapshot};
use crate::model::{Drain, DrainScope, Endpoint};
use crate::policy::{LevelKey, ZONE};

/// Whether `drain` can change the result for `entry` on the node `me`.
pub(super) fn touches(
    drain: &Drain,
    snapshot: &Snapshot,
    me: &str,
    policies: &Deciders<'_>,
    entry: &ServiceAndSlices,
) -> bool {
    let endpoints = || entry.slices.iter().flat_map(|slice| &slice.endpoints);
    let holds_endpoint = || endpoints().any(|endpoint| holds_endpoint(drain, snapshot, endpoint));
    let moves_me = || policies.leave(&drain.key) && holds_node(drain, snapshot, me);
    match drain.scope {
        DrainScope::Endpoints => holds_endpoint(),
        DrainScope::Clients => moves_me(),
        DrainScope::Both => moves_me() || holds_endpoint(),
    }
}

/// Whether `endpoint` is in a domain of `drain`.
fn holds_endpoint(drain: &Drain, snapshot: &Snapshot, endpoint: &Endpoint) -> bool {
    let node = endpoint.node.as_ref();
    let label = |key: &str| node.and_then(|name| snapshot.node(name)?.labels.get(key));
    let named = |value: Option<&Arc<str>>| value.is_some_and(|value| drain.values.contains(value));
    match &drain.key {
        LevelKey::Any => true,
        LevelKey::Node => named(node),
        LevelKey::Label(key) if **key == *ZONE => named(label(key).or(endpoint.zone.as_ref())),
        LevelKey::Label(key) => named(label(key)),
    }
}

/// Whether the node `me` is in a domain of `drain`.
fn holds_node(drain: &Drain, snapshot: &Snapshot, me: &str) -> bool {
    match &drain.key {
        LevelKey::Any => true,
        LevelKey::Node => drain.values.iter().any(|value| **value == *me),
        LevelKey::Label(key) => {
            let label = snapshot.node(me).and_then(|node| node.labels.get(key));
            label.is_some_and(|value| drain.values.contains(value))
        }
    }
}
