//! Which Pod has an address that several Pods report.

use std::time::Duration;

use super::*;
use crate::budget::{Budget, COALESCE, RETRY};
use crate::state::AddressConflict;

fn terminating(mut pod: Value) -> Value {
    pod["metadata"]["deletionTimestamp"] = "2026-11-21T20:00:00Z".into();
    pod
}

/// A Pod on `n1` that has the address 10.244.1.7, and an older Pod on `n2` that reports it later.
fn holder_and_claimant() -> (Value, Value) {
    let holder = pod("cart-0", "n1", &["10.244.1.7"], 5);
    let claimant = pod("older", "n2", &["10.244.2.1", "10.244.1.7"], 1);
    (holder, claimant)
}

/// The Pods that get no address, with the Pods that have it.
fn conflicts(state: &State) -> Vec<(String, String)> {
    let conflicts = state.address_conflicts().into_iter();
    let names = conflicts.map(
        |AddressConflict {
             refused, holder, ..
         }| { (refused.0.name.to_string(), holder.0.name.to_string()) },
    );
    names.collect()
}

fn assert_holder_is_unchanged(server: &Server) {
    assert_eq!(server.map("n1"), json!({ "10.244.1.7": "shop/cart-0" }));
    assert_eq!(server.map("n2"), json!({ "10.244.2.1": "shop/older" }));
    let locator = |pod| server.spec(Collection::PodLocators, "shop", pod).unwrap();
    assert_eq!(locator("cart-0")["addresses"], json!(["10.244.1.7"]));
    assert_eq!(locator("older")["addresses"], json!(["10.244.2.1"]));
}

#[test]
fn an_older_pod_of_another_node_does_not_get_the_address_of_a_younger_pod() {
    let (mut state, mut server) = (two_nodes(), Server::default());
    let (holder, claimant) = holder_and_claimant();
    state.apply(Collection::Pods, holder.clone());
    server.settle(&mut state);
    assert_eq!(conflicts(&state), []);
    state.apply(Collection::Pods, claimant);
    server.settle(&mut state);
    assert_holder_is_unchanged(&server);
    let both = ("older".to_owned(), "cart-0".to_owned());
    assert_eq!(conflicts(&state), [both]);
    // A change of the holder gives nothing away.
    let mut ready = holder;
    ready["metadata"]["resourceVersion"] = "7".into();
    ready["status"]["podIPs"] = json!([{ "ip": "10.244.1.7" }, { "ip": "fd00:1::7" }]);
    state.apply(Collection::Pods, ready);
    server.settle(&mut state);
    let pods = json!({ "10.244.1.7": "shop/cart-0", "fd00:1::7": "shop/cart-0" });
    assert_eq!(server.map("n1"), pods);
}

#[test]
fn an_address_moves_at_once_when_its_pod_has_it_no_longer() {
    let mut ended = pod("cart-0", "n1", &["10.244.1.7"], 5);
    ended["status"]["phase"] = "Failed".into();
    let other_address = pod("cart-0", "n1", &["10.244.1.8"], 5);
    let recreated = pod("cart-0", "n1", &["10.244.1.7"], 9);
    let (holder, claimant) = holder_and_claimant();
    let dying = terminating(holder.clone());
    for last in [
        Some(ended),
        Some(other_address),
        Some(recreated),
        Some(dying),
        None,
    ] {
        let (mut state, mut server) = (two_nodes(), Server::default());
        state.apply(Collection::Pods, holder.clone());
        server.settle(&mut state);
        state.apply(Collection::Pods, claimant.clone());
        server.settle(&mut state);
        assert_holder_is_unchanged(&server);
        match &last {
            Some(pod) => state.apply(Collection::Pods, pod.clone()),
            None => state.delete(Collection::Pods, &name("cart-0")),
        };
        server.settle(&mut state);
        let pods = json!({ "10.244.1.7": "shop/older", "10.244.2.1": "shop/older" });
        assert_eq!(server.map("n2"), pods, "{last:?}");
        assert_eq!(server.map("n1")["10.244.1.7"], Value::Null, "{last:?}");
    }
}

/// The names of the PodMaps in the plan of so many seconds after the start.
fn planned_maps(state: &mut State, budget: &Budget, after: u64) -> Vec<String> {
    let now = Duration::from_secs(after);
    let writes = state.plan_pods(|collection, name| budget.must_wait(now, collection, name));
    let maps = writes
        .iter()
        .filter(|write| write.collection == Collection::PodMaps);
    maps.map(|write| write.name.name.to_string()).collect()
}

/// A State whose PodMap of `n1`, with 10.244.1.7 of `old` and 10.244.1.8 of `other`, is just written.
fn just_written(is_written: bool) -> (State, Server, Budget) {
    let (mut state, mut server) = (two_nodes(), Server::default());
    let mut budget = Budget::new(Duration::ZERO);
    state.apply(Collection::Pods, pod("old", "n1", &["10.244.1.7"], 1));
    state.apply(Collection::Pods, pod("other", "n1", &["10.244.1.8"], 1));
    for write in server.settle(&mut state) {
        budget.record_write(Duration::ZERO, &write, is_written);
    }
    (state, server, budget)
}

#[test]
fn the_map_of_the_old_node_does_not_wait_when_its_address_is_used_again_on_another_node() {
    let (mut state, mut server, mut budget) = just_written(true);
    // A deleted Pod alone waits for further changes.
    state.delete(Collection::Pods, &name("old"));
    assert_eq!(planned_maps(&mut state, &budget, 1), [""; 0]);
    state.apply(Collection::Pods, pod("new", "n2", &["10.244.1.7"], 2));
    let mut maps = planned_maps(&mut state, &budget, 2);
    maps.sort();
    assert_eq!(maps, ["n1", "n2"]);
    for write in server.settle(&mut state) {
        budget.record_write(Duration::from_secs(2), &write, true);
    }
    assert_eq!(server.map("n1"), json!({ "10.244.1.8": "shop/other" }));
    assert_eq!(server.map("n2"), json!({ "10.244.1.7": "shop/new" }));
    // Without a moved address the map waits again.
    state.delete(Collection::Pods, &name("other"));
    assert_eq!(planned_maps(&mut state, &budget, 3), [""; 0]);
    let after = 2 + COALESCE.as_secs();
    assert_eq!(planned_maps(&mut state, &budget, after), ["n1"]);
}

#[test]
fn a_map_waits_for_further_changes_when_its_address_is_used_again_on_the_same_node() {
    let (mut state, _, budget) = just_written(true);
    state.delete(Collection::Pods, &name("old"));
    state.apply(Collection::Pods, pod("new", "n1", &["10.244.1.7"], 2));
    assert_eq!(planned_maps(&mut state, &budget, 1), [""; 0]);
    assert_eq!(
        planned_maps(&mut state, &budget, COALESCE.as_secs()),
        ["n1"]
    );
}

#[test]
fn a_map_whose_write_failed_waits_although_its_address_is_used_again() {
    let (mut state, _, budget) = just_written(false);
    state.delete(Collection::Pods, &name("old"));
    state.apply(Collection::Pods, pod("new", "n2", &["10.244.1.7"], 2));
    assert_eq!(planned_maps(&mut state, &budget, 1), ["n2"]);
    let mut maps = planned_maps(&mut state, &budget, RETRY.as_secs());
    maps.sort();
    assert_eq!(maps, ["n1", "n2"]);
}

#[test]
fn a_pod_on_the_host_network_holds_no_address() {
    let (mut state, mut server) = (two_nodes(), Server::default());
    let (holder, mut on_host) = holder_and_claimant();
    on_host["spec"]["hostNetwork"] = true.into();
    state.apply(Collection::Pods, on_host);
    state.apply(Collection::Pods, holder);
    server.settle(&mut state);
    assert_eq!(server.map("n1"), json!({ "10.244.1.7": "shop/cart-0" }));
    assert_eq!(server.map("n2"), Value::Null);
    assert_eq!(conflicts(&state), []);
}

#[test]
fn an_address_that_is_used_again_is_no_conflict() {
    let mut state = two_nodes();
    let (holder, claimant) = holder_and_claimant();
    state.apply(Collection::Pods, terminating(holder));
    state.apply(Collection::Pods, claimant);
    assert_eq!(conflicts(&state), []);
}

/// A State that has read the Pods in this order, and the objects of the server.
fn started(pods: [&Value; 2], server: &Server) -> State {
    let mut state = two_nodes();
    for pod in pods {
        state.apply(Collection::Pods, pod.clone());
    }
    for ((collection, _), object) in &server.objects {
        state.apply(*collection, object.clone());
    }
    state
}

#[test]
fn a_restarted_controller_leaves_the_address_to_the_pod_of_the_published_map() {
    let (holder, claimant) = holder_and_claimant();
    let (mut state, mut server) = (two_nodes(), Server::default());
    state.apply(Collection::Pods, holder.clone());
    server.settle(&mut state);
    state.apply(Collection::Pods, claimant.clone());
    server.settle(&mut state);
    for pods in [[&holder, &claimant], [&claimant, &holder]] {
        let mut state = started(pods, &server);
        assert_eq!(server.settle(&mut state), []);
        assert_holder_is_unchanged(&server);
    }
}

#[test]
fn without_a_published_map_the_oldest_pod_has_the_address() {
    let (younger, older) = holder_and_claimant();
    for pods in [[&younger, &older], [&older, &younger]] {
        let mut server = Server::default();
        let mut state = started(pods, &server);
        server.settle(&mut state);
        assert_eq!(server.map("n1"), Value::Null);
        let pods = json!({ "10.244.1.7": "shop/older", "10.244.2.1": "shop/older" });
        assert_eq!(server.map("n2"), pods);
    }
}

#[test]
fn a_replica_that_becomes_the_leader_follows_the_maps_of_the_last_leader() {
    let (holder, claimant) = holder_and_claimant();
    let (mut leader, mut standby) = (two_nodes(), two_nodes());
    let mut server = Server::default();
    for replica in [&mut leader, &mut standby] {
        assert_eq!(server.settle(replica), []);
    }
    leader.apply(Collection::Pods, holder.clone());
    leader.apply(Collection::Pods, claimant.clone());
    server.settle(&mut leader);
    assert_holder_is_unchanged(&server);
    // Watches of two namespaces have no common order.
    standby.apply(Collection::Pods, claimant);
    standby.apply(Collection::Pods, holder);
    for ((collection, _), object) in &server.objects {
        standby.apply(*collection, object.clone());
    }
    standby.forget();
    assert_eq!(server.settle(&mut standby), []);
}
