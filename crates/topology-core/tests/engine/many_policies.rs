//! Many policy objects in the namespace of a Service with many ports.

use std::sync::Arc;

use topology_core::model::{Frontend, Protocol, TopologyPolicy};
use topology_core::policy::PolicySource;
use topology_core::resolve::{LostBecause, Note, ResolvedServer};

use crate::world::{World, ZONE, cluster_policy, ep, node, service_port, weighted};

/// The most policies of one kind that a decision lists.
const MOST_LISTED: usize = 20;

fn object(number: usize) -> TopologyPolicy {
    TopologyPolicy {
        namespace: Some("t".into()),
        ..cluster_policy(&format!("p{number:04}"), weighted(&[(ZONE, 80), ("*", 20)]))
    }
}

/// A Service with so many ports at two addresses, and policies in its namespace.
fn world(ports: u16, objects: impl IntoIterator<Item = TopologyPolicy>) -> World {
    let mut world = World::new("me").endpoints([ep(1).on("me")]);
    world.snapshot.set_node(node("me", &[(ZONE, "a")]));
    let port = |number| service_port(&format!("port-{number}"), Protocol::Tcp, number);
    world.service.ports = (1..=ports).map(port).collect();
    let second = "192.0.2.1".parse().unwrap();
    world
        .service
        .frontends
        .push(Frontend::load_balancer(second));
    for object in objects {
        world.snapshot.set_policy(object);
    }
    world
}

fn decided_by(resolved: &ResolvedServer) -> Option<&str> {
    Some(&resolved.decision.policy.as_ref()?.name)
}

#[test]
fn a_decision_lists_the_first_policies_that_do_not_decide_and_counts_the_others() {
    let mut world = world(1, (0..30).map(object));
    let decision = world.resolve().servers.remove(0).decision;
    let listed: Vec<_> = decision.lost.iter().collect();
    assert_eq!(listed.len(), MOST_LISTED);
    for (lost, number) in listed.into_iter().zip(1..) {
        let name = lost.policy.as_ref().map(|policy| &*policy.name);
        assert_eq!(name, Some(&*format!("p{number:04}")));
        assert_eq!(lost.why, LostBecause::LaterName);
    }
    assert_eq!(decision.notes, [Note::PoliciesNotListed { count: 9 }]);
    assert_eq!(
        decision.notes[0].to_string(),
        "9 more policies that select the Service do not decide and are not listed"
    );
    for number in 21..30 {
        world
            .snapshot
            .remove_policy(Some("t"), &format!("p{number:04}"));
    }
    let decision = world.resolve().servers.remove(0).decision;
    assert_eq!(decision.lost.len(), MOST_LISTED);
    assert_eq!(decision.notes, []);
}

#[test]
fn what_annotations_lose_by_is_listed_after_many_policies_too() {
    let overriding = |number| TopologyPolicy {
        namespace: None,
        enforcement: topology_core::model::Enforcement::Override,
        ..object(number)
    };
    let mut world = world(1, (0..50).map(overriding)).policy(weighted(&[("*", 1)]));
    let decision = world.resolve().servers.remove(0).decision;
    let last = decision.lost.last().map(|lost| (lost.source, lost.why));
    assert_eq!(last, Some((PolicySource::Annotation, LostBecause::Weaker)));
}

#[test]
fn ports_times_policies_need_no_memory_for_each_pair() {
    let (ports, policies) = (400, 500);
    let mut world = world(ports, (0..policies).map(object));
    let servers = world.resolve().servers;
    assert_eq!(servers.len(), usize::from(ports) * 2);
    for resolved in &servers {
        assert_eq!(resolved.decision.lost.len(), MOST_LISTED);
        let count = policies - 1 - MOST_LISTED;
        assert_eq!(resolved.decision.notes, [Note::PoliciesNotListed { count }]);
    }
    for port in servers.chunks(2) {
        assert!(Arc::ptr_eq(&port[0].decision.lost, &port[1].decision.lost));
    }
}

/// The first policy that names a port decides it, unless an earlier one is for all ports.
#[test]
fn each_port_finds_its_own_policy_among_many() {
    let objects = (0..60).map(|number| {
        let names = [number % 7, number % 5].map(|port| format!("port-{}", port + 1));
        let all = number == 5;
        TopologyPolicy {
            port_names: if all {
                Vec::new()
            } else {
                names.map(|name| name.as_str().into()).into()
            },
            ..object(number)
        }
    });
    let mut world = world(8, objects.clone());
    for resolved in world.resolve().servers {
        let names = |object: &TopologyPolicy| {
            object.port_names.is_empty() || object.port_names.contains(&resolved.port_name)
        };
        let first = objects.clone().find(names).map(|object| object.name);
        assert_eq!(decided_by(&resolved), first.as_deref());
        let first = first.unwrap();
        for lost in &*resolved.decision.lost {
            let name = &lost.policy.as_ref().unwrap().name;
            let object = objects.clone().find(|object| object.name == *name);
            let why = if names(&object.unwrap()) {
                assert!(*name > first);
                LostBecause::LaterName
            } else {
                LostBecause::OtherPort
            };
            assert_eq!(lost.why, why, "{name} for {}", resolved.port_name);
        }
    }
}
