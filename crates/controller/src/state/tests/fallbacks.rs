//! The fallbacks of all nodes, and the namespaces of which a report may lack some.

use crd::MAX_FALLBACKS;

use super::*;

/// The report of a node with these fallbacks, and their number on the node.
fn fallbacks(node: &str, services: &[String], minute: u32, count: usize) -> Value {
    let mut object = report(node, 2);
    let fallbacks = services.iter().map(|service| {
        json!({
            "service": service, "reason": "Panic", "from": "Prefer", "to": "Uniform",
            "since": format!("2026-11-21T20:{minute:02}:00Z"),
        })
    });
    object["status"]["fallbacks"] = fallbacks.collect();
    object["status"]["counts"] = json!({ "fallbacks": count });
    object
}

/// So many Services of a namespace.
fn services(namespace: &str, count: usize) -> Vec<String> {
    let numbers = 0..count;
    numbers
        .map(|number| format!("{namespace}/s{number}"))
        .collect()
}

/// Applies a report of `n1`; `more`: how many fallbacks the node has besides those in the report.
fn apply(state: &mut State, services: &[String], more: usize) {
    let count = services.len() + more;
    state.apply(Collection::Agents, fallbacks("n1", services, 1, count));
}

/// The namespaces of which reports may lack fallbacks.
fn incomplete(state: &State) -> Vec<String> {
    let (_, incomplete) = state.fallbacks();
    incomplete.iter().map(ToString::to_string).collect()
}

#[test]
fn a_fallback_that_two_nodes_report_begins_with_the_first_report() {
    let mut state = State::default();
    let cart = ["shop/cart".to_owned()];
    state.apply(Collection::Agents, fallbacks("n1", &cart, 5, 1));
    state.apply(Collection::Agents, fallbacks("n2", &cart, 1, 1));
    let (seen, incomplete) = state.fallbacks();
    let key = (ObjectName::new("shop", "cart"), "TopologyFallbackPanic");
    assert_eq!((seen[&key].nodes, seen[&key].since), (2, NOW + 60_000));
    assert_eq!(incomplete, BTreeSet::new());
}

#[test]
fn a_full_list_or_a_larger_count_may_lack_fallbacks() {
    let mut state = State::default();
    apply(&mut state, &services("shop", MAX_FALLBACKS), 0);
    assert_eq!(incomplete(&state), ["shop"], "the list is full");
    apply(&mut state, &services("shop", 1), 1);
    assert_eq!(incomplete(&state), ["shop"], "the count is larger");
    apply(&mut state, &services("shop", 1), 0);
    assert_eq!(incomplete(&state), [""; 0]);
}

/// In a list, namespaces take turns.
#[test]
fn a_namespace_with_many_fallbacks_does_not_make_others_incomplete() {
    let mut state = State::default();
    let mut listed = services("flood", MAX_FALLBACKS - 2);
    listed.extend(["shop/cart", "team/api"].map(str::to_owned));
    apply(&mut state, &listed, 500);
    assert_eq!(incomplete(&state), ["flood"]);
    // The fallback of the namespace `shop` has ended.
    listed.retain(|service| service != "shop/cart");
    apply(&mut state, &listed, 500);
    assert_eq!(incomplete(&state), ["flood"]);
}

#[test]
fn a_namespace_without_space_stays_incomplete_until_the_list_is_complete() {
    let mut state = State::default();
    apply(&mut state, &services("shop", 1), 0);
    let many: Vec<String> = (0..MAX_FALLBACKS).map(|of| format!("ns{of}/it")).collect();
    for _ in 0..2 {
        apply(&mut state, &many, 5);
        assert!(incomplete(&state).contains(&"shop".to_owned()));
        apply(&mut state, &many[1..], 6);
    }
    apply(&mut state, &many[..3], 0);
    assert_eq!(incomplete(&state), [""; 0]);
}

/// A node could withhold the end of every fallback of the cluster.
#[test]
fn a_node_makes_only_namespaces_incomplete_of_which_it_reported_a_fallback() {
    let mut state = State::default();
    let shop = fallbacks("n2", &services("shop", 1), 1, 1);
    state.apply(Collection::Agents, shop);
    apply(&mut state, &[], 999);
    assert_eq!(incomplete(&state), [""; 0]);
    // Different namespaces in each report do not fill the memory.
    for number in 0..1000 {
        apply(&mut state, &services(&format!("ns{number}"), 1), 999);
    }
    assert!(incomplete(&state).len() <= 4 * MAX_FALLBACKS + 1);
}

#[test]
fn a_report_that_cannot_be_read_ends_no_fallback() {
    let mut state = State::default();
    state.apply(Collection::Nodes, node("n1", "a", true));
    state.apply(Collection::ClusterPolicies, near());
    let mut unreadable = fallback_report();
    unreadable["status"] = json!({ "counts": "many" });
    state.apply(Collection::Agents, unreadable.clone());
    assert!(state.fallbacks().0.is_empty());
    state.apply(Collection::Agents, fallback_report());
    settle(&mut state, NOW);
    let before = state.fallbacks();
    assert_eq!(before.0.len(), 1);

    let is_logged = state.apply(Collection::Agents, unreadable.clone());
    assert!(is_logged && state.unread_reports().contains_key("n1"));
    assert!(!state.apply(Collection::Agents, unreadable));
    assert_eq!(state.fallbacks(), before);
    assert_eq!(settle(&mut state, NOW), [], "the policy stays Degraded");

    state.apply(Collection::Agents, report("n1", 2));
    assert!(state.unread_reports().is_empty());
    assert!(state.fallbacks().0.is_empty());
}

#[test]
fn a_deleted_report_makes_nothing_incomplete() {
    let mut state = State::default();
    apply(&mut state, &services("shop", 1), 1);
    state.delete(Collection::Agents, &ObjectName::new("", "n1"));
    assert_eq!(incomplete(&state), [""; 0]);
}
