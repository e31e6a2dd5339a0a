//! Tests endpoints whose servers close their connections to the agent.

use std::net::SocketAddr;

use cluster::object::Object;

use super::fake::Shared;
use super::script::{Loop, service, slice};
use crate::endpoint_connections::EndpointConnection;

const DNS: &[&str] = &["53/UDP", "53/TCP"];
const HERE: &str = "10.244.1.1@n1";
const THERE: &str = "10.244.2.1@n2";

/// The DNS Service with two endpoints, and another Service.
fn cluster() -> Vec<Object> {
    vec![
        service("dns", "10.96.0.10", DNS),
        slice("dns", DNS, &[HERE, THERE]),
        service("web", "10.96.0.11", &["80/TCP"]),
        slice("web", &["80/TCP"], &[HERE, THERE]),
    ]
}

/// A loop that serves them; its journal is empty.
async fn serving(shared: &Shared) -> Loop {
    let mut agent = Loop::over(shared);
    agent.start(cluster()).await;
    agent.settle(100).await;
    agent.journal();
    agent
}

/// The connection of a server.
fn connect(agent: &Loop, endpoint: &str) -> EndpointConnection {
    let endpoint: SocketAddr = endpoint.parse().unwrap();
    agent.connections.connect([endpoint].into())
}

async fn end(agent: &mut Loop, connection: EndpointConnection) {
    drop(connection);
    agent.reconciler.connections_changed().await;
}

/// The slice of the DNS Service, in which the endpoint on this node has these conditions.
fn conditions(ready: bool, serving: bool, terminating: bool) -> Object {
    let Object::EndpointSlice(mut slice) = slice("dns", DNS, &[HERE, THERE]) else {
        unreachable!("a slice was made");
    };
    let endpoint = &mut slice.endpoints[0];
    (endpoint.ready, endpoint.serving, endpoint.terminating) = (ready, serving, terminating);
    Object::EndpointSlice(slice)
}

/// Whether the DNS Service uses the endpoint on this node.
fn is_used(agent: &Loop) -> bool {
    let line = "-a -u 10.96.0.10:53 -r 10.244.1.1:53 -m -w 1".to_owned();
    agent.save().contains(&line)
}

/// The reason of the endpoint on this node.
async fn reason(agent: &mut Loop) -> &'static str {
    let state = agent.reconciler.service_state("dns").await;
    let mut endpoints = state.servers[0].wanted.decision.endpoints.iter();
    let here = endpoints.find(|endpoint| endpoint.node.as_deref() == Some("n1"));
    here.unwrap().reason.code()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_loses_its_traffic_at_once_and_other_services_are_not_touched() {
    let mut agent = serving(&Shared::default()).await;
    let connection = connect(&agent, "10.244.1.1:53");
    agent.reconciler.connections_changed().await;
    assert_eq!(agent.journal(), [""; 0], "a connection changes nothing");

    end(&mut agent, connection).await;
    agent.settle(100).await;
    let mut journal = agent.journal();
    journal.retain(|line| line.starts_with("ipvsadm") || line.starts_with("forget"));
    assert_eq!(
        journal,
        [
            "ipvsadm -e -t 10.96.0.10:53 -r 10.244.1.1:53 -m -w 0",
            "ipvsadm -d -u 10.96.0.10:53 -r 10.244.1.1:53",
            "ipvsadm -d -t 10.96.0.10:53 -r 10.244.1.1:53",
            "forget 10.244.1.1:53",
        ]
    );
    assert_eq!(reason(&mut agent).await, "Disconnected");

    let _connection = connect(&agent, "10.244.1.1:53");
    agent.reconciler.connections_changed().await;
    assert!(is_used(&agent));
    assert_eq!(reason(&mut agent).await, "Ready");
}

#[tokio::test(start_paused = true)]
async fn a_second_connection_of_the_endpoint_keeps_its_traffic() {
    let mut agent = serving(&Shared::default()).await;
    let old = connect(&agent, "10.244.1.1:53");
    let new = connect(&agent, "10.244.1.1:53");
    end(&mut agent, old).await;
    assert!(is_used(&agent));
    end(&mut agent, new).await;
    assert!(!is_used(&agent));
}

#[tokio::test(start_paused = true)]
async fn only_endpoints_of_this_node_are_affected_and_only_at_their_port() {
    let mut agent = serving(&Shared::default()).await;
    for endpoint in ["10.244.2.1:53", "10.244.1.1:9153", "10.244.1.99:53"] {
        let connection = connect(&agent, endpoint);
        agent.reconciler.connections_changed().await;
        end(&mut agent, connection).await;
        assert_eq!(agent.journal(), [""; 0], "{endpoint}");
        assert!(agent.connections.ended().is_empty(), "{endpoint}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_another_endpoint_clients_are_refused() {
    let mut agent = serving(&Shared::default()).await;
    agent.apply([slice("dns", DNS, &[HERE])]).await;
    let connection = connect(&agent, "10.244.1.1:53");
    end(&mut agent, connection).await;
    let state = agent.reconciler.service_state("dns").await;
    let refusal = state.servers[0].wanted.decision.refusal.as_ref();
    assert_eq!(refusal.map(|refusal| refusal.code()), Some("NoneReady"));
}

#[tokio::test(start_paused = true)]
async fn a_dead_server_that_its_slice_lists_as_serving_and_terminating_is_no_fallback() {
    let mut agent = serving(&Shared::default()).await;
    let connection = connect(&agent, "10.244.1.1:53");
    end(&mut agent, connection).await;
    agent.apply([conditions(false, true, true)]).await;
    assert_eq!(reason(&mut agent).await, "Disconnected");
    agent.apply([conditions(false, false, true)]).await;
    assert_eq!(reason(&mut agent).await, "Terminating");
    assert!(agent.connections.ended().is_empty());
}

#[tokio::test(start_paused = true)]
async fn when_the_slice_has_caught_up_its_conditions_count_again() {
    for caught_up in [conditions(false, false, false), slice("dns", DNS, &[THERE])] {
        let mut agent = serving(&Shared::default()).await;
        let connection = connect(&agent, "10.244.1.1:53");
        end(&mut agent, connection).await;
        agent.apply([slice("dns", DNS, &[HERE])]).await;
        assert!(!is_used(&agent), "another change of the slice");
        agent.apply([caught_up]).await;
        assert!(!is_used(&agent));
        // A server without a connection, at the same address.
        agent.apply([slice("dns", DNS, &[HERE, THERE])]).await;
        assert!(is_used(&agent));
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_gets_the_endpoint_later_does_not_use_it_either() {
    let mut agent = serving(&Shared::default()).await;
    let connection = connect(&agent, "10.244.1.1:53");
    end(&mut agent, connection).await;
    agent
        .apply([
            service("twin", "10.96.0.12", DNS),
            slice("twin", DNS, &[HERE, THERE]),
        ])
        .await;
    let lines = agent.save().concat();
    assert!(!lines.contains("-u 10.96.0.12:53 -r 10.244.1.1"), "{lines}");
    // The first Service no longer has it, and the second one still does.
    agent.delete(&service("dns", "10.96.0.10", DNS)).await;
    agent.apply([slice("twin", DNS, &[HERE])]).await;
    let lines = agent.save().concat();
    assert!(!lines.contains("10.96.0.12:53 -r 10.244.1.1"), "{lines}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_agent_changes_nothing_until_a_server_connects() {
    let shared = Shared::default();
    let agent = serving(&shared).await;
    let connection = connect(&agent, "10.244.1.1:53");
    let before = agent.save();
    // The connection ends with the agent, which no loop notices any more.
    drop(connection);
    let mut again = Loop::over(&shared);
    again.start(cluster()).await;
    again.reconciler.connections_changed().await;
    assert_eq!(again.save(), before);
    let connection = connect(&again, "10.244.1.1:53");
    end(&mut again, connection).await;
    assert!(!is_used(&again));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_before_the_first_pass_is_not_used_by_it() {
    let mut agent = Loop::over(&Shared::default());
    drop(connect(&agent, "10.244.1.1:53"));
    agent.start(cluster()).await;
    assert!(!is_used(&agent));
    assert_eq!(reason(&mut agent).await, "Disconnected");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_cluster_brings_the_news_too() {
    let mut agent = serving(&Shared::default()).await;
    drop(connect(&agent, "10.244.1.1:53"));
    agent.apply([slice("web", &["80/TCP"], &[THERE])]).await;
    assert!(!is_used(&agent));
}
