//! Nodes with addresses of Services: both engines serve the same addresses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use topology_core::model::{Frontend, IpNetwork, Node, parse_range};
use topology_core::resolve::{FindingKind, Viewpoint, resolve};
use topology_core::virtual_server::VirtualServerKey;

use crate::generate::{ME, service};
use crate::naive::claims;

const ADDRESSES: [&str; 4] = ["10.96.0.10", "10.97.0.1", "fd00:10:96::10", "192.0.2.1"];
const RANGES: [&str; 4] = [
    "10.96.0.0/16",
    "10.96.0.0/12",
    "fd00:10:96::/112",
    "10.97.0.1/32",
];

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let node = |name: &'static str| {
        subsequence(ADDRESSES.to_vec(), 0..=2).prop_map(move |addresses| Node {
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
            ..Node::new(name)
        })
    };
    let all: Vec<_> = [ME, "a1", "n1", "n2"].map(node).into_iter().collect();
    all.prop_flat_map(|nodes| subsequence(nodes, 0..=4))
}

fn ranges() -> impl Strategy<Value = Vec<IpNetwork>> {
    subsequence(RANGES.to_vec(), 0..=3).prop_map(|ranges| {
        ranges
            .iter()
            .map(|text| parse_range(text).unwrap())
            .collect()
    })
}

/// The change of the cluster after the first query.
#[derive(Debug, Clone)]
enum Change {
    Nodes(Vec<Node>),
    Ranges(Vec<IpNetwork>),
}

proptest! {
    #![proptest_config(crate::cases())]

    #[test]
    fn both_engines_serve_the_same_addresses_with_any_node_claims(
        mut service in service("s0"),
        addresses in proptest::collection::btree_set(select(&ADDRESSES[..]), 1..4),
        first in (nodes(), ranges()),
        changes in proptest::collection::vec(prop_oneof![nodes().prop_map(Change::Nodes), ranges().prop_map(Change::Ranges)], 0..4),
    ) {
        service.frontends = addresses.iter().map(|text| Frontend::cluster_ip(text.parse().unwrap())).collect();
        let mut snapshot = topology_core::snapshot::Snapshot::default();
        let (mut nodes, mut ranges) = first;
        snapshot.set_service(service.clone());
        let me = Viewpoint::new(ME);
        let mut served = BTreeSet::new();
        let all: Vec<Change> = [Change::Nodes(nodes.clone()), Change::Ranges(ranges.clone())].into_iter().chain(changes).collect();
        for batch in all.chunks(2) {
            for change in batch {
                match change.clone() {
                    Change::Nodes(now) => {
                        for node in &nodes {
                            snapshot.remove_node(&node.name);
                        }
                        nodes.clone_from(&now);
                        for node in now {
                            snapshot.set_node(node);
                        }
                    }
                    Change::Ranges(now) => {
                        ranges.clone_from(&now);
                        snapshot.set_service_cidrs(now);
                    }
                }
            }
            let resolution = resolve(&snapshot, &me, &service.name);
            if snapshot.take_dirty(ME).services.contains(&service.name) {
                served = resolution.servers.iter().map(|server| address_of(server.server.key)).collect();
            }
            let refused = resolution.findings.iter().all(|finding| matches!(finding.kind, FindingKind::NodeAddress { .. }));
            prop_assert!(refused, "{:?}", resolution.findings);
            let wanted: BTreeSet<IpAddr> = service.frontends.iter().map(|frontend| frontend.address)
                .filter(|address| !claims::keeps(&nodes, &ranges, ME, *address)).collect();
            prop_assert_eq!(&served, &wanted, "left the engine, right the oracle; {:?} {:?}", nodes, ranges);
        }
    }
}

fn address_of(key: VirtualServerKey) -> IpAddr {
    let VirtualServerKey::Address { address, .. } = key else {
        panic!("no firewall marks here");
    };
    address
}
