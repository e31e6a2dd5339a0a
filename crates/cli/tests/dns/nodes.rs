//! Clients of different nodes get different answers, and changes are answered.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;

use crate::client::{CART, N1, N2, answers, over_tcp, over_udp, query};
use crate::program::{PATIENCE, Program, cluster, write_endpoints};

const BOTH: &[(&str, &str)] = &[("10.244.1.10", "n1"), ("10.244.2.10", "n2")];

#[test]
fn clients_of_two_nodes_get_the_endpoints_of_their_zone_over_udp_and_tcp() {
    let program = Program::with(BOTH, &["--ttl", "7"]);
    let elsewhere = Ipv4Addr::LOCALHOST;
    let question = query(CART, RecordType::A);
    for (client, expected) in [
        (N1, "10.244.1.10"),
        (N2, "10.244.2.10"),
        (elsewhere, "10.244.1.10"),
    ] {
        for ask in [over_udp, over_tcp] {
            let answer = ask(client, program.address, &question);
            assert_eq!(answers(&answer), [expected]);
            assert!(answer.metadata.authoritative && !answer.metadata.recursion_available);
            assert_eq!(answer.answers[0].ttl, 7);
        }
    }
    let logged = program.more_lines();
    assert_eq!(logged, [""; 0], "queries are not logged");
    assert_eq!(program.end(rustix::process::Signal::TERM), Some(0));
}

#[test]
fn names_that_do_not_exist_and_types_that_do_not_have_the_soa() {
    let program = Program::with(BOTH, &[]);
    for (name, record_type, code) in [
        (
            "x.shop.svc.cluster.local.",
            RecordType::A,
            ResponseCode::NXDomain,
        ),
        (CART, RecordType::AAAA, ResponseCode::NoError),
    ] {
        let answer = over_udp(N1, program.address, &query(name, record_type));
        assert_eq!(answer.metadata.response_code, code);
        assert_eq!(answers(&answer), [""; 0]);
        assert_eq!(answer.authorities[0].record_type(), RecordType::SOA);
    }
    let srv = query("_http._tcp.web.shop.svc.cluster.local.", RecordType::SRV);
    let answer = over_udp(N1, program.address, &srv);
    assert_eq!(answers(&answer), ["0 1 80 web.shop.svc.cluster.local."]);
    assert_eq!(answer.additionals.len(), 1);
    let other = over_udp(N1, program.address, &query("example.com.", RecordType::A));
    assert_eq!(other.metadata.response_code, ResponseCode::Refused);
}

#[test]
fn a_changed_file_changes_the_next_answers() {
    let program = Program::with(BOTH, &[]);
    let question = query(CART, RecordType::A);
    let ask = |client| answers(&over_udp(client, program.address, &question));
    assert_eq!(ask(N1), ["10.244.1.10"]);
    write_endpoints(program.folder.path(), &[("10.244.2.10", "n2")]);
    let written = Instant::now();
    while ask(N1) != ["10.244.2.10"] {
        assert!(written.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ask(N2), ["10.244.2.10"]);
}

#[test]
fn names_of_the_cluster_have_no_answer_until_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::in_folder(folder, &["--domain", "Cluster.Local"]);
    let question = query(CART, RecordType::A);
    let answer = over_udp(N1, program.address, &question);
    assert_eq!(answer.metadata.response_code, ResponseCode::ServFail);
    let given = cluster();
    write_endpoints(given.path(), BOTH);
    for file in ["a.yaml", "slice.yaml"] {
        std::fs::copy(given.path().join(file), program.folder.path().join(file)).unwrap();
    }
    let started = Instant::now();
    while answers(&over_udp(N1, program.address, &question)) != ["10.244.1.10"] {
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_node_that_the_cluster_does_not_have_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let yaml = "{apiVersion: v1, kind: Node, metadata: {name: n9}}";
    std::fs::write(folder.path().join("a.yaml"), yaml).unwrap();
    let program = Program::in_folder(folder, &[]);
    program.line_with("the cluster has no Node n1");
}
