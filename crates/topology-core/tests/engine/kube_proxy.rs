//! kube-proxy's own table of endpoint selection, rows C1 to C30, through the whole engine.
//!
//! The cluster list is what a cluster IP gets with `internalTrafficPolicy: Cluster`, the local list what it gets with
//! `Local`. `categorize` says which of the two kube-proxy would compute.

use std::collections::BTreeSet;

use topology_core::model::{Endpoint, Family, Frontend, TrafficPolicy};
use topology_core::resolve::categorize::{
    Categories, NodeHints, ProxyLocation, TrafficPolicies, categorize,
};

use crate::world::{Ep, World, ZONE, ep};

/// One row. Endpoints are numbered from 1.
struct Row {
    node: &'static str,
    zone: Option<&'static str>,
    node_hints: NodeHints,
    traffic: TrafficPolicies,
    endpoints: Vec<Ep>,
}

const INTERNAL: TrafficPolicies = TrafficPolicies {
    internal: TrafficPolicy::Cluster,
    external: TrafficPolicy::Cluster,
    externally_accessible: false,
};

fn row(zone: Option<&'static str>, endpoints: impl IntoIterator<Item = Ep>) -> Row {
    Row {
        node: "me",
        zone,
        node_hints: NodeHints::Honoured,
        traffic: INTERNAL,
        endpoints: endpoints.into_iter().collect(),
    }
}

impl Row {
    fn on(self, node: &'static str) -> Self {
        Self { node, ..self }
    }

    /// Kubernetes up to 1.34 with the gate `PreferSameTrafficDistribution` off.
    fn without_node_hints(self) -> Self {
        Self {
            node_hints: NodeHints::Ignored,
            ..self
        }
    }

    fn internal_local(mut self) -> Self {
        self.traffic.internal = TrafficPolicy::Local;
        self
    }

    fn external_local(mut self) -> Self {
        self.traffic.external = TrafficPolicy::Local;
        self
    }

    fn node_port(mut self) -> Self {
        self.traffic.externally_accessible = true;
        self
    }

    fn categories(&self) -> Categories {
        let endpoints: Vec<&Endpoint> = self.endpoints.iter().map(|ep| &ep.0).collect();
        let place = ProxyLocation {
            node: self.node,
            zone: self.zone,
        };
        categorize(&endpoints, self.traffic, place, self.node_hints)
    }

    /// The endpoints that a cluster IP gets under a policy, by number.
    fn resolved(&self, internal: TrafficPolicy) -> BTreeSet<u8> {
        let labels: Vec<(&str, &str)> = self.zone.map(|zone| (ZONE, zone)).into_iter().collect();
        let mut endpoints = self.endpoints.clone();
        if self.node_hints == NodeHints::Ignored {
            // With the feature gate off, the API server drops the field.
            let hints = endpoints.iter_mut().filter_map(|ep| ep.0.hints.as_mut());
            hints.for_each(|hints| hints.nodes.clear());
        }
        let mut world = World::new(self.node)
            .node(self.node, &labels)
            .endpoints(endpoints);
        world.service.internal_traffic_policy = internal;
        world.service.external_traffic_policy = self.traffic.external;
        if self.traffic.externally_accessible {
            world
                .service
                .frontends
                .push(Frontend::node_port(Family::V4));
        }
        let server = world.server();
        assert_eq!(server.decision.endpoints.len(), self.endpoints.len());
        let real_servers = server.server.real_servers;
        assert!(real_servers.iter().all(|real| real.weight == 1), "I1");
        let number = |address: std::net::IpAddr| match address {
            std::net::IpAddr::V4(v4) => v4.octets()[3],
            std::net::IpAddr::V6(_) => 0,
        };
        real_servers
            .iter()
            .map(|real| number(real.address))
            .collect()
    }

    /// Expected lists by endpoint number; `None` if kube-proxy does not compute the list.
    #[track_caller]
    fn expect(self, cluster: Option<&[u8]>, local: Option<&[u8]>) -> Categories {
        let categories = self.categories();
        let numbers = |list: &Vec<usize>| -> BTreeSet<u8> {
            list.iter()
                .map(|index| u8::try_from(index + 1).unwrap())
                .collect()
        };
        let expected =
            |list: Option<&[u8]>| list.map(|list| list.iter().copied().collect::<BTreeSet<_>>());
        assert_eq!(
            categories.cluster.as_ref().map(numbers),
            expected(cluster),
            "cluster"
        );
        assert_eq!(
            categories.local.as_ref().map(numbers),
            expected(local),
            "local"
        );
        if let Some(cluster) = expected(cluster) {
            assert_eq!(
                self.resolved(TrafficPolicy::Cluster),
                cluster,
                "resolved for Cluster"
            );
        }
        if let Some(local) = expected(local) {
            assert_eq!(
                self.resolved(TrafficPolicy::Local),
                local,
                "resolved for Local"
            );
        }
        categories
    }
}

fn zone(number: u8, zone: &str) -> Ep {
    ep(number).for_zones(&[zone])
}

fn both(number: u8, node: &str, zone: &str) -> Ep {
    ep(number).for_nodes(&[node]).for_zones(&[zone])
}

fn here(number: u8) -> Ep {
    ep(number).on("me")
}

fn there(number: u8) -> Ep {
    ep(number).on("other")
}

fn hinted_and_local() -> [Ep; 4] {
    [
        zone(1, "a").on("me"),
        zone(2, "b").on("me"),
        zone(3, "c"),
        zone(4, "a"),
    ]
}

#[test]
fn c1_only_endpoints_hinted_for_the_zone() {
    let endpoints = [zone(1, "a"), zone(2, "b"), zone(3, "c"), zone(4, "a")];
    row(Some("a"), endpoints).expect(Some(&[1, 4]), None);
}

#[test]
fn c2_external_local_besides_hints() {
    let row = row(Some("a"), hinted_and_local())
        .external_local()
        .node_port();
    let categories = row.expect(Some(&[1, 4]), Some(&[1, 2]));
    assert_eq!(categories.union(), [0, 1, 3]);
}

#[test]
fn c3_internal_local_besides_hints() {
    let row = row(Some("a"), hinted_and_local())
        .internal_local()
        .node_port();
    let categories = row.expect(Some(&[1, 4]), Some(&[1, 2]));
    assert_eq!(categories.union(), [0, 1, 3]);
}

#[test]
fn c4_a_node_without_labels_uses_all() {
    row(None, [zone(1, "a")]).expect(Some(&[1]), None);
}

#[test]
fn c5_a_node_with_an_empty_zone_uses_all() {
    row(Some(""), [zone(1, "a")]).expect(Some(&[1]), None);
}

#[test]
fn c6_a_zone_that_no_hint_names_uses_all() {
    row(Some("b"), [zone(1, "a")]).expect(Some(&[1]), None);
}

#[test]
fn c7_an_unready_endpoint_of_the_zone_is_not_used() {
    let endpoints = [
        zone(1, "a"),
        zone(2, "b"),
        zone(3, "c"),
        zone(4, "a").unready(),
    ];
    row(Some("a"), endpoints).expect(Some(&[1]), None);
}

#[test]
fn c8_a_zone_with_unready_endpoints_only_uses_all_ready() {
    let endpoints = [
        zone(1, "a").unready(),
        zone(2, "b"),
        zone(3, "c"),
        zone(4, "a").unready(),
    ];
    row(Some("a"), endpoints).expect(Some(&[2, 3]), None);
}

#[test]
fn c9_one_missing_hint_switches_hints_off() {
    let endpoints = [zone(1, "a"), zone(2, "b"), ep(3), zone(4, "a")];
    row(Some("a"), endpoints).expect(Some(&[1, 2, 3, 4]), None);
}

#[test]
fn c10_an_endpoint_may_be_hinted_for_several_zones() {
    let endpoints = [
        ep(1).for_zones(&["a", "b", "c"]),
        ep(2).for_zones(&["b", "c"]),
        ep(3).for_zones(&["b", "d"]),
        ep(4).for_zones(&["c"]),
    ];
    row(Some("c"), endpoints).expect(Some(&[1, 2, 4]), None);
}

fn with_node_hints() -> [Ep; 4] {
    [
        both(1, "n1", "a"),
        both(2, "n2", "b"),
        both(3, "n3", "c"),
        both(4, "n4", "a"),
    ]
}

#[test]
fn c11_with_the_gate_off_node_hints_do_not_count() {
    let row = row(Some("a"), with_node_hints())
        .on("n1")
        .without_node_hints();
    row.expect(Some(&[1, 4]), None);
}

#[test]
fn c12_node_hints_go_before_zone_hints() {
    row(Some("a"), with_node_hints())
        .on("n1")
        .expect(Some(&[1]), None);
}

#[test]
fn c13_one_endpoint_without_hints_switches_both_off() {
    let mut endpoints = with_node_hints();
    endpoints[1] = ep(2);
    row(Some("a"), endpoints)
        .on("n1")
        .expect(Some(&[1, 2, 3, 4]), None);
}

#[test]
fn c14_a_node_that_no_hint_names_falls_back_to_its_zone() {
    row(Some("a"), with_node_hints())
        .on("n0")
        .expect(Some(&[1, 4]), None);
}

#[test]
fn c15_external_local_and_internal_hints() {
    let endpoints = [
        zone(1, "a").on("me"),
        zone(2, "b").on("me"),
        zone(3, "a"),
        zone(4, "b"),
    ];
    let row = row(Some("a"), endpoints).external_local().node_port();
    let categories = row.expect(Some(&[1, 3]), Some(&[1, 2]));
    assert_eq!(categories.union(), [0, 1, 2]);
}

#[test]
fn c16_internal_local_without_endpoints() {
    let categories = row(None, []).internal_local().expect(None, Some(&[]));
    assert!(!categories.has_any);
}

#[test]
fn c17_internal_local_with_remote_endpoints_only() {
    let row = row(None, [there(1), there(2)]).internal_local();
    assert!(row.expect(None, Some(&[])).has_any);
}

#[test]
fn c18_internal_local_with_local_endpoints() {
    row(None, [here(1), here(2)])
        .internal_local()
        .expect(None, Some(&[1, 2]));
}

#[test]
fn c19_internal_local_with_one_local_endpoint() {
    row(None, [here(1), there(2)])
        .internal_local()
        .expect(None, Some(&[1]));
}

#[test]
fn c20_nothing_ready() {
    let categories = row(None, [ep(1).unready(), ep(2).unready()]).expect(Some(&[]), None);
    assert!(!categories.has_any);
}

#[test]
fn c21_one_ready() {
    row(None, [ep(1).unready(), ep(2)]).expect(Some(&[2]), None);
}

#[test]
fn c22_all_terminating_but_serving() {
    let row = row(None, [here(1).leaving(), there(2).leaving()]);
    assert!(row.expect(Some(&[1, 2]), None).has_any);
}

#[test]
fn c23_internal_local_external_cluster() {
    let row = row(None, [here(1), there(2)]).internal_local().node_port();
    row.expect(Some(&[1, 2]), Some(&[1]));
}

#[test]
fn c24_internal_cluster_external_local() {
    let row = row(None, [here(1), there(2)]).external_local().node_port();
    row.expect(Some(&[1, 2]), Some(&[1]));
}

#[test]
fn c25_both_local() {
    let row = row(None, [here(1), there(2)])
        .internal_local()
        .external_local();
    row.node_port().expect(Some(&[1, 2]), Some(&[1]));
}

#[test]
fn c26_both_local_without_local_endpoints() {
    let row = row(None, [there(1), there(2)])
        .internal_local()
        .external_local();
    row.node_port().expect(Some(&[1, 2]), Some(&[]));
}

#[test]
fn c27_both_local_with_remote_terminating_endpoints() {
    let row = row(None, [there(1).leaving(), there(2).leaving()]);
    let row = row.internal_local().external_local().node_port();
    assert!(row.expect(Some(&[1, 2]), Some(&[])).has_any);
}

#[test]
fn c28_external_local_falls_back_to_serving_endpoints_here() {
    let endpoints = [
        there(1),
        here(2).unready(),
        here(3).leaving(),
        there(4).leaving(),
    ];
    let row = row(None, endpoints).external_local().node_port();
    let categories = row.expect(Some(&[1]), Some(&[3]));
    assert_eq!(categories.union(), [0, 2]);
}

#[test]
fn c29_external_local_does_not_matter_without_a_way_in() {
    row(None, [there(1), here(2)])
        .external_local()
        .expect(Some(&[1, 2]), None);
}

#[test]
fn c30_internal_local_alone() {
    row(None, [there(1), here(2)])
        .internal_local()
        .expect(None, Some(&[2]));
}

#[test]
fn a_node_without_a_zone_may_still_be_named_by_node_hints() {
    row(None, with_node_hints())
        .on("n1")
        .expect(Some(&[1]), None);
}
