//! Generates what clients outside of the cluster use: node ports, load balancer addresses, external IPs
//! and traffic policies.

use std::collections::BTreeSet;
use std::net::IpAddr;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use topology_core::model::{Family, Frontend, IpNetwork, Service, TrafficPolicy};

/// Load balancer addresses; one is an address of the node.
const LOAD_BALANCERS: [&str; 4] = ["192.0.2.10", "192.0.2.11", "192.168.1.1", "2001:db8:2::10"];
/// External IPs; one is an address of the node.
const EXTERNAL: [&str; 3] = ["203.0.113.10", "172.16.0.1", "2001:db8:4::10"];
/// Addresses of the node.
const NODE: [&str; 4] = ["192.168.1.1", "172.16.0.1", "2001:db8::1", "2001:db8::2"];

/// The external part of a Service.
#[derive(Debug, Clone)]
pub(super) struct External {
    /// The first node port; the next port of the Service has the next number.
    node_port: Option<u16>,
    load_balancers: Vec<IpAddr>,
    ips: Vec<IpAddr>,
    policy: TrafficPolicy,
    source_ranges: Option<Vec<IpNetwork>>,
}

impl External {
    /// Adds frontends after the cluster IPs.
    pub(super) fn add_to(self, service: &mut Service) {
        let families: BTreeSet<Family> = service
            .frontends
            .iter()
            .map(|frontend| Family::of(frontend.address))
            .collect();
        if let Some(first) = self.node_port {
            for (port, number) in service.ports.iter_mut().zip(first..) {
                port.node_port = number.try_into().ok();
            }
            let frontends = families.iter().map(|family| Frontend::node_port(*family));
            service.frontends.extend(frontends);
        }
        let load_balancers = self.load_balancers.into_iter().map(Frontend::load_balancer);
        let ips = self.ips.into_iter().map(Frontend::external_ip);
        let external = load_balancers.chain(ips);
        let of_families =
            external.filter(|frontend| families.contains(&Family::of(frontend.address)));
        service.frontends.extend(of_families);
        service.external_traffic_policy = self.policy;
        service.source_ranges = self.source_ranges;
    }
}

pub(super) fn external() -> impl Strategy<Value = External> {
    // Port 80 is that of the cluster IP, so a load balancer address of the node can meet a node port.
    let node_port = proptest::option::of(select(&[30080, 30080, 30081, 80][..]));
    let load_balancers = prop_oneof![
        2 => Just(Vec::new()),
        1 => subsequence(LOAD_BALANCERS.to_vec(), 1..=3).prop_map(|texts| addresses(&texts)),
    ];
    let ips = prop_oneof![
        3 => Just(Vec::new()),
        1 => subsequence(EXTERNAL.to_vec(), 1..=2).prop_map(|texts| addresses(&texts)),
    ];
    let policy = select(&[TrafficPolicy::Cluster, TrafficPolicy::Local][..]);
    let ranges = proptest::option::weighted(
        0.2,
        subsequence(vec!["198.51.100.0/24", "2001:db8:3::/48"], 0..=2),
    );
    (node_port, load_balancers, ips, policy, ranges).prop_map(
        |(node_port, load_balancers, ips, policy, ranges)| External {
            node_port,
            load_balancers,
            ips,
            policy,
            source_ranges: ranges
                .map(|ranges| ranges.iter().map(|text| text.parse().unwrap()).collect()),
        },
    )
}

/// The addresses of the viewpoint's node where node ports are served.
pub(crate) fn node_port_addresses() -> impl Strategy<Value = BTreeSet<IpAddr>> {
    subsequence(NODE.to_vec(), 0..=3).prop_map(|texts| addresses(&texts).into_iter().collect())
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}
