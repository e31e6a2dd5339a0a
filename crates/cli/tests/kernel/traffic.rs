//! Connections through virtual servers.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::time::Duration;

use crate::agent::{Node, wait_kernel};
use crate::lab::{Lab, Place, other_end, sh, talk, wait_until};
use crate::yaml::{NODES, Service, slice};

const CIDRS: &[&str] = &["--service-cidr", "10.96.0.0/12,fd00:10:96::/112"];

/// The number of `connections` that each server answered, and of `failed` ones.
pub(crate) fn hits(
    from: &Place,
    target: &str,
    connections: u32,
    flags: &str,
) -> BTreeMap<String, u64> {
    counted(&from.sh(&load(target, connections, flags)))
}

pub(crate) fn load(target: &str, connections: u32, flags: &str) -> String {
    format!("guest load --target {target} --connections {connections} {flags} -o json || true")
}

/// Parses the output of a client.
pub(crate) fn counted(text: &str) -> BTreeMap<String, u64> {
    let report: serde_json::Value =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let answers = report["answers"]
        .as_object()
        .unwrap_or_else(|| panic!("{text}"));
    let mut hits: BTreeMap<_, _> = answers
        .iter()
        .map(|(name, n)| (name.clone(), n.as_u64().unwrap()))
        .collect();
    let failed = report["failed"]
        .as_u64()
        .unwrap_or_else(|| panic!("{text}"));
    if failed > 0 {
        hits.insert("failed".to_owned(), failed);
    }
    hits
}

fn counts(list: &[(&str, u64)]) -> BTreeMap<String, u64> {
    list.iter()
        .map(|&(name, count)| (name.to_owned(), count))
        .collect()
}

fn web(annotations: &str) -> Service<'_> {
    Service {
        name: "web",
        ips: &["10.96.0.10", "fd00:10:96::a"],
        ports: &[("TCP", 80), ("UDP", 53)],
        spec: "",
        annotations,
    }
}

const PORTS: &[(&str, u16, u16)] = &[("TCP", 80, 8080), ("UDP", 53, 5353)];

#[test]
fn weights_are_exact_from_pods_and_from_the_node_itself() {
    let mut lab = Lab::new();
    let (client, near, zone, far) = (lab.pod(), lab.pod(), lab.pod(), lab.pod());
    let _servers: Vec<_> = [(&near, "near"), (&zone, "zone"), (&far, "far")]
        .into_iter()
        .flat_map(|(pod, name)| pod.serve(8080, name))
        .collect();
    let mut node = Node::new().with(CIDRS);
    node.write("nodes.yaml", NODES);
    node.write(
        "service.yaml",
        &web("topology.ipvs-topo.io/weights: 'node=80,zone=15,*=5'").yaml(),
    );
    let endpoints4 = [
        format!("{} n1", near.v4),
        format!("{} n2", zone.v4),
        format!("{} n3", far.v4),
    ];
    let endpoints6 = [
        format!("{} n1", near.v6),
        format!("{} n2", zone.v6),
        format!("{} n3", far.v6),
    ];
    node.write("v4.yaml", &slice("web", "web-4", PORTS, &endpoints4));
    node.write("v6.yaml", &slice("web", "web-6", PORTS, &endpoints6));
    node.start();
    let wanted = counts(&[("near", 80), ("zone", 15), ("far", 5)]);
    for target in ["10.96.0.10:80", "[fd00:10:96::a]:80"] {
        assert_eq!(hits(&client, target, 100, ""), wanted);
        // The node's connections have its own source address (design D2), so replies come back.
        assert_eq!(counted(&sh(&load(target, 100, ""))), wanted);
    }
}

#[test]
fn pain_26_a_pod_reaches_itself_through_its_own_service() {
    let mut lab = Lab::new();
    let pod = lab.pod();
    let _servers = pod.serve(8080, "myself");
    let mut node = Node::new().with(CIDRS);
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &web("").yaml());
    node.write(
        "v4.yaml",
        &slice("web", "web-4", PORTS, &[&format!("{} n1", pod.v4)]),
    );
    node.write(
        "v6.yaml",
        &slice("web", "web-6", PORTS, &[&format!("{} n1", pod.v6)]),
    );
    node.start();
    assert_eq!(
        hits(&pod, "10.96.0.10:80", 10, ""),
        counts(&[("myself", 10)])
    );
    assert_eq!(
        hits(&pod, "[fd00:10:96::a]:80", 10, ""),
        counts(&[("myself", 10)])
    );
}

/// Sends a datagram from a fixed source port, and returns the reply.
fn ask_udp(from: std::net::IpAddr, target: &str) -> String {
    let socket = std::net::UdpSocket::bind((from, 40000)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    socket.connect(target).unwrap();
    socket.send(b"who are you").unwrap();
    let mut answer = [0; 64];
    match socket.recv(&mut answer) {
        Ok(length) => String::from_utf8_lossy(&answer[..length]).into_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn t01_a_udp_client_that_keeps_its_port_leaves_a_dead_pod() {
    let mut lab = Lab::new();
    let (client, one, two) = (lab.pod(), lab.pod(), lab.pod());
    let _one = one.spawn(&format!(
        "guest serve --listen {}:5353 --name one --udp",
        one.v4
    ));
    let _two = two.spawn(&format!(
        "guest serve --listen {}:5353 --name two --udp",
        two.v4
    ));
    let mut node = Node::new().with(CIDRS);
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &web("").yaml());
    let endpoints = |pods: &[&Place]| {
        let lines: Vec<_> = pods.iter().map(|pod| format!("{} n1", pod.v4)).collect();
        slice("web", "web-4", PORTS, &lines)
    };
    node.write("v4.yaml", &endpoints(&[&one]));
    node.start();
    let ask = || client.inside(|| ask_udp(client.v4, "10.96.0.10:53"));
    assert_eq!(ask().trim(), "one");
    let tracked = || sh("conntrack -L -p udp --orig-dst 10.96.0.10 2>/dev/null");
    assert!(
        tracked().contains(&format!("src={}", one.v4)),
        "{}",
        tracked()
    );
    node.write("v4.yaml", &endpoints(&[&two]));
    wait_until("the other real server", || {
        crate::agent::kernel().contains(&format!("-a -u 10.96.0.10:53 -r {}:5353 -m -w 1", two.v4))
    });
    wait_until("no entry of the old server", || {
        !tracked().contains(&format!("src={} ", one.v4))
    });
    assert_eq!(ask().trim(), "two");
}

#[test]
fn kp_ut_041_internal_traffic_policy_local_without_local_endpoints_refuses() {
    let mut lab = Lab::new();
    let (client, far) = (lab.pod(), lab.pod());
    let _server = far.serve(8080, "far");
    let mut node = Node::new().with(CIDRS);
    let service = Service {
        spec: "  internalTrafficPolicy: Local\n",
        ..web("")
    };
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &service.yaml());
    node.write(
        "v4.yaml",
        &slice("web", "web-4", PORTS, &[&format!("{} n2", far.v4)]),
    );
    node.start();
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        "-A -t [fd00:10:96::a]:80 -s wrr",
        "-A -u 10.96.0.10:53 -s wrr",
        "-A -u [fd00:10:96::a]:53 -s wrr",
    ]);
    assert_eq!(
        hits(&client, "10.96.0.10:80", 3, ""),
        counts(&[("failed", 3)])
    );
}

/// The result of a connection attempt to the Service; a timeout is two unanswered SYNs.
fn ending() -> Result<(), std::io::ErrorKind> {
    let target = "10.96.0.10:80".parse().unwrap();
    let ended = TcpStream::connect_timeout(&target, Duration::from_secs(3));
    ended.map(drop).map_err(|error| error.kind())
}

#[test]
fn a_hard_policy_without_a_match_refuses_or_drops() {
    use std::io::ErrorKind::{ConnectionRefused, TimedOut};
    let mut lab = Lab::new();
    let (client, server) = (lab.pod(), lab.pod());
    let listener = server.listen(8080);
    let mut node = Node::new().with(CIDRS);
    let keys = "topology.ipvs-topo.io/keys: node";
    let silent = format!("{keys}, topology.ipvs-topo.io/on-no-match: drop");
    let elsewhere = slice("web", "web-4", PORTS, &[&format!("{} n2", server.v4)]);
    let here = slice("web", "web-4", PORTS, &[&format!("{} n1", server.v4)]);
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &web(keys).yaml());
    node.write("v4.yaml", &elsewhere);
    node.start();
    assert_eq!(client.inside(ending), Err(ConnectionRefused));
    assert_eq!(ending(), Err(ConnectionRefused), "from the node itself");
    node.write("service.yaml", &web(&silent).yaml());
    wait_until("silence", || client.inside(ending) == Err(TimedOut));
    assert_eq!(ending(), Err(TimedOut), "from the node itself");
    node.write("v4.yaml", &here);
    wait_until("a match", || client.inside(ending).is_ok());
    assert_eq!(ending(), Ok(()));
    let open = client.connect("10.96.0.10:80");
    let far = other_end(&listener, &open);
    node.write("v4.yaml", &elsewhere);
    wait_until("silence again", || client.inside(ending) == Err(TimedOut));
    // An established connection continues.
    talk(&open, &far);
}
