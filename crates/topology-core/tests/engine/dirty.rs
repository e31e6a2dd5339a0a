//! Which Services a change makes dirty.

use std::num::NonZeroU16;
use std::sync::Arc;

use topology_core::model::{
    Drain, DrainScope, Family, Frontend, Node, ObjectName, Protocol, Service, TopologyPolicy,
};
use topology_core::policy::Policy;
use topology_core::snapshot::{Dirty, Snapshot};

use crate::world::{ZONE, cluster_policy, drain, ep, node, service, service_port, slice, weighted};

const ME: &str = "me";
const CAPACITY: &str = "topology.ipvs-topo.io/capacity";

/// Services `plain`, `hinted`, `zone` and `node` (by their policies), each with an endpoint on `n1`.
fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.set_node(node(ME, &[(ZONE, "a")]));
    snapshot.set_node(node("n1", &[(ZONE, "a"), ("rack", "1")]));
    let policies = [
        ("plain", None),
        ("hinted", None),
        ("zone", Some(weighted(&[(ZONE, 9), ("*", 1)]))),
        ("node", Some(weighted(&[("node", 9), ("*", 1)]))),
    ];
    for (number, (name, policy)) in (1..).zip(policies) {
        snapshot.set_service(with_policy(name, &format!("10.96.0.{number}"), policy));
        let endpoint = ep(number).on("n1");
        let endpoint = if name == "hinted" {
            endpoint.for_zones(&["a"])
        } else {
            endpoint
        };
        snapshot.set_slice(slice(&format!("{name}-1"), name, [endpoint]));
    }
    snapshot.take_dirty(ME);
    snapshot
}

fn with_policy(name: &str, address: &str, policy: Option<Policy>) -> Service {
    Service {
        policy: policy.map(Arc::new),
        ..service(name, address)
    }
}

/// The Services that a change makes dirty.
fn dirtied(change: impl FnOnce(&mut Snapshot)) -> String {
    let mut snapshot = snapshot();
    change(&mut snapshot);
    names(&snapshot.take_dirty(ME))
}

fn names(dirty: &Dirty) -> String {
    let names: Vec<&str> = dirty.services.iter().map(|name| &*name.name).collect();
    names.join(" ")
}

fn relabelled(name: &str, labels: &[(&str, &str)]) -> impl FnOnce(&mut Snapshot) {
    let node: Node = node(name, labels);
    move |snapshot| snapshot.set_node(node)
}

#[test]
fn d1_a_change_of_a_service_or_slice_touches_that_service() {
    assert_eq!(
        dirtied(|s| s.set_slice(slice("plain-2", "plain", [ep(9)]))),
        "plain"
    );
    assert_eq!(
        dirtied(|s| s.remove_slice(&ObjectName::new("t", "zone-1"))),
        "zone"
    );
    assert_eq!(
        dirtied(|s| s.set_service(service("zone", "10.96.0.3"))),
        "zone"
    );
    assert_eq!(
        dirtied(|s| s.remove_service(&ObjectName::new("t", "zone"))),
        "zone"
    );
}

#[test]
fn a_slice_that_moves_touches_both_services() {
    assert_eq!(
        dirtied(|s| s.set_slice(slice("plain-1", "zone", [ep(1)]))),
        "plain zone"
    );
}

#[test]
fn slices_of_a_missing_service_touch_nothing() {
    let mut snapshot = snapshot();
    snapshot.set_slice(slice("db-1", "headless-db", [ep(9)]));
    assert!(snapshot.take_dirty(ME).is_empty());
    snapshot.remove_slice(&ObjectName::new("t", "db-1"));
    assert!(snapshot.take_dirty(ME).is_empty());
}

#[test]
fn kp_in_04_a_label_touches_services_that_use_it_and_have_an_endpoint_there() {
    assert_eq!(
        dirtied(relabelled("n1", &[(ZONE, "b"), ("rack", "1")])),
        "zone"
    );
    assert_eq!(dirtied(relabelled("n1", &[(ZONE, "a"), ("rack", "2")])), "");
    assert_eq!(
        dirtied(relabelled("n2", &[(ZONE, "b")])),
        "",
        "no endpoint is there"
    );
    assert_eq!(
        dirtied(|s| s.remove_node("n1")),
        "zone",
        "the node level compares names"
    );
}

#[test]
fn a_label_of_the_own_node_touches_services_that_use_it() {
    assert_eq!(dirtied(relabelled(ME, &[(ZONE, "b")])), "hinted zone");
    assert_eq!(dirtied(relabelled(ME, &[(ZONE, "a"), ("rack", "1")])), "");
    assert_eq!(
        dirtied(|s| s.remove_node(ME)),
        "hinted node zone",
        "unknown is another answer"
    );
}

#[test]
fn a_capacity_touches_services_with_levels_and_an_endpoint_there() {
    assert_eq!(
        dirtied(relabelled(
            "n1",
            &[(ZONE, "a"), ("rack", "1"), (CAPACITY, "2")]
        )),
        "node zone"
    );
}

#[test]
fn the_own_nodes_addresses_touch_routes_and_services_with_such_an_address() {
    let mut snapshot = snapshot();
    let mut me = node(ME, &[(ZONE, "a")]);
    me.addresses = vec!["192.168.1.1".parse().unwrap(), "10.96.0.1".parse().unwrap()];
    snapshot.set_node(me.clone());
    let dirty = snapshot.take_dirty(ME);
    assert_eq!((names(&dirty).as_str(), dirty.routes), ("plain", true));
    snapshot.set_node(me);
    assert!(snapshot.take_dirty(ME).is_empty());
}

#[test]
fn d13_claims_of_another_node_inside_the_service_ranges_touch_nothing() {
    let claims = |snapshot: &mut Snapshot, address: &str| {
        let mut other = node("n1", &[(ZONE, "a"), ("rack", "1")]);
        other.addresses = vec![address.parse().unwrap()];
        snapshot.set_node(other);
    };
    let ranges = |snapshot: &mut Snapshot, text: &str| {
        snapshot.set_service_cidrs(vec![text.parse().unwrap()]);
    };
    let mut snapshot = snapshot();
    claims(&mut snapshot, "10.96.0.1");
    assert_eq!(names(&snapshot.take_dirty(ME)), "plain");
    ranges(&mut snapshot, "10.96.0.0/12");
    assert_eq!(
        names(&snapshot.take_dirty(ME)),
        "plain",
        "the claim counts no more"
    );
    for address in ["10.96.0.2", "10.96.0.1", "10.96.0.3"] {
        claims(&mut snapshot, address);
        assert!(snapshot.take_dirty(ME).is_empty());
    }
    ranges(&mut snapshot, "10.200.0.0/16");
    assert_eq!(
        names(&snapshot.take_dirty(ME)),
        "zone",
        "and now it does again"
    );
    // The claim is removed and the ranges change before the next query.
    claims(&mut snapshot, "192.0.2.1");
    ranges(&mut snapshot, "10.96.0.0/12");
    assert_eq!(names(&snapshot.take_dirty(ME)), "zone");
}

#[test]
fn routes_are_touched_by_ranges_and_the_own_node_only() {
    let routes = |change: &dyn Fn(&mut Snapshot)| {
        let mut snapshot = snapshot();
        change(&mut snapshot);
        snapshot.take_dirty(ME).routes
    };
    let with_pods = |name: &str| Node {
        pod_cidrs: vec!["10.244.7.0/24".parse().unwrap()],
        ..node(name, &[(ZONE, "a")])
    };
    assert!(routes(&|s| s.set_node(with_pods(ME))));
    assert!(!routes(&|s| s.set_node(with_pods("n1"))));
    // Their addresses are changes of these Services.
    assert!(!routes(&|s| s.set_service(service("new", "10.96.0.9"))));
    assert!(!routes(
        &|s| s.remove_service(&ObjectName::new("t", "plain"))
    ));
    assert!(routes(
        &|s| s.set_service_cidrs(vec!["10.96.0.0/16".parse().unwrap()])
    ));
    assert!(!routes(&|s| s.set_slice(slice(
        "plain-1",
        "plain",
        [ep(7)]
    ))));
    assert!(!routes(&|s| s.set_service(with_policy(
        "plain",
        "10.96.0.1",
        Some(weighted(&[("*", 1)]))
    ))));
}

#[test]
fn kp_sy_18_a_new_owner_of_an_address_touches_every_claimant() {
    let mut snapshot = snapshot();
    snapshot.set_service(service("rival", "10.96.0.1"));
    assert_eq!(names(&snapshot.take_dirty(ME)), "rival", "plain keeps it");
    let mut older = service("rival", "10.96.0.1");
    older.created = Some(1);
    snapshot.set_service(older.clone());
    assert_eq!(names(&snapshot.take_dirty(ME)), "plain rival");
    older.created = Some(2);
    snapshot.set_service(older);
    assert_eq!(
        names(&snapshot.take_dirty(ME)),
        "plain rival",
        "the age of the owner is in the finding"
    );
    snapshot.remove_service(&ObjectName::new("t", "rival"));
    assert_eq!(names(&snapshot.take_dirty(ME)), "plain rival");
}

/// Tenants may publish any number of Services at one external address and port.
#[test]
fn d13_an_edit_touches_no_other_claimant_of_an_address_while_its_owner_stays() {
    let mut snapshot = snapshot();
    let claimant = |number: u8| {
        let mut claimant = service(&format!("c{number}"), &format!("10.96.1.{number}"));
        claimant.created = Some(i64::from(number));
        let address = "192.0.2.1".parse().unwrap();
        claimant.frontends.push(Frontend::external_ip(address));
        claimant
    };
    for number in (1..=9).rev() {
        snapshot.set_service(claimant(number));
    }
    assert_eq!(
        names(&snapshot.take_dirty(ME)),
        "c1 c2 c3 c4 c5 c6 c7 c8 c9"
    );
    let mut edited = |change: &dyn Fn(&mut Service), number| {
        let mut service = claimant(number);
        change(&mut service);
        snapshot.set_service(service);
        let touched = names(&snapshot.take_dirty(ME));
        snapshot.set_service(claimant(number));
        snapshot.take_dirty(ME);
        touched
    };
    let label = |service: &mut Service| {
        service.labels = [("a".into(), "b".into())].into_iter().collect();
    };
    let port = |service: &mut Service| {
        let other = service_port("other", Protocol::Tcp, 81);
        service.ports.push(other);
    };
    let leave = |service: &mut Service| service.frontends.truncate(1);
    for number in [1, 5] {
        let own = format!("c{number}");
        assert_eq!(edited(&label, number), own);
        assert_eq!(edited(&port, number), own);
    }
    assert_eq!(edited(&leave, 5), "c5");
    assert_eq!(edited(&leave, 1), "c1 c2 c3 c4 c5 c6 c7 c8 c9");
    // Between two queries only the owner at the end counts.
    snapshot.remove_service(&claimant(1).name);
    snapshot.set_service(claimant(1));
    assert_eq!(names(&snapshot.take_dirty(ME)), "c1");
}

/// On a node with the address, a node port and the same port at the external address are one.
#[test]
fn a_new_owner_of_a_node_port_touches_the_services_with_the_port_at_an_external_address() {
    let mut snapshot = snapshot();
    let mut outside = service("outside", "10.96.1.1");
    let address = "192.0.2.1".parse().unwrap();
    outside.frontends.push(Frontend::load_balancer(address));
    outside.ports = vec![service_port("http", Protocol::Tcp, 30_080)];
    let with_node_port = |name: &str, address: &str, created| {
        let mut service = service(name, address);
        service.created = Some(created);
        service.frontends.push(Frontend::node_port(Family::V4));
        service.ports[0].node_port = NonZeroU16::new(30_080);
        service
    };
    snapshot.set_service(outside.clone());
    snapshot.take_dirty(ME);
    let mut touched = |service: Service| {
        snapshot.set_service(service);
        names(&snapshot.take_dirty(ME))
    };
    let first = with_node_port("first", "10.96.1.2", 5);
    assert_eq!(touched(first.clone()), "first outside");
    let younger = with_node_port("younger", "10.96.1.3", 6);
    assert_eq!(touched(younger), "younger");
    let older = with_node_port("older", "10.96.1.4", 4);
    assert_eq!(touched(older), "first older outside younger");
    outside.created = Some(1);
    assert_eq!(touched(outside), "first older outside younger");
}

#[test]
fn ranges_are_the_same_in_any_order() {
    let mut snapshot = snapshot();
    let range = |text: &str| text.parse().unwrap();
    snapshot.set_service_cidrs(vec![range("10.96.0.0/16"), range("10.0.0.0/24")]);
    snapshot.take_dirty(ME);
    snapshot.set_service_cidrs(vec![
        range("10.0.0.0/24"),
        range("10.96.0.0/16"),
        range("10.0.0.0/24"),
    ]);
    assert!(snapshot.take_dirty(ME).is_empty());
}

/// Applies `change` before and after a cluster policy for every Service.
fn dirtied_under(object: TopologyPolicy, change: impl FnOnce(&mut Snapshot)) -> String {
    dirtied(|snapshot| {
        snapshot.set_policy(object);
        snapshot.take_dirty(ME);
        change(snapshot);
    })
}

fn object(policy: Policy) -> TopologyPolicy {
    cluster_policy("p", policy)
}

#[test]
fn a_policy_touches_the_services_it_selects() {
    let all = object(weighted(&[(ZONE, 1), ("*", 0)]));
    let none = TopologyPolicy {
        namespace: Some("other".into()),
        ..all.clone()
    };
    assert_eq!(dirtied(|snapshot| snapshot.set_policy(none)), "");
    assert_eq!(
        dirtied(|snapshot| snapshot.set_policy(all.clone())),
        "hinted node plain zone"
    );
    assert_eq!(
        dirtied_under(all.clone(), |snapshot| snapshot.set_policy(all.clone())),
        ""
    );
    assert_eq!(
        dirtied_under(all.clone(), |snapshot| snapshot.remove_policy(None, "p")),
        "hinted node plain zone"
    );
}

#[test]
fn a_policy_brings_its_labels_to_the_services_it_selects() {
    let racks = object(weighted(&[("rack", 1), ("*", 0)]));
    let moved =
        |snapshot: &mut Snapshot| snapshot.set_node(node("n1", &[(ZONE, "a"), ("rack", "2")]));
    assert_eq!(dirtied(moved), "");
    assert_eq!(dirtied_under(racks, moved), "hinted node plain zone");
}

#[test]
fn a_cap_makes_every_node_count() {
    let mut policy = weighted(&[("node", 1), ("*", 0)]);
    let another = |snapshot: &mut Snapshot| snapshot.set_node(node("n9", &[]));
    assert_eq!(dirtied_under(object(policy.clone()), another), "");
    policy.max_overload = Some(20);
    assert_eq!(
        dirtied_under(object(policy.clone()), another),
        "hinted node plain zone"
    );
    let unready = |snapshot: &mut Snapshot| {
        let known = snapshot.node("n1").unwrap().clone();
        snapshot.set_node(Node {
            ready: false,
            ..known
        });
    };
    assert_eq!(
        dirtied_under(object(policy), unready),
        "hinted node plain zone"
    );
    assert_eq!(dirtied(unready), "");
}

#[test]
fn a_drain_touches_services_with_an_endpoint_in_it_and_then_the_label_it_names() {
    let shift = drain("rack", &["1"]);
    let touched = "hinted node plain zone";
    let elsewhere = |snapshot: &mut Snapshot| {
        snapshot.set_node(node("n2", &[(ZONE, "b"), ("rack", "2")]));
        snapshot.set_slice(slice("zone-1", "zone", [ep(3).on("n2")]));
        snapshot.set_slice(slice("plain-1", "plain", [ep(1).zone("b")]));
        snapshot.take_dirty(ME);
    };
    assert_eq!(dirtied(|s| s.set_drain(shift.clone())), touched);
    assert_eq!(dirtied(|s| s.set_drain(drain("rack", &["9"]))), "");
    let some = |drain: Drain| {
        dirtied(|snapshot| {
            elsewhere(snapshot);
            snapshot.set_drain(drain);
        })
    };
    assert_eq!(some(shift.clone()), "hinted node");
    assert_eq!(some(drain("node", &["n2"])), "zone");
    assert_eq!(some(drain(ZONE, &["b"])), "plain zone");
    let moved = |snapshot: &mut Snapshot| {
        snapshot.set_drain(shift.clone());
        snapshot.take_dirty(ME);
        snapshot.set_node(node("n1", &[(ZONE, "a"), ("rack", "2")]));
    };
    assert_eq!(dirtied(moved), touched);
    let gone_and_moved = |snapshot: &mut Snapshot| {
        snapshot.set_drain(shift.clone());
        snapshot.take_dirty(ME);
        snapshot.remove_drain(&shift.name);
        snapshot.set_node(node("n1", &[(ZONE, "a"), ("rack", "2")]));
    };
    assert_eq!(dirtied(gone_and_moved), touched);
}

#[test]
fn a_drain_of_clients_touches_services_whose_levels_this_node_leaves() {
    let of_clients = |key: &str, value: &str| Drain {
        scope: DrainScope::Clients,
        ..drain(key, &[value])
    };
    let touched = |drain: Drain| dirtied(|snapshot| snapshot.set_drain(drain));
    assert_eq!(touched(of_clients(ZONE, "a")), "node zone");
    assert_eq!(touched(of_clients("node", ME)), "node");
    assert_eq!(touched(of_clients(ZONE, "b")), "", "another zone");
    assert_eq!(
        touched(of_clients("rack", "1")),
        "",
        "this node has no rack"
    );
}

#[test]
fn labels_of_a_namespace_touch_its_services_if_a_policy_selects_by_them() {
    let labelled = |snapshot: &mut Snapshot| {
        let tier: (Arc<str>, Arc<str>) = ("tier".into(), "web".into());
        snapshot.set_namespace("t", [tier].into_iter().collect());
    };
    assert_eq!(dirtied(labelled), "");
    let mut picky = object(weighted(&[("*", 1)]));
    picky
        .namespace_selector
        .labels
        .push(("tier".into(), "web".into()));
    assert_eq!(dirtied_under(picky, labelled), "hinted node plain zone");
}
