//! Computes desired routes and nftables state from Services and the host's addresses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use dataplane::nftables::{DesiredTables, Element, SetElement, SetId};
use dataplane::routes::address_monitor::RemovedAddresses;
use dataplane::routes::addresses::NodeIps;
use dataplane::routes::{self, LocalRoute, RouteDelta};
use topology_core::model::{Family, IpNetwork};
use topology_core::snapshot::Snapshot;

use super::addresses::HostAddresses;
use super::clients::ClientConfig;
use super::desired::DesiredServices;

/// What decides about the route of a Service address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) ranges: BTreeSet<IpNetwork>,
    node_ips: NodeIps,
    /// The families that have Service addresses.
    pub(super) families: BTreeSet<Family>,
}

impl Placement {
    /// Whether one of the addresses may be the source of routes.
    pub(super) fn has_source_in(&self, addresses: &RemovedAddresses) -> bool {
        let NodeIps { v4, v6 } = &self.node_ips;
        let mut sources = v4.iter().chain(v6);
        sources.any(|source| addresses.may_include(source))
    }

    /// Whether the node has an address for the routes of some family.
    pub(super) fn has_source(&self) -> bool {
        self.node_ips.v4.is_some() || self.node_ips.v6.is_some()
    }

    /// The routes of Service addresses that were added and removed.
    pub(super) fn route_delta(&self, vips: [Vec<IpAddr>; 2]) -> RouteDelta {
        let of = |vips: Vec<IpAddr>| {
            routes::address_routes(&self.ranges, vips.into_iter(), &self.node_ips)
        };
        let [added, removed] = vips.map(of);
        RouteDelta { added, removed }
    }
}

/// The elements of the addresses of routes.
pub(super) fn elements_of(routes: &BTreeSet<LocalRoute>) -> impl Iterator<Item = SetElement> {
    let routes = routes.iter();
    routes.map(|route| (SetId::Vips, Element::Address(route.to.ip())))
}

/// The desired routes and nftables state.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HostPlan {
    pub(super) placement: Placement,
    pub(super) routes: BTreeSet<LocalRoute>,
    pub(super) tables: DesiredTables,
}

/// The inputs of a plan.
pub(super) struct HostInput<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// This node's name.
    pub(super) node: &'a str,
    pub(super) desired: &'a DesiredServices,
    pub(super) addresses: &'a HostAddresses,
    /// `--node-ip`.
    pub(super) node_ips: &'a [IpAddr],
    pub(super) clients: ClientConfig<'a>,
}

/// Returns the plan, and warnings about addresses, one line each.
pub(super) fn host_plan(input: &HostInput<'_>) -> (HostPlan, Vec<String>) {
    let HostInput {
        snapshot,
        node,
        desired,
        addresses,
        node_ips,
        clients,
    } = input;
    let node = snapshot.node(node);
    let inside = clients.inside(node);
    let rules = clients.rules(node);
    let vips: BTreeSet<IpAddr> = desired.vips().collect();
    let mut warnings = clients.warnings(node, &vips);
    warnings.extend(clients.outside_pods(&inside, &marked_families(desired)));
    let node: &[IpAddr] = node.map_or(&[], |node| &node.addresses);
    let (ranges, refused) =
        routes::usable_ranges(snapshot.service_cidrs(), node, addresses.interfaces());
    let node_ips = addresses.node_ips(node_ips, node);
    warnings.extend(refused.iter().map(ToString::to_string));
    warnings.extend(missing_sources(&node_ips, &vips));
    let tables = tables(&ranges, &vips, desired, &addresses.all())
        .with_options(rules)
        .with(SetId::Inside, inside.into_iter().map(Element::Range));
    let routes = routes::desired_routes(&ranges, vips.into_iter(), &node_ips);
    let plan = HostPlan {
        placement: Placement {
            ranges,
            node_ips,
            families: desired.vip_families(),
        },
        routes,
        tables,
    };
    (plan, warnings)
}

fn tables(
    ranges: &BTreeSet<IpNetwork>,
    vips: &BTreeSet<IpAddr>,
    desired: &DesiredServices,
    own: &BTreeSet<IpAddr>,
) -> DesiredTables {
    let inside = |ip: &IpAddr| ranges.iter().any(|range| range.contains(*ip));
    let outside = vips.iter().copied().filter(|vip| !inside(vip));
    let elements = desired
        .elements()
        .filter(|element| !is_own_pair(element, own));
    let own_inside = own.iter().copied().filter(inside);
    let tables = DesiredTables::default()
        .with(SetId::Cidrs, ranges.iter().copied().map(Element::Range))
        .with(SetId::Vips, outside.map(Element::Address))
        .with(SetId::Own, own_inside.map(Element::Address));
    elements.fold(tables, |tables, (set, element)| tables.with(set, [element]))
}

/// Whether the element is for an endpoint with an address of the node, whose packets to itself never leave it.
pub(super) fn is_own_pair((_, element): &SetElement, own: &BTreeSet<IpAddr>) -> bool {
    matches!(element, Element::Pair(ip) if own.contains(ip))
}

/// The families with ports at which outside clients get endpoints of their own.
fn marked_families(desired: &DesiredServices) -> BTreeSet<Family> {
    let family = |(_, element): SetElement| {
        let Element::Mark(address, ..) = element else {
            return None;
        };
        Some(Family::of(address))
    };
    desired.elements().filter_map(family).collect()
}

/// A family with Services but without a node address.
fn missing_sources(node: &NodeIps, vips: &BTreeSet<IpAddr>) -> Vec<String> {
    let families = [(Family::V4, node.v4), (Family::V6, node.v6)];
    let missing = families
        .into_iter()
        .filter(|(family, ip)| ip.is_none() && vips.iter().any(|vip| Family::of(*vip) == *family));
    let words = |(family, _)| {
        format!(
            "this machine has no {family} address of its own, so its own processes cannot use {family} Services; \
             give it one, or name it with --node-ip"
        )
    };
    missing.map(words).collect()
}

#[cfg(test)]
mod tests {
    use cluster::index::Index;
    use dataplane::routes::addresses::Interface;
    use topology_core::model::ObjectName;

    use super::super::desired::DesiredService;
    use super::*;
    use crate::agent_config::{DetectLocal, StrictArp};

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// The plan of a node with one Service at `vip` and a local endpoint.
    fn plan(vip: &str, own: &[&str], node_ips: &[IpAddr]) -> (HostPlan, Vec<String>) {
        let index = Index::new(vec!["10.96.0.0/12".parse().unwrap()]);
        let mut desired = DesiredServices::default();
        let service = DesiredService {
            vips: [ip(vip)].into_iter().collect(),
            elements: [
                (SetId::Hairpin, Element::Pair(ip("10.244.1.2"))),
                (SetId::Hairpin, Element::Pair(ip("192.168.1.9"))),
            ]
            .into_iter()
            .collect(),
            ..DesiredService::default()
        };
        desired.replace(&ObjectName::new("t", "web"), service);
        let interface = |address: &&str| Interface {
            link: "eth0".to_owned(),
            address: ip(address),
            prefix: 24,
            global: true,
        };
        let addresses = HostAddresses::new(own.iter().map(interface).collect(), Vec::new());
        host_plan(&HostInput {
            snapshot: index.snapshot(),
            node: "n1",
            desired: &desired,
            addresses: &addresses,
            node_ips,
            clients: ClientConfig {
                cluster_cidrs: &[],
                detect_local: &DetectLocal::ClusterCidr,
                masquerade_all: false,
                strict_arp: StrictArp::NoReplies,
            },
        })
    }

    fn routes(plan: &HostPlan) -> Vec<String> {
        plan.routes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_address_in_a_range_has_the_ranges_route_and_no_element_of_its_own() {
        let (plan, warnings) = plan("10.96.0.10", &["192.168.1.1", "192.168.1.9"], &[]);
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(
            routes(&plan),
            ["local 10.96.0.0/12 dev lo table local proto 173 src 192.168.1.1"]
        );
        let range = "10.96.0.0/12".parse().unwrap();
        let expected = DesiredTables::default()
            .with(SetId::Cidrs, [Element::Range(range)])
            .with(SetId::Hairpin, [Element::Pair(ip("10.244.1.2"))]);
        assert_eq!(plan.tables, expected);
    }

    #[test]
    fn an_address_outside_of_every_range_has_a_route_and_an_element() {
        let (plan, _) = plan(
            "203.0.113.7",
            &["192.168.1.1", "192.168.1.2"],
            &[ip("192.168.1.2")],
        );
        let host = "local 203.0.113.7/32 dev lo table local proto 173 src 192.168.1.2";
        assert!(
            routes(&plan).contains(&host.to_owned()),
            "{:?}",
            routes(&plan)
        );
        let vip = DesiredTables::default().with(SetId::Vips, [Element::Address(ip("203.0.113.7"))]);
        assert!(!plan.tables.lacks_any_of(&vip));
    }

    #[test]
    fn a_range_that_covers_a_link_is_refused_and_a_node_without_address_warned_of() {
        let (refused, warnings) = plan("10.96.0.10", &["10.96.0.1"], &[]);
        assert!(refused.placement.ranges.is_empty());
        assert!(
            warnings[0].contains("10.96.0.1/24 of link eth0"),
            "{warnings:?}"
        );
        let (_, warnings) = plan("10.96.0.10", &[], &[]);
        assert!(warnings[0].contains("--node-ip"), "{warnings:?}");
    }
}
