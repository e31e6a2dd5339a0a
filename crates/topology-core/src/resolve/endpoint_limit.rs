//! Limits the endpoints of one Service on a node by the real servers that they become.
//!
//! An endpoint becomes a real server, with a decision, of every port at every frontend. A tenant may write thousands of
//! ports, frontends and endpoints, and every node would need memory for the product (D13). Beyond the limit a Service
//! keeps its virtual servers, each with the same part of the endpoints.
//!
//! Usable endpoints of this node come first, because for traffic policy Local no others replace them; then ready ones.
//! Of those that are alike, a rendezvous hash of this node and the endpoint decides, as in [`super::subset`]: all nodes
//! together use all endpoints, levels keep their proportions, and a changed endpoint does not change which of the others
//! come first.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::hash::Seed;
use crate::model::{Endpoint, EndpointSlice, Family, Frontend, Service};

/// Most real servers of one Service on a node. 100,000 endpoints, as many as the bench has in a whole cluster, are
/// 200,000 with one port at two addresses.
pub(super) const MOST_REAL_SERVERS: usize = 1 << 18;

/// The `slices` of `service` as far as `node` uses them: borrowed if it uses all endpoints.
pub(super) fn limited<'s>(
    service: &Service,
    frontends: &[Frontend],
    slices: &'s [EndpointSlice],
    node: &str,
) -> Cow<'s, [EndpointSlice]> {
    // Outside clients may have one more virtual server for each port.
    let servers = |family| {
        let of_family = frontends
            .iter()
            .filter(|frontend| Family::of(frontend.address) == family);
        of_family.count() + usize::from(service.splits_clients())
    };
    let (v4, v6) = (servers(Family::V4), servers(Family::V6));
    let cost = |slice: &EndpointSlice| {
        let servers = match slice.family {
            Family::V4 => v4,
            Family::V6 => v6,
        };
        // Names are unique in both, so each port of one has at most one of the other.
        slice.ports.len().min(service.ports.len()) * servers
    };
    within(MOST_REAL_SERVERS, cost, slices, node)
}

/// The endpoints that come first and have a total cost of at most `most`, but at least one.
fn within<'s>(
    most: usize,
    cost: impl Fn(&EndpointSlice) -> usize,
    slices: &'s [EndpointSlice],
    node: &str,
) -> Cow<'s, [EndpointSlice]> {
    let total = slices
        .iter()
        .map(|slice| slice.endpoints.len() * cost(slice));
    if total.sum::<usize>() <= most {
        return Cow::Borrowed(slices);
    }
    let mut kept: Vec<Vec<Endpoint>> = vec![Vec::new(); slices.len()];
    let mut spent = 0;
    for (at, endpoint) in in_order(slices, node) {
        let (Some(slice), Some(kept)) = (slices.get(at), kept.get_mut(at)) else {
            continue;
        };
        let with_this = spent + cost(slice);
        if with_this > most && spent > 0 {
            break;
        }
        spent = with_this;
        kept.push(endpoint.clone());
    }
    let kept = slices.iter().zip(kept);
    let kept = kept.filter(|(_, endpoints)| !endpoints.is_empty());
    Cow::Owned(
        kept.map(|(slice, kept)| with_endpoints(slice, kept))
            .collect(),
    )
}

/// All endpoints, those first that this node needs most, with the index of their slice.
fn in_order<'s>(slices: &'s [EndpointSlice], node: &str) -> Vec<(usize, &'s Endpoint)> {
    let seed = Seed::of(node);
    let rank = |endpoint: &Endpoint| {
        let serves_here = endpoint.is_usable() && endpoint.node.as_deref() == Some(node);
        let place = seed.position(endpoint.address, 0);
        (!serves_here, !endpoint.ready, place)
    };
    let slices = slices.iter().enumerate();
    let mut all: Vec<(usize, &Endpoint)> = slices
        .flat_map(|(at, slice)| slice.endpoints.iter().map(move |endpoint| (at, endpoint)))
        .collect();
    all.sort_by_cached_key(|(_, endpoint)| rank(endpoint));
    all
}

/// A part of `slice`. Virtual servers do not use host names.
fn with_endpoints(slice: &EndpointSlice, endpoints: Vec<Endpoint>) -> EndpointSlice {
    EndpointSlice {
        name: slice.name.clone(),
        service: slice.service.clone(),
        family: slice.family,
        ports: slice.ports.clone(),
        endpoints,
        hostnames: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::*;
    use crate::model::{ObjectName, Protocol, SlicePort};

    /// The number of an endpoint, whether it is on this node, ready, and terminating.
    type Drawn = (u8, bool, bool, bool);

    fn slice(number: usize, ports: u16, endpoints: &[Drawn]) -> EndpointSlice {
        let port = |port: u16| SlicePort {
            name: format!("p{port}").into(),
            protocol: Protocol::Tcp,
            port: port.try_into().unwrap(),
        };
        let endpoint = |&(last, here, ready, terminating): &Drawn| Endpoint {
            address: IpAddr::from([10, 244, number.try_into().unwrap(), last]),
            node: Some(if here { "me" } else { "other" }.into()),
            zone: None,
            ready,
            serving: true,
            terminating,
            hints: None,
        };
        EndpointSlice {
            name: ObjectName::new("t", format!("s-{number}")),
            service: "s".into(),
            family: Family::V4,
            ports: (1..=ports).map(port).collect(),
            endpoints: endpoints.iter().map(endpoint).collect(),
            hostnames: BTreeMap::new(),
        }
    }

    fn drawn() -> impl Strategy<Value = Vec<EndpointSlice>> {
        let endpoint = (any::<u8>(), any::<bool>(), any::<bool>(), any::<bool>());
        let endpoints = prop::collection::vec(endpoint, 0..12);
        prop::collection::vec((0_u16..4, endpoints), 0..5).prop_map(|slices| {
            let slices = slices.into_iter().enumerate();
            slices
                .map(|(number, (ports, mut endpoints))| {
                    endpoints.sort_unstable();
                    endpoints.dedup_by_key(|(last, ..)| *last);
                    slice(number, ports, &endpoints)
                })
                .collect()
        })
    }

    fn cost(slice: &EndpointSlice) -> usize {
        slice.ports.len()
    }

    fn addresses(slices: &[EndpointSlice]) -> BTreeSet<IpAddr> {
        let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
        endpoints.map(|endpoint| endpoint.address).collect()
    }

    fn total(slices: &[EndpointSlice]) -> usize {
        let each = slices
            .iter()
            .map(|slice| slice.endpoints.len() * cost(slice));
        each.sum()
    }

    proptest! {
        #[test]
        fn d13_the_limit_holds_and_what_fits_is_unchanged(slices in drawn(), most in 1_usize..60) {
            let kept = within(most, cost, &slices, "me");
            prop_assert_eq!(matches!(kept, Cow::Borrowed(_)), total(&slices) <= most);
            let endpoints: usize = kept.iter().map(|slice| slice.endpoints.len()).sum();
            let dearest = slices.iter().map(cost).max().unwrap_or(0);
            prop_assert!(total(&kept) <= most.max(dearest), "{:?}", kept);
            prop_assert_eq!(endpoints == 0, addresses(&slices).is_empty());
        }

        #[test]
        fn d13_an_endpoint_less_removes_no_other_one(
            slices in drawn(),
            most in 3_usize..60,
            slice in any::<prop::sample::Index>(),
            endpoint in any::<prop::sample::Index>(),
        ) {
            prop_assume!(!slices.is_empty());
            let at = slice.index(slices.len());
            prop_assume!(!slices[at].endpoints.is_empty());
            let mut fewer = slices.clone();
            let place = endpoint.index(fewer[at].endpoints.len());
            let removed = fewer[at].endpoints.remove(place).address;
            let mut before = addresses(&within(most, cost, &slices, "me"));
            before.remove(&removed);
            let after = addresses(&within(most, cost, &fewer, "me"));
            prop_assert!(after.is_superset(&before), "{before:?}, {after:?}");
        }
    }

    #[test]
    fn usable_endpoints_of_the_node_come_first_then_ready_ones() {
        let endpoints = [
            (1, false, false, false),
            (2, false, true, false),
            (3, true, false, true),
            (4, true, true, false),
            (5, true, false, false),
        ];
        let slices = [slice(0, 1, &endpoints)];
        let ends: Vec<IpAddr> = in_order(&slices, "me")
            .iter()
            .map(|(_, endpoint)| endpoint.address)
            .collect();
        let expected = [4, 3, 2].map(|last| IpAddr::from([10, 244, 0, last]));
        assert_eq!(ends[..3], expected);
    }

    #[test]
    fn nodes_use_different_endpoints() {
        let endpoints: Vec<Drawn> = (0..100).map(|last| (last, false, true, false)).collect();
        let slices = [slice(0, 1, &endpoints)];
        let of = |node: &str| addresses(&within(10, cost, &slices, node));
        let nodes = (0..60).map(|number| of(&format!("n{number}")));
        let used: BTreeSet<IpAddr> = nodes.flatten().collect();
        assert!(used.len() > 90, "{used:?}");
    }
}
