//! `cargo bench -p benches --bench dns`: measures a query that is answered from memory, from the bytes of the request to
//! those of the reply, without sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use benches::{Shape, write_cluster};
use cluster::event::{Batch, Completeness, Event};
use cluster::object::Object;
use cluster::source::{Options, read_text};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dns_server::{Handler, Protocol, ResponderOptions};
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};
use topology_core::model::Service;

/// The policy of the measured Services, if they have one.
const WEIGHTS: &str = "node=80,zone=15,*=5";

const SERVICES: u32 = 10_000;

/// A pod of no node, so it counts as one of the server's node.
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 127, 0, 7);

/// Whether the measured Services have cluster IPs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    ClusterIp,
    Headless,
}

/// A server that has read 10,000 Services of 10 endpoints.
fn server(kind: Kind, weights: Option<&str>) -> Handler {
    let shape = Shape {
        services: SERVICES,
        weights: weights.map(str::to_owned),
        ..Shape::default()
    };
    let mut text = Vec::new();
    let written = write_cluster(&shape, &mut text);
    let loaded = written.map(|()| read_text("generated", &text, &Options::default()));
    let snapshot = match loaded {
        Ok(Ok(loaded)) => loaded.snapshot,
        other => unreachable!("a generated cluster is read without trouble: {other:?}"),
    };
    let nodes = snapshot.nodes().cloned().map(Object::Node);
    let mut objects: Vec<Object> = nodes.collect();
    for service in snapshot.services() {
        let slices = snapshot.slices(&service.name).iter().cloned();
        objects.extend(slices.map(Object::EndpointSlice));
        objects.push(Object::Service(match kind {
            Kind::ClusterIp => service.clone(),
            Kind::Headless => Service {
                frontends: Vec::new(),
                ..service.clone()
            },
        }));
    }
    let mut events = vec![Event::Begin];
    events.extend(objects.into_iter().map(Event::Apply));
    events.push(Event::Complete(Completeness::Whole));
    let domain = name("cluster.local.");
    let node = shape.node(0).name.into();
    let options = ResponderOptions {
        domain,
        ttl: 5,
        node,
        endpoints: Vec::new(),
    };
    let server = Handler::new(options, Vec::new());
    let reports = Vec::new();
    server.apply(vec![Batch { events, reports }]);
    server
}

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap_or_else(|error| unreachable!("{text}: {error}"))
}

/// Queries for each Service, in an order that is not that of any table.
fn queries(host: &str, record_type: RecordType) -> Vec<Vec<u8>> {
    let numbers = (0..SERVICES).map(|step| step.wrapping_mul(7_919) % SERVICES + 1);
    let queries = numbers.map(|number| {
        let text = format!("{host}svc-{number:05}.load.svc.cluster.local.");
        let mut message = Message::query();
        message.add_query(Query::query(name(&text), record_type));
        message.to_vec().unwrap_or_default()
    });
    queries.collect()
}

/// The reply, which waits for nothing.
fn reply(server: &Handler, query: &[u8]) -> Vec<u8> {
    let client = SocketAddr::from((CLIENT, 40_000));
    let reply = pin!(server.respond(query.to_vec(), client, Protocol::Udp));
    match reply.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(reply)) => reply,
        other => unreachable!("a query of the cluster is answered at once: {other:?}"),
    }
}

fn queries_of_the_cluster(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("DNS query, 10,000 Services x 10");
    group.throughput(Throughput::Elements(1));
    for (title, kind, weights, host, answers) in [
        ("cluster IP", Kind::ClusterIp, None, "", 1),
        ("headless", Kind::Headless, None, "", 10),
        (
            "headless with weights",
            Kind::Headless,
            Some(WEIGHTS),
            "",
            1,
        ),
        ("no such name", Kind::Headless, None, "absent.", 0),
    ] {
        let server = server(kind, weights);
        let queries = queries(host, RecordType::A);
        for query in &queries {
            // The first query of each Service decides about its endpoints.
            let reply = Message::from_vec(&reply(&server, query));
            let found = reply.map_or(0, |reply| reply.answers.len());
            assert!(found >= answers, "{title}: {found} answers");
        }
        let mut next = queries.iter().cycle();
        group.bench_function(title, |bencher| {
            bencher.iter(|| next.next().map(|query| reply(&server, query)));
        });
    }
    group.finish();
}

criterion_group!(benches, queries_of_the_cluster);
criterion_main!(benches);
