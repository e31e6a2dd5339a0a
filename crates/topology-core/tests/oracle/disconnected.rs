//! Property of endpoints whose servers closed their connections: they are decided like endpoints that are not ready.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use proptest::prelude::*;
use topology_core::model::{Endpoint, EndpointSlice};
use topology_core::resolve::{Reason, Resolution, Viewpoint, resolve};

use crate::cluster::Cluster;
use crate::generate::{ME, NOW, cluster};
use crate::yaml;

/// Whether the conditions of the endpoint allow traffic.
fn is_usable(endpoint: &Endpoint) -> bool {
    endpoint.ready || (endpoint.serving && endpoint.terminating)
}

/// All ports of these addresses.
fn servers(slices: &[EndpointSlice], addresses: &BTreeSet<IpAddr>) -> BTreeSet<SocketAddr> {
    let ports = slices.iter().flat_map(|slice| &slice.ports);
    let ports: BTreeSet<u16> = ports.map(|port| port.port.get()).collect();
    let pairs = addresses
        .iter()
        .flat_map(|address| ports.iter().map(|port| SocketAddr::new(*address, *port)));
    pairs.collect()
}

fn resolved(cluster: &Cluster, disconnected: BTreeSet<SocketAddr>) -> Resolution {
    let view = Viewpoint {
        disconnected: Arc::new(disconnected),
        ..cluster.viewpoint(Some(NOW))
    };
    resolve(&cluster.snapshot(), &view, &cluster.services[0].name)
}

/// The resolution with the reasons that the conditions alone would give.
fn without_reason(mut resolution: Resolution) -> Resolution {
    for server in &mut resolution.servers {
        for endpoint in &mut server.decision.endpoints {
            if endpoint.reason == Reason::Disconnected {
                endpoint.reason = if endpoint.terminating {
                    Reason::Terminating
                } else {
                    Reason::NotReady
                };
            }
        }
    }
    resolution
}

proptest! {
    #![proptest_config(crate::cases())]

    #[test]
    fn a_disconnected_endpoint_is_decided_like_one_that_is_not_ready(
        cluster in cluster(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let endpoints = || cluster.slices.iter().flat_map(|slice| &slice.endpoints);
        let all: Vec<IpAddr> = endpoints().map(|endpoint| endpoint.address).collect();
        if all.is_empty() {
            return Ok(());
        }
        let addresses: BTreeSet<IpAddr> = picks.iter().map(|pick| all[pick.index(all.len())]).collect();
        let is_lost = |endpoint: &Endpoint| {
            endpoint.node.as_deref() == Some(ME) && is_usable(endpoint) && addresses.contains(&endpoint.address)
        };
        let mut unready = cluster.clone();
        let endpoints = unready.slices.iter_mut().flat_map(|slice| &mut slice.endpoints);
        for endpoint in endpoints.filter(|endpoint| is_lost(endpoint)) {
            (endpoint.ready, endpoint.serving) = (false, false);
        }
        let found = resolved(&cluster, servers(&cluster.slices, &addresses));
        let of_here = found.servers.iter().flat_map(|server| &server.decision.endpoints);
        let disconnected = of_here.filter(|endpoint| endpoint.reason == Reason::Disconnected);
        for endpoint in disconnected {
            prop_assert_eq!(endpoint.node.as_deref(), Some(ME));
            prop_assert_eq!(endpoint.weight, 0);
        }
        let expected = resolved(&unready, BTreeSet::new());
        prop_assert_eq!(without_reason(found), expected, "{:?}; the cluster:\n{}", addresses, yaml::of(&cluster));
    }
}
