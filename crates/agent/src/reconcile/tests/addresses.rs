//! Tests Service addresses that the machine also has.

use std::collections::BTreeSet;
use std::num::NonZeroU16;

use cluster::object::Object;
use dataplane::nftables::{Element, SetId};
use dataplane::routes::LocalRoute;
use dataplane::routes::address_monitor::RemovedAddresses;
use dataplane::routes::addresses::Interface;
use topology_core::model::{Family, Frontend, IpNetwork, NodePortEntry};

use super::fake::Shared;
use super::script::{Loop, added, node, service, slice};
use super::{TCP, web};
use crate::node_warning::Topic;
use crate::state::ProgramStatus;

#[tokio::test(start_paused = true)]
async fn t03_an_address_of_the_machine_is_refused_until_the_machine_loses_it() {
    let mut agent = Loop::over(&Shared::default());
    let own = Interface {
        link: "eth1".to_owned(),
        address: "10.96.0.10".parse().unwrap(),
        prefix: 32,
        global: true,
    };
    agent.world().addresses = vec![own];
    agent.start(web()).await;
    assert_eq!(agent.save(), [""; 0]);
    let service = agent.reconciler.service_state("web").await;
    assert!(
        matches!(&service.servers[0].status, ProgramStatus::Refused(words) if words.contains("eth1"))
    );
    agent.world().addresses.clear();
    agent.check().await;
    assert_eq!(agent.save().len(), 3);
    agent.apply([node("n1", "10.96.0.10")]).await;
    assert_eq!(agent.save(), [""; 0], "its own Node has it");
}

#[tokio::test(start_paused = true)]
async fn t03_an_added_or_removed_address_is_handled_before_the_next_check() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    agent.journal();
    let own = |address: &str| Interface {
        link: "eth0".to_owned(),
        address: address.parse().unwrap(),
        prefix: 32,
        global: true,
    };
    let node = "192.168.1.1";
    agent.world().addresses = vec![own(node), own("10.96.0.10")];
    agent.reconciler.addresses_moved(&added()).await;
    assert_eq!(agent.save(), [""; 0]);
    let route = format!("+ local 10.96.0.0/12 dev lo table local proto 173 src {node}");
    assert!(agent.journal().contains(&route));

    // The kernel removes the route together with its source address.
    agent.world().addresses.clear();
    agent.world().routes.clear();
    agent.reconciler.addresses_moved(&added()).await;
    assert_eq!(agent.save().len(), 3);
    assert_eq!(agent.world().routes.len(), 1);
    agent.journal();
    agent.world().reads = 0;
    agent.reconciler.addresses_moved(&added()).await;
    assert_eq!((agent.journal().len(), agent.world().reads), (0, 0));
}

/// All notifications are taken first, and then the addresses are the same as before.
#[tokio::test(start_paused = true)]
async fn t03_routes_whose_source_was_removed_and_added_again_are_restored_before_the_next_check() {
    let mut agent = Loop::over(&Shared::default());
    agent.world().addresses = link(&["192.0.2.1", "192.0.2.2"]);
    agent.start(web()).await;
    let routes = agent.world().routes.clone();
    let sources: Vec<_> = routes.iter().map(|route| route.source).collect();
    assert_eq!(sources, [Some("192.0.2.1".parse().unwrap())]);
    let removed = |address: &str| RemovedAddresses::These([address.parse().unwrap()].into());
    let compared = agent.world().route_comparisons;
    for other in [added(), removed("192.0.2.2"), removed("2001:db8::1")] {
        agent.reconciler.addresses_moved(&other).await;
    }
    assert_eq!(agent.world().route_comparisons, compared, "nothing is lost");
    let without_source = routes.iter().map(|route| LocalRoute {
        source: None,
        ..*route
    });
    // In IPv4 the kernel deletes the route, in IPv6 it clears the source.
    for left in [BTreeSet::new(), without_source.collect()] {
        for removed in [removed("192.0.2.1"), RemovedAddresses::Unknown] {
            agent.world().routes.clone_from(&left);
            agent.reconciler.addresses_moved(&removed).await;
            assert_eq!(agent.world().routes, routes);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d13_another_node_that_claims_a_service_address_repeatedly_changes_nothing_here() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    let (before, routes) = (agent.save(), agent.world().routes.clone());
    assert_eq!(before.len(), 3);
    agent.journal();
    for _ in 0..5 {
        for address in ["10.96.0.10", "10.100.0.1", "192.0.2.9"] {
            agent.apply([node("n9", address)]).await;
            agent.reconciler.full_pass().await;
        }
    }
    assert_eq!(agent.journal(), [""; 0]);
    assert_eq!(
        (agent.save(), agent.world().routes.clone()),
        (before, routes)
    );
    agent.apply([node("n9", "10.96.0.10")]).await;
    agent.check().await;
    let claims = |agent: &Loop| {
        let warnings = agent.reconciler.warnings.all();
        let topics = warnings.iter().map(|warning| warning.topic);
        let claims = topics.filter(|topic| topic.code().ends_with("Claim"));
        claims.collect::<Vec<Topic>>()
    };
    assert_eq!(claims(&agent), [Topic::NodeClaim]);
    // An address of two Nodes belongs to the first by name. This Node still claims it.
    let both = ["n0", "n1"].map(|name| node(name, "10.96.0.10"));
    agent.apply(both).await;
    agent.check().await;
    assert_eq!(claims(&agent), [Topic::OwnClaim, Topic::NodeClaim]);
}

/// A Service with the load balancer address `192.0.2.1`, and its endpoint.
fn published() -> Vec<Object> {
    let Object::Service(mut published) = service("web", "10.96.0.10", TCP) else {
        panic!("a Service")
    };
    let outside = "192.0.2.1".parse().unwrap();
    published.frontends.push(Frontend::load_balancer(outside));
    let endpoint = slice("web", TCP, &["10.244.2.1@n2"]);
    vec![Object::Service(published), endpoint]
}

#[tokio::test(start_paused = true)]
async fn d1_an_added_or_removed_service_address_is_one_route_and_no_comparison_of_all() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    agent.journal();
    let compared = agent.world().route_comparisons;
    let inside = service("inside", "10.96.0.11", TCP);
    agent
        .apply([inside, service("far", "192.0.2.9", TCP)])
        .await;
    let route = "local 192.0.2.9/32 dev lo table local proto 173";
    let journal = agent.journal();
    let of_host = |lines: &[String]| -> Vec<String> {
        let lines = lines
            .iter()
            .filter(|line| line.contains("192.0.2.9/32") || line.contains("vips"));
        lines.cloned().collect()
    };
    let expected = ["tables + vips: 192.0.2.9".to_owned(), format!("+ {route}")];
    assert_eq!(of_host(&journal), expected);
    assert_eq!(agent.world().route_comparisons, compared);
    agent.delete(&service("far", "192.0.2.9", TCP)).await;
    let expected = [format!("- {route}"), "tables - vips: 192.0.2.9".to_owned()];
    assert_eq!(of_host(&agent.journal()), expected);
    assert_eq!(agent.world().route_comparisons, compared);

    agent.apply([service("first", "fd00::9", TCP)]).await;
    assert_eq!(
        agent.world().route_comparisons,
        compared + 1,
        "a new family"
    );
    agent.journal();
    agent.reconciler.full_pass().await;
    assert_eq!(agent.journal(), [""; 0], "it would write nothing");
}

#[tokio::test(start_paused = true)]
async fn pod_ranges_that_the_node_gets_after_the_start_are_inside_at_once() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    let range = "10.244.1.0/24".parse().unwrap();
    let is_inside = |agent: &Loop| {
        agent
            .world()
            .tables
            .contains(SetId::Inside, &Element::Range(range))
    };
    assert!(!is_inside(&agent));
    let Object::Node(mut me) = node("n1", "192.168.1.1") else {
        panic!("a Node")
    };
    agent.apply([Object::Node(me.clone())]).await;
    me.pod_cidrs = vec![range];
    agent.apply([Object::Node(me)]).await;
    assert!(is_inside(&agent));
}

async fn findings(agent: &mut Loop) -> Vec<&'static str> {
    let service = agent.reconciler.service_state("web").await;
    let findings = service.findings.iter();
    findings.map(|finding| finding.kind.code()).collect()
}

#[tokio::test(start_paused = true)]
async fn d13_a_node_that_lists_a_served_load_balancer_address_changes_nothing_here() {
    let shared = Shared::default();
    let mut agent = Loop::over(&shared);
    agent.start(published()).await;
    let before = agent.save();
    agent.journal();
    let claim = node("n9", "192.0.2.1");
    agent.apply([claim.clone()]).await;
    agent.check().await;
    assert_eq!(agent.journal(), [""; 0]);
    assert_eq!(findings(&mut agent).await, ["ClaimedByNode"]);

    let mut agent = Loop::over(&shared);
    let mut all = published();
    all.push(claim.clone());
    agent.start(all).await;
    assert_eq!(agent.save(), before, "after a restart");

    // The Node has the address, and another Service gets it afterwards (PAIN-03).
    agent.delete(&published()[0]).await;
    agent.settle(1_000_000).await;
    agent.apply(published()).await;
    assert_eq!(findings(&mut agent).await, ["NodeAddress"]);
    agent.delete(&claim).await;
    assert_eq!(findings(&mut agent).await, [""; 0]);
    assert_eq!(agent.save(), before);
}

/// The addresses of the node's link.
fn link(addresses: &[&str]) -> Vec<Interface> {
    let one = |address: &&str| Interface {
        link: "eth0".to_owned(),
        address: address.parse().unwrap(),
        prefix: 24,
        global: true,
    };
    addresses.iter().map(one).collect()
}

/// KP-NI-02: kube-proxy only logs such a change.
#[tokio::test(start_paused = true)]
async fn the_route_and_the_node_port_follow_the_addresses_of_the_node_object() {
    let mut agent = Loop::with(&Shared::default(), |config| {
        config.node_port_addresses = [NodePortEntry::Primary].into_iter().collect();
    });
    agent.world().addresses = link(&["192.0.2.1", "192.0.2.2"]);
    let Object::Service(mut web) = service("web", "10.96.0.10", TCP) else {
        unreachable!("a Service was made");
    };
    web.frontends.push(Frontend::node_port(Family::V4));
    web.ports[0].node_port = NonZeroU16::new(30080);
    let objects = |address| {
        vec![
            node("n1", address),
            Object::Service(web.clone()),
            slice("web", TCP, &["10.244.1.1@n1"]),
        ]
    };
    let state = |agent: &Loop| {
        let sources = agent
            .world()
            .routes
            .iter()
            .map(|route| route.source)
            .collect::<Vec<_>>();
        let lines = agent.save().into_iter();
        let keys = lines
            .filter(|line| line.starts_with("-A"))
            .collect::<Vec<_>>();
        let elements = format!("{:?}", agent.world().tables);
        (sources, keys, elements)
    };
    agent.start(objects("192.0.2.1")).await;
    for address in ["192.0.2.1", "192.0.2.2", "192.0.2.1"] {
        agent.apply([node("n1", address)]).await;
        agent.settle(1_000).await;
        let (sources, keys, tables) = state(&agent);
        assert_eq!(sources, [Some(address.parse().unwrap())]);
        let node_port = format!("-A -t {address}:30080 -s wrr");
        assert_eq!(keys, ["-A -t 10.96.0.10:80 -s wrr".to_owned(), node_port]);
        let other = if address == "192.0.2.1" {
            "192.0.2.2"
        } else {
            "192.0.2.1"
        };
        assert!(
            tables.contains(address) && !tables.contains(other),
            "{tables}"
        );
    }
}

/// A route is gone together with its source address. Its loss is seen when our routes can be read again.
#[tokio::test(start_paused = true)]
async fn routes_that_could_not_be_read_are_read_and_restored_soon() {
    let mut agent = Loop::over(&Shared::default());
    let own = Interface {
        link: "eth0".to_owned(),
        address: "192.0.2.1".parse().unwrap(),
        prefix: 24,
        global: true,
    };
    agent.world().addresses = vec![own];
    agent.start(web()).await;
    agent.world().routes_unreadable = true;
    agent.world().routes.clear();
    let lost = RemovedAddresses::Unknown;
    agent.reconciler.addresses_moved(&lost).await;
    let warns = |agent: &Loop| {
        let warnings = agent.reconciler.warnings.all();
        let mut topics = warnings.iter().map(|warning| warning.topic);
        topics.any(|topic| topic == Topic::Routes)
    };
    assert!(warns(&agent));
    assert_eq!(agent.world().routes.len(), 0);
    agent.world().routes_unreadable = false;
    agent.settle(1_000).await;
    assert!(!warns(&agent));
    assert_eq!(agent.world().routes.len(), 1);
}

/// kube-proxy's address on `kube-ipvs0` has the route of a Service address until the migration removes it.
#[tokio::test(start_paused = true)]
async fn a_route_that_another_program_had_is_added_before_the_next_check() {
    let mut agent = Loop::over(&Shared::default());
    let range: IpNetwork = "192.0.2.1/32".parse().unwrap();
    agent.world().foreign_routes = [range].into();
    agent.start(published()).await;
    let has_route = |agent: &Loop| {
        let world = agent.world();
        let mut routes = world.routes.iter();
        routes.any(|route| route.to == range)
    };
    let compared = agent.world().route_comparisons;
    agent.reconciler.addresses_moved(&added()).await;
    assert!(!has_route(&agent), "the other one is still there");
    agent.world().foreign_routes.clear();
    agent.reconciler.addresses_moved(&added()).await;
    assert!(has_route(&agent));
    assert_eq!(agent.world().route_comparisons, compared, "only this route");

    agent.delete(&published()[0]).await;
    agent.world().foreign_routes = [range].into();
    agent.apply(published()).await;
    agent.delete(&published()[0]).await;
    agent.world().foreign_routes.clear();
    agent.reconciler.addresses_moved(&added()).await;
    assert!(!has_route(&agent), "no Service needs it");
}
