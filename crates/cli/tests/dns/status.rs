//! Metrics and health over HTTP.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Instant;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::RecordType;

use crate::client::{CART, N1, N2, answers, datagram, over_tcp, over_udp, query, with_size};
use crate::forwarding::Upstream;
use crate::program::{PATIENCE, Program, cluster, write_endpoints};
use crate::scrape::{HEALTH, METRICS, Scrape, get};

const ONE: &[(&str, &str)] = &[("10.244.1.10", "n1")];

/// Sends a query, and returns the bytes of the query and of the reply.
fn sizes(program: &Program, client: Ipv4Addr, query: &Message) -> (usize, usize) {
    let bytes = query.to_vec().unwrap();
    let reply = datagram(client, program.address, &bytes);
    (bytes.len(), reply.len())
}

#[test]
fn known_queries_have_exact_counts() {
    let program = Program::with(ONE, &METRICS);
    let mut dnssec = with_size(query(CART, RecordType::AAAA), 1_232);
    dnssec.edns.as_mut().unwrap().set_dnssec_ok(true);
    let queries = [
        query(CART, RecordType::A),
        query(CART, RecordType::A),
        dnssec,
        query("x.shop.svc.cluster.local.", RecordType::A),
        query("example.com.", RecordType::MX),
        query(CART, RecordType::Unknown(65_280)),
        query(CART, RecordType::CAA),
        query("example.com.", RecordType::Unknown(65_281)),
    ];
    let sizes = queries.map(|query| sizes(&program, N1, &query));
    let tcp = query(CART, RecordType::A);
    let reply = over_tcp(N2, program.address, &tcp);
    let metrics = Scrape::of(&program);
    assert_eq!(
        metrics.series("ipvs_topo_dns_requests_total"),
        [
            "proto=\"tcp\",family=\"1\",type=\"A\"} 1",
            "proto=\"udp\",family=\"1\",type=\"A\"} 3",
            "proto=\"udp\",family=\"1\",type=\"AAAA\"} 1",
            "proto=\"udp\",family=\"1\",type=\"MX\"} 1",
            "proto=\"udp\",family=\"1\",type=\"other\"} 3",
        ]
    );
    assert_eq!(
        metrics.series("ipvs_topo_dns_responses_total"),
        [
            "rcode=\"NOERROR\",source=\"cluster\"} 6",
            "rcode=\"NXDOMAIN\",source=\"cluster\"} 1",
            "rcode=\"REFUSED\",source=\"none\"} 2",
        ]
    );
    assert_eq!(metrics.value("ipvs_topo_dns_do_requests_total"), "1");
    assert_eq!(
        metrics.series("ipvs_topo_dns_request_duration_seconds_count"),
        ["source=\"cluster\"} 7", "source=\"none\"} 2"]
    );
    let sum = |metric: &str, proto: &str| {
        metrics.value(&format!("ipvs_topo_dns_{metric}_sum{{proto=\"{proto}\"}}"))
    };
    let (asked, answered) = sizes
        .into_iter()
        .fold((0, 0), |(asked, answered), (query, reply)| {
            (asked + query, answered + reply)
        });
    assert_eq!(sum("request_size_bytes", "udp"), format!("{asked}.0"));
    assert_eq!(sum("response_size_bytes", "udp"), format!("{answered}.0"));
    let length = |message: &Message| format!("{}.0", message.to_vec().unwrap().len());
    assert_eq!(sum("request_size_bytes", "tcp"), length(&tcp));
    assert_eq!(sum("response_size_bytes", "tcp"), length(&reply));
    assert!(metrics.value("process_resident_memory_bytes").len() > 6);
    assert_eq!(metrics.value("ipvs_topo_dns_cluster_read"), "1");
}

#[test]
fn upstream_servers_have_durations_and_failures() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let upstream = Upstream::start();
    let silent = silent.local_addr().unwrap().to_string();
    let answering = upstream.address.to_string();
    let closed = "127.0.0.1:1";
    let upstreams = [closed, &silent, &answering].map(|server| ["--upstream", server]);
    let upstreams = upstreams.concat();
    let program = Program::with(ONE, &[&METRICS[..], &upstreams].concat());
    // The first two are asked once, and then no more.
    for name in ["www.example.com.", "absent.example.com."] {
        over_udp(N1, program.address, &query(name, RecordType::A));
    }
    let alias = query("away.shop.svc.cluster.local.", RecordType::A);
    over_tcp(N1, program.address, &alias);
    let metrics = Scrape::of(&program);
    assert_eq!(
        metrics.series("ipvs_topo_dns_proxy_failures_total"),
        [
            format!("to=\"{closed}\",reason=\"unreachable\"}} 1"),
            format!("to=\"{silent}\",reason=\"timeout\"}} 1"),
        ]
    );
    let answers = "ipvs_topo_dns_proxy_request_duration_seconds_count";
    assert_eq!(
        metrics.series(answers),
        [
            format!("to=\"{answering}\",rcode=\"NOERROR\"}} 2"),
            format!("to=\"{answering}\",rcode=\"NXDOMAIN\"}} 1"),
        ]
    );
    assert_eq!(
        metrics.series("ipvs_topo_dns_responses_total"),
        [
            "rcode=\"NOERROR\",source=\"upstream\"} 2",
            "rcode=\"NXDOMAIN\",source=\"upstream\"} 1",
        ]
    );
    assert_eq!(metrics.value("ipvs_topo_dns_forward_waiting"), "0");
}

#[test]
fn the_servers_of_a_resolver_file_are_asked_at_port_53() {
    let file = tempfile::NamedTempFile::new().unwrap();
    // Nothing listens there.
    std::fs::write(&file, "search example.com\nnameserver 127.1.2.53\n").unwrap();
    let upstream = Upstream::start();
    let answering = upstream.address.to_string();
    let upstreams = [file.path().to_str().unwrap(), &answering].map(|it| ["--upstream", it]);
    let program = Program::with(ONE, &[&METRICS[..], &upstreams.concat()].concat());
    let question = query("www.example.com.", RecordType::A);
    let found = over_udp(N1, program.address, &question);
    assert_eq!(answers(&found), ["192.0.2.80"]);
    assert_eq!(
        Scrape::of(&program).series("ipvs_topo_dns_proxy_failures_total"),
        ["to=\"127.1.2.53:53\",reason=\"unreachable\"} 1"]
    );
}

#[test]
fn the_server_is_ready_when_the_first_list_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let options = [METRICS, HEALTH].concat();
    let program = Program::in_folder(folder, &options);
    let health = program.health.unwrap();
    let statuses = || ["/livez", "/readyz", "/healthz"].map(|path| get(health, path).0);
    assert_eq!(statuses(), [200, 503, 503]);
    let early = over_udp(N1, program.address, &query(CART, RecordType::A));
    assert_eq!(early.metadata.response_code, ResponseCode::ServFail);
    let metrics = Scrape::of(&program);
    assert_eq!(metrics.value("ipvs_topo_dns_cluster_read"), "0");
    assert_eq!(
        metrics.series("ipvs_topo_dns_responses_total"),
        ["rcode=\"SERVFAIL\",source=\"none\"} 1"]
    );

    let given = cluster();
    write_endpoints(given.path(), ONE);
    for file in ["a.yaml", "slice.yaml"] {
        std::fs::copy(given.path().join(file), program.folder.path().join(file)).unwrap();
    }
    let started = Instant::now();
    while statuses() != [200, 200, 200] {
        assert!(started.elapsed() < PATIENCE);
    }
    let metrics = Scrape::of(&program);
    assert_eq!(metrics.value("ipvs_topo_dns_cluster_read"), "1");
    assert_eq!(get(health, "/metrics").0, 404);
}
