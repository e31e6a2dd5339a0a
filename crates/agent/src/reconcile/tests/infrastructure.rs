//! Tests Service addresses that the node or the cluster depends on (PAIN-03).

use std::net::IpAddr;

use cluster::object::Object;
use dataplane::infrastructure::NodeNetwork;
use dataplane::routes::addresses::Interface;
use topology_core::model::{Frontend, ObjectName};

use super::TCP;
use super::fake::Shared;
use super::script::{Loop, service, slice};

const GATEWAY: &str = "192.0.2.1";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A Service with this external IP, and its endpoint.
fn with_external_ip(name: &str, cluster_ip: &str, external: &str) -> [Object; 2] {
    let Object::Service(mut service) = service(name, cluster_ip, TCP) else {
        unreachable!("a Service was made");
    };
    service.frontends.push(Frontend::external_ip(ip(external)));
    let endpoint = slice(name, TCP, &["10.244.2.1@n2"]);
    [Object::Service(service), endpoint]
}

fn web() -> Vec<Object> {
    with_external_ip("web", "10.96.0.10", GATEWAY).to_vec()
}

/// The endpoints of the API server.
fn api_servers(addresses: &[&str]) -> Object {
    let Object::EndpointSlice(mut slice) = slice("kubernetes", &["6443/TCP"], addresses) else {
        unreachable!("a slice was made");
    };
    slice.name = ObjectName::new("default", "kubernetes-1");
    Object::EndpointSlice(slice)
}

fn gateways(agent: &Loop, gateways: &[&str]) {
    let gateways = gateways.iter().map(|text| ip(text)).collect();
    agent.network.send_replace(NodeNetwork {
        gateways,
        ..NodeNetwork::default()
    });
}

async fn findings(agent: &mut Loop, name: &str) -> Vec<&'static str> {
    let service = agent.reconciler.service_state(name).await;
    let findings = service.findings.iter();
    findings.map(|finding| finding.kind.code()).collect()
}

/// Whether the kernel has a virtual server at the address, and whether the address is bound.
fn served(agent: &Loop, address: &str) -> (bool, bool) {
    let is_served = agent.save().iter().any(|line| line.contains(address));
    let world = agent.world();
    let mut routes = world.routes.iter();
    (is_served, routes.any(|route| route.to.ip() == ip(address)))
}

#[tokio::test(start_paused = true)]
async fn pain_03_a_gateway_is_not_bound_until_no_route_uses_it() {
    let mut agent = Loop::over(&Shared::default());
    gateways(&agent, &[GATEWAY]);
    agent.start(web()).await;
    assert_eq!(served(&agent, GATEWAY), (false, false));
    assert_eq!(agent.save().len(), 2, "the cluster IP");
    assert_eq!(findings(&mut agent, "web").await, ["InfrastructureAddress"]);
    gateways(&agent, &["192.0.2.2"]);
    agent.reconciler.infrastructure_changed().await;
    assert_eq!(served(&agent, GATEWAY), (true, true));
    assert_eq!(findings(&mut agent, "web").await, [""; 0]);
}

/// The loop prefers changes of the cluster to changes of the node.
#[tokio::test(start_paused = true)]
async fn pain_03_a_service_that_comes_together_with_the_route_does_not_get_the_gateway() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(Vec::new()).await;
    gateways(&agent, &[GATEWAY]);
    agent.apply(web()).await;
    assert_eq!(served(&agent, GATEWAY), (false, false));
    agent.reconciler.infrastructure_changed().await;
    assert_eq!(findings(&mut agent, "web").await, ["InfrastructureAddress"]);
}

#[tokio::test(start_paused = true)]
async fn d13_a_served_address_that_becomes_a_gateway_stays_and_another_service_does_not_get_it() {
    let shared = Shared::default();
    let mut agent = Loop::over(&shared);
    agent.start(web()).await;
    let before = agent.save();
    agent.journal();
    gateways(&agent, &[GATEWAY]);
    agent.reconciler.infrastructure_changed().await;
    agent.check().await;
    assert_eq!(agent.journal(), [""; 0]);
    let kept = ["ServedInfrastructureAddress"];
    assert_eq!(findings(&mut agent, "web").await, kept);

    let [Object::Service(mut other), endpoint] = with_external_ip("other", "10.96.0.11", GATEWAY)
    else {
        unreachable!("a Service was made");
    };
    other.ports[0].port = 81.try_into().unwrap();
    agent.apply([Object::Service(other), endpoint]).await;
    assert_eq!(
        findings(&mut agent, "other").await,
        ["InfrastructureAddress"]
    );
    assert_eq!(findings(&mut agent, "web").await, kept, "still");
    let added = agent
        .save()
        .into_iter()
        .filter(|line| !before.contains(line));
    assert!(
        added.clone().all(|line| !line.contains(GATEWAY)),
        "{:?}",
        added.collect::<Vec<_>>()
    );

    let mut again = Loop::over(&shared);
    gateways(&again, &[GATEWAY]);
    again.start(web()).await;
    assert_eq!(again.save(), before, "after a restart");
    assert_eq!(findings(&mut again, "web").await, kept);
}

#[tokio::test(start_paused = true)]
async fn pain_03_api_servers_follow_connections_and_the_endpoints_of_the_service_kubernetes() {
    let mut agent = Loop::over(&Shared::default());
    agent
        .peers
        .send_replace(vec!["192.0.2.1:443".parse().unwrap()]);
    agent.start(web()).await;
    assert_eq!(findings(&mut agent, "web").await, ["InfrastructureAddress"]);
    agent.peers.send_replace(Vec::new());
    agent.apply([api_servers(&["192.0.2.1@n9"])]).await;
    agent.reconciler.infrastructure_changed().await;
    assert_eq!(served(&agent, GATEWAY), (false, false));
    // The Service leads to the API server itself.
    let Object::EndpointSlice(mut same) = slice("web", &["80/TCP"], &["198.51.100.7@n9"]) else {
        unreachable!("a slice was made");
    };
    same.ports[0].port = 6443.try_into().unwrap();
    agent.apply([Object::EndpointSlice(same)]).await;
    assert_eq!(served(&agent, GATEWAY), (false, false));
    agent
        .apply([api_servers(&["192.0.2.1@n9", "198.51.100.7@n9"])])
        .await;
    assert_eq!(served(&agent, GATEWAY), (true, true));
    assert_eq!(findings(&mut agent, "web").await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn pain_03_at_an_address_of_the_node_only_the_port_of_the_api_server_is_kept_from_services() {
    let mut agent = Loop::over(&Shared::default());
    let own = Interface {
        link: "eth0".to_owned(),
        address: ip(GATEWAY),
        prefix: 24,
        global: true,
    };
    agent.world().addresses = vec![own];
    let Object::Service(mut both) = service("web", "10.96.0.10", &["80/TCP", "6443/TCP"]) else {
        unreachable!("a Service was made");
    };
    both.frontends.push(Frontend::load_balancer(ip(GATEWAY)));
    let endpoint = slice("web", &["80/TCP", "6443/TCP"], &["10.244.2.1@n2"]);
    let api = api_servers(&["192.0.2.1@n1"]);
    agent
        .start(vec![Object::Service(both), endpoint, api])
        .await;
    let at_node = |agent: &Loop| {
        let lines = agent.save().into_iter();
        let lines = lines.filter(|line| line.starts_with("-A -t 192.0.2.1"));
        lines.collect::<Vec<_>>()
    };
    let expected = ["-A -t 192.0.2.1:80 -s wrr"];
    assert_eq!(at_node(&agent), expected);
    assert_eq!(findings(&mut agent, "web").await, ["InfrastructureAddress"]);
    agent.check().await;
    agent.reconciler.full_pass().await;
    assert_eq!(at_node(&agent), expected);
}
