//! Any bytes as a message of a client: no panic, and a reply that a client can read.
//!
//! ```text
//! cd crates/dns-server && mkdir -p fuzz/corpus/respond
//! cargo +nightly fuzz run respond fuzz/corpus/respond fuzz/seeds/respond -- -max_total_time=600
//! ```

#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

use cluster::ServiceSelection;
use cluster::event::{Batch, Completeness, Event};
use cluster::object::Object;
use cluster::source::{Options, read_text};
use dns_server::{Handler, Protocol, ResponderOptions};
use hickory_proto::op::{Message, MessageType};
use hickory_proto::rr::Name;
use hickory_proto::serialize::binary::BinEncodable as _;
use libfuzzer_sys::fuzz_target;

/// A Service of each kind that DNS distinguishes.
const CLUSTER: &[u8] = b"
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}, spec: {podCIDRs: [10.244.1.0/24, 'fd00:1::/64']}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {topology.kubernetes.io/zone: b}}, spec: {podCIDRs: [10.244.2.0/24, 'fd00:2::/64']}}
---
{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop, annotations: {topology.ipvs-topo.io/keys: 'zone,*'}},
  spec: {clusterIP: None, ports: [{name: http, port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {clusterIP: 10.96.0.10, ports: [{name: http, port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: away, namespace: shop}, spec: {type: ExternalName, externalName: cart.shop.svc.cluster.local}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}},
  addressType: IPv4, ports: [{name: http, port: 8080}],
  endpoints: [{addresses: [10.244.1.10], nodeName: n1, hostname: cart-0}, {addresses: [10.244.2.10], nodeName: n2}]}
";

static SERVER: LazyLock<Handler> = LazyLock::new(|| {
    let options = Options {
        services: ServiceSelection::All,
        ..Options::default()
    };
    let snapshot = read_text("cluster.yaml", CLUSTER, &options)
        .unwrap()
        .snapshot;
    let mut objects: Vec<Object> = snapshot.nodes().cloned().map(Object::Node).collect();
    for service in snapshot.services() {
        let slices = snapshot.slices(&service.name).iter().cloned();
        objects.extend(slices.map(Object::EndpointSlice));
        objects.push(Object::Service(service.clone()));
    }
    let mut events = vec![Event::Begin];
    events.extend(objects.into_iter().map(Event::Apply));
    events.push(Event::Complete(Completeness::Whole));
    let options = ResponderOptions {
        domain: Name::from_ascii("cluster.local.").unwrap(),
        ttl: 5,
        node: "n1".into(),
        endpoints: vec!["10.244.1.53:53".parse().unwrap()],
    };
    let server = Handler::new(options, Vec::new());
    let reports = Vec::new();
    server.apply(vec![Batch { events, reports }]);
    server
});

/// Whether the questions of a request refer to other bytes. A reply over UDP repeats them as they came, behind another
/// header, so a client that refers to its header cannot read the reply.
fn has_references(request: &[u8]) -> bool {
    let Ok(message) = Message::from_vec(request) else {
        return false;
    };
    let questions = message
        .queries
        .iter()
        .map(|query| query.to_bytes().unwrap());
    let questions = questions.collect::<Vec<_>>().concat();
    !request[12..].starts_with(&questions)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((how, request)) = bytes.split_first() else {
        return;
    };
    let client: IpAddr = match how & 1 {
        0 => Ipv4Addr::new(10, 244, how & 3, *how).into(),
        _ => Ipv6Addr::new(0xfd00, u16::from(how & 3), 0, 0, 0, 0, 0, 7).into(),
    };
    let (protocol, most) = match how & 4 {
        0 => (Protocol::Udp, 1_232),
        _ => (Protocol::Tcp, 65_535),
    };
    let client = SocketAddr::new(client, 40_000);
    let reply = pin!(SERVER.respond(request.to_vec(), client, protocol));
    let Poll::Ready(reply) = reply.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("a server without upstream servers waits for nothing");
    };
    let is_response = request.get(2).is_none_or(|flags| flags & 0x80 != 0);
    let Some(reply) = reply else {
        assert!(is_response || request.len() < 12, "a request has no reply");
        return;
    };
    assert!(!is_response, "a response has a reply");
    assert!(reply.len() <= most, "{} bytes", reply.len());
    match Message::from_vec(&reply) {
        Ok(message) => assert_eq!(message.metadata.message_type, MessageType::Response),
        Err(error) => assert!(has_references(request), "{error}"),
    }
    assert_eq!(reply.get(..2), request.get(..2), "the reply has another id");
});
