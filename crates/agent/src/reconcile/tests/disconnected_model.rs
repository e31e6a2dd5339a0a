//! Compares the disconnected endpoints with a simple model, for random changes.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use cluster::object::Object;
use proptest::prelude::*;
use topology_core::model::{Endpoint, EndpointSlice, ObjectName};
use topology_core::snapshot::Snapshot;

use super::script;
use crate::reconcile::disconnected_endpoints::DisconnectedEndpoints;

/// Two Services with the same two endpoints.
const SERVICES: [&str; 2] = ["a", "b"];
const ADDRESSES: [&str; 2] = ["10.244.1.1", "10.244.1.2"];

/// What the EndpointSlice of a Service says of an endpoint: not ready, ready, serving and terminating, or nothing.
type Condition = u8;

#[derive(Debug, Clone)]
enum Change {
    Ends(usize),
    Connects(usize),
    Slice(usize, [Condition; 2]),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0..2_usize).prop_map(Change::Ends),
        (0..2_usize).prop_map(Change::Connects),
        (0..2_usize, [0..4_u8, 0..4_u8]).prop_map(|(service, all)| Change::Slice(service, all)),
    ]
}

fn name(service: usize) -> ObjectName {
    ObjectName::new("t", SERVICES[service])
}

fn server(endpoint: usize) -> SocketAddr {
    SocketAddr::new(ADDRESSES[endpoint].parse().unwrap(), 53)
}

fn slice(service: usize, conditions: [Condition; 2]) -> EndpointSlice {
    let all = ["10.244.1.1@n1", "10.244.1.2@n1"];
    let made = script::slice(SERVICES[service], &["53/UDP"], &all);
    let Object::EndpointSlice(mut slice) = made else {
        unreachable!("a slice was made");
    };
    let set = |(mut endpoint, condition): (Endpoint, Condition)| {
        (endpoint.ready, endpoint.serving, endpoint.terminating) = match condition {
            0 => (false, false, false),
            1 => (true, true, false),
            2 => (false, true, true),
            _ => return None,
        };
        Some(endpoint)
    };
    let pairs = slice.endpoints.into_iter().zip(conditions);
    slice.endpoints = pairs.filter_map(set).collect();
    slice
}

proptest! {
    /// An endpoint is disconnected from the end of its connection, if some Service has it as usable, until it
    /// connects or no Service has it as usable.
    #[test]
    fn an_endpoint_is_disconnected_until_it_connects_or_no_slice_calls_it_usable(
        changes in prop::collection::vec(change(), 0..40),
    ) {
        let mut snapshot = Snapshot::default();
        let mut conditions = [[1, 1]; 2];
        for service in 0..2 {
            let made = script::service(SERVICES[service], &format!("10.96.0.{}", service + 1), &["53/UDP"]);
            let Object::Service(made) = made else {
                unreachable!("a Service was made");
            };
            snapshot.set_service(made);
            snapshot.set_slice(slice(service, conditions[service]));
        }
        let mut found = DisconnectedEndpoints::default();
        let mut ended = BTreeSet::new();
        let mut expected = [false; 2];
        for change in changes {
            let mut changed = BTreeSet::new();
            let is_usable = |conditions: &[[Condition; 2]; 2], endpoint: usize| {
                conditions.iter().any(|of_service| matches!(of_service[endpoint], 1 | 2))
            };
            match change {
                Change::Ends(endpoint) => {
                    ended.insert(server(endpoint));
                    expected[endpoint] = is_usable(&conditions, endpoint);
                }
                Change::Connects(endpoint) => {
                    ended.remove(&server(endpoint));
                    expected[endpoint] = false;
                }
                Change::Slice(service, other) => {
                    conditions[service] = other;
                    snapshot.set_slice(slice(service, other));
                    changed.insert(name(service));
                }
            }
            let before = expected;
            for (endpoint, is_expected) in expected.iter_mut().enumerate() {
                *is_expected &= is_usable(&conditions, endpoint);
            }
            let earlier = found.endpoints();
            let affected = found.update(&ended, &changed, &snapshot, "n1");
            let now = found.endpoints();
            for (endpoint, is_expected) in expected.into_iter().enumerate() {
                let server = server(endpoint);
                prop_assert_eq!(now.contains(&server), is_expected, "{} was {}", server, before[endpoint]);
                // Every Service that uses the endpoint is resolved again when that changes.
                if now.contains(&server) == earlier.contains(&server) {
                    continue;
                }
                for (service, of_service) in conditions.iter().enumerate() {
                    let is_resolved = affected.contains(&name(service)) || changed.contains(&name(service));
                    prop_assert!(is_resolved || !matches!(of_service[endpoint], 1 | 2));
                }
            }
            // The caller forgets them.
            ended = now;
        }
    }
}
