//! Endpoints on this node whose servers closed their connections to the agent.

use std::sync::Arc;

use topology_core::policy::Policy;
use topology_core::resolve::{Note, Reason, Refusal, ResolvedServer};

use crate::world::{Ep, World, ep, weighted};

/// Decides on the node `me`, where 10.244.0.1 lost its server.
fn decided(policy: Option<Policy>, endpoints: impl IntoIterator<Item = Ep>) -> ResolvedServer {
    let mut world = World::new("me")
        .node("me", &[])
        .node("other", &[])
        .endpoints(endpoints);
    world.service.policy = policy.map(Arc::new);
    world.me.disconnected = Arc::new([([10, 244, 0, 1], 8080).into()].into());
    world.server()
}

fn reasons(server: &ResolvedServer) -> Vec<Reason> {
    let endpoints = server.decision.endpoints.iter();
    endpoints.map(|endpoint| endpoint.reason).collect()
}

#[test]
fn clients_get_the_next_level_when_the_server_on_their_node_has_ended() {
    let endpoints = || [ep(1).on("me"), ep(2).on("other")];
    let near = weighted(&[("node", 80), ("*", 20)]);
    for (policy, chosen) in [(Some(near), Reason::InLevel), (None, Reason::Ready)] {
        let server = decided(policy, endpoints());
        assert_eq!(reasons(&server), [Reason::Disconnected, chosen]);
        let addresses: Vec<_> = server.server.real_servers.iter().collect();
        assert_eq!(addresses.len(), 1);
        assert_eq!(addresses[0].address, ep(2).0.address);
    }
}

#[test]
fn the_last_endpoint_is_refused_and_a_terminating_one_that_lost_its_server_is_no_fallback() {
    let server = decided(None, [ep(1).on("me")]);
    assert_eq!(server.decision.refusal, Some(Refusal::NoneReady));
    let server = decided(
        None,
        [ep(1).on("me").leaving(), ep(2).on("other").leaving()],
    );
    assert_eq!(
        reasons(&server),
        [Reason::Disconnected, Reason::ServingTerminating]
    );
    assert!(server.decision.notes.contains(&Note::ServingTerminating));
}

#[test]
fn endpoints_of_other_nodes_and_those_that_are_not_ready_anyway_keep_their_reasons() {
    let reason = |endpoint: Ep| reasons(&decided(None, [endpoint]))[0];
    assert_eq!(reason(ep(1).on("other")), Reason::Ready);
    assert_eq!(reason(ep(1)), Reason::Ready);
    assert_eq!(reason(ep(1).on("me").unready()), Reason::NotReady);
}
