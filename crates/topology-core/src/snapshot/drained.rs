//! Computes which Services a drain can affect: those with an endpoint in its domains and, for a drain of clients that
//! covers this node, those with levels that this node leaves, and those whose decision notes or divides the traffic by
//! the drain.

use std::sync::Arc;

use super::deciders::Deciders;
use super::{ServiceAndSlices, Snapshot};
use crate::model::{Drain, DrainScope, Endpoint, Service, TrafficPolicy};
use crate::policy::{LevelKey, Policy, ZONE};

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
    let moves_me = || {
        let service = entry.service.as_deref();
        let is_noted = || service.is_some_and(|service| is_noted(drain, snapshot, service));
        holds_node(drain, snapshot, me) && (policies.leave(&drain.key) || is_noted())
    };
    match drain.scope {
        DrainScope::Endpoints => holds_endpoint(),
        DrainScope::Clients => moves_me(),
        DrainScope::Both => moves_me() || holds_endpoint(),
    }
}

/// Whether `service` notes or divides its traffic by a drain of clients even if this node leaves none of its levels. With
/// traffic policy Local and with a hard policy it notes that the drain has no effect. A ramp divides the traffic.
fn is_noted(drain: &Drain, snapshot: &Snapshot, service: &Service) -> bool {
    let is_local = [
        service.internal_traffic_policy,
        service.external_traffic_policy,
    ]
    .contains(&TrafficPolicy::Local);
    let name = service.named_policy.as_ref();
    let named = name.and_then(|name| snapshot.policy(&service.name.namespace, name));
    let objects = snapshot.policies_for(service).chain(named);
    let own = service.policy.as_deref().into_iter();
    let mut policies = own.chain(objects.map(|object| &object.policy));
    is_local || drain.ramp_seconds > 0 || policies.any(Policy::is_bounded)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Node, ObjectName};
    use crate::policy::{Level, Mode, PolicySource};

    /// Whether a drain of the clients on the node `me`, with a ramp of so many seconds, touches the Service.
    fn is_touched(ramp_seconds: u32, service: Service) -> bool {
        let mut snapshot = Snapshot::default();
        snapshot.set_node(Node::new("me"));
        snapshot.set_service(service);
        snapshot.take_dirty("me");
        snapshot.set_drain(Drain {
            scope: DrainScope::Clients,
            ramp_seconds,
            ..Drain::of("shift", LevelKey::Node, vec!["me".into()])
        });
        !snapshot.take_dirty("me").is_empty()
    }

    fn service() -> Service {
        Service::new(ObjectName::new("t", "s"), Vec::new(), Vec::new())
    }

    fn by_zone(outer: Option<LevelKey>) -> Service {
        let levels = [Some(LevelKey::Label(ZONE.into())), outer];
        let levels = levels.into_iter().flatten().map(|key| Level::new(key, 1));
        let policy = Policy::new(PolicySource::Annotation, Mode::Weighted, levels.collect());
        Service {
            policy: Some(policy.into()),
            ..service()
        }
    }

    #[test]
    fn a_drain_of_clients_touches_services_with_traffic_policy_local() {
        assert!(!is_touched(0, service()));
        assert!(is_touched(
            0,
            Service {
                internal_traffic_policy: TrafficPolicy::Local,
                ..service()
            }
        ));
        assert!(is_touched(
            0,
            Service {
                external_traffic_policy: TrafficPolicy::Local,
                ..service()
            }
        ));
    }

    #[test]
    fn a_drain_of_clients_touches_services_with_other_levels_if_it_ramps_or_they_are_hard() {
        assert!(!is_touched(0, by_zone(Some(LevelKey::Any))));
        assert!(is_touched(60, by_zone(Some(LevelKey::Any))));
        assert!(is_touched(60, service()));
        assert!(is_touched(0, by_zone(None)));
    }
}
