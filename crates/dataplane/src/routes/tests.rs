//! The desired routes, and their encoding.

use std::collections::BTreeSet;
use std::net::IpAddr;

use topology_core::model::IpNetwork;

use super::addresses::{Candidates, Interface, NodeIps};
use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn cidr(text: &str) -> IpNetwork {
    text.parse().unwrap()
}

fn interface(link: &str, address: &str, prefix: u8) -> Interface {
    Interface {
        link: link.to_owned(),
        address: ip(address),
        prefix,
        global: true,
    }
}

fn node_ips() -> NodeIps {
    NodeIps {
        v4: Some(ip("192.168.10.11")),
        v6: Some(ip("fd00:10::11")),
    }
}

fn texts(routes: &BTreeSet<LocalRoute>) -> Vec<String> {
    routes.iter().map(ToString::to_string).collect()
}

#[test]
fn d2_one_route_for_a_range_and_one_for_each_address_outside() {
    let ranges = BTreeSet::from([cidr("10.96.0.0/12"), cidr("fd00:10:96::/112")]);
    let vips = ["10.96.0.10", "203.0.113.7", "fd00:10:96::a", "2001:db8::7"].map(ip);
    assert_eq!(
        texts(&desired_routes(&ranges, vips.into_iter(), &node_ips())),
        [
            "local 10.96.0.0/12 dev lo table local proto 173 src 192.168.10.11",
            "local 203.0.113.7/32 dev lo table local proto 173 src 192.168.10.11",
            "local 2001:db8::7/128 dev lo table local proto 173 src fd00:10::11",
            "local fd00:10:96::/112 dev lo table local proto 173 src fd00:10::11",
        ]
    );
}

#[test]
fn a_range_that_covers_this_node_or_a_link_is_refused() {
    let own = [ip("10.96.4.2")];
    let links = [
        interface("eth0", "172.20.0.5", 16),
        interface("dns", "10.100.0.10", 32),
    ];
    let ranges = [
        cidr("10.96.0.0/16"),
        cidr("10.100.0.0/16"),
        cidr("172.20.8.0/24"),
    ];
    let (usable, refused) = usable_ranges(&ranges, &own, &links);
    assert_eq!(usable, BTreeSet::from([cidr("10.100.0.0/16")]));
    let words: Vec<_> = refused
        .iter()
        .map(|refused| refused.swallows.as_str())
        .collect();
    assert_eq!(
        words,
        [
            "10.96.4.2 of this Node",
            "the network 172.20.0.5/16 of link eth0"
        ]
    );
}

#[test]
fn a_range_inside_another_needs_no_route() {
    let ranges = [cidr("10.96.0.0/12"), cidr("10.97.0.0/16")];
    let (usable, _) = usable_ranges(&ranges, &[], &[]);
    assert_eq!(usable, BTreeSet::from([cidr("10.96.0.0/12")]));
}

#[test]
fn the_nodes_address_is_taken_from_the_best_source_that_this_machine_has() {
    let here = [
        interface("eth0", "192.168.10.11", 24),
        interface("eth1", "10.0.0.11", 24),
        interface("eth0", "fd00:10::11", 64),
    ];
    let choose = |flags: &[IpAddr], node: &[IpAddr], default_route: &[IpAddr]| {
        Candidates {
            flags,
            node,
            default_route,
        }
        .choose(&here)
    };
    let [a, b, elsewhere] = ["192.168.10.11", "10.0.0.11", "192.168.99.9"].map(ip);
    assert_eq!(choose(&[b], &[a], &[]).v4, Some(b), "the flag wins");
    assert_eq!(
        choose(&[], &[elsewhere, b], &[]).v4,
        Some(b),
        "what the machine lacks does not count"
    );
    assert_eq!(
        choose(&[], &[elsewhere], &[b]).v4,
        Some(b),
        "then the default route"
    );
    assert_eq!(
        choose(&[], &[], &[]),
        node_ips(),
        "then the first global address of each family"
    );
}

mod wire {
    use netlink_packet_core::{Emitable as _, Parseable as _};
    use netlink_packet_route::route::RouteMessage;

    use super::super::wire::{listed, route_message};
    use super::*;

    #[test]
    fn an_encoded_route_decodes_to_the_same() {
        for (to, source) in [
            ("10.96.0.0/12", Some("192.168.10.11")),
            ("2001:db8::7/128", None),
        ] {
            let route = LocalRoute {
                to: cidr(to),
                source: source.map(ip),
            };
            let message = route_message(&route, 1);
            let mut bytes = vec![0; message.buffer_len()];
            message.emit(&mut bytes);
            let back = listed(&RouteMessage::parse(&bytes).unwrap()).unwrap();
            assert_eq!((back.route, back.protocol), (route, PROTOCOL));
        }
    }
}
