//! Connection tracking entries of UDP Services: many ports, several addresses, both families.

use std::net::{IpAddr, UdpSocket};
use std::time::Instant;

use crate::agent::Node;
use crate::lab::{Lab, NODE_V4, NODE_V6, Place, sh, wait_until};
use crate::yaml::{External, NODES, Service, slice, web};

const PORTS: u16 = 2_000;
/// Number of ports with an entry that no IPVS connection owns.
const UNOWNED: u16 = 20;
const HEALTHZ: &str = "127.0.0.1:10999";
const METRICS: &str = "127.0.0.1:10998";

/// Number of entries with replies from `server`.
fn tracked(server: &Place) -> usize {
    let list = sh("conntrack -L -p udp --orig-dst 10.96.0.10 2>/dev/null");
    list.matches(&format!("src={} ", server.v4)).count()
}

/// Sends one datagram from the same socket to each port of the Service.
fn ask(from: IpAddr) {
    let socket = UdpSocket::bind((from, 40_000)).unwrap();
    for port in 1..=PORTS {
        // A later send returns the error of an earlier datagram.
        while socket
            .send_to(b"who are you", ("10.96.0.10", port))
            .is_err()
        {}
    }
}

/// Adds entries that no IPVS connection owns. Since Linux 5.9 the kernel deletes its own entries
/// together with the real server.
fn track_unowned(client: &Place, server: &Place) {
    for port in 1..=UNOWNED {
        track(client, "10.96.0.10", server, port);
    }
}

/// Adds an entry of a datagram to `service`, with a reply from `server` and the same port.
fn track(client: &Place, service: &str, server: &Place, port: u16) {
    let server = if service.contains(':') {
        server.v6
    } else {
        server.v4
    };
    track_from(client, service, &server.to_string(), port, 0);
}

/// The same with the address that replies come from, and a conntrack zone.
fn track_from(client: &Place, service: &str, server: &str, port: u16, zone: u16) {
    let client = if service.contains(':') {
        client.v6
    } else {
        client.v4
    };
    // Unique for each address: replies of one server must differ in the client's port.
    let last = service.rsplit(['.', ':']).next().unwrap();
    let from = 50_000 + last.parse::<u16>().unwrap();
    sh(&format!(
        "conntrack -I -w {zone} -p udp -t 600 -s {client} -d {service} --sport {from} --dport {port} \
         --reply-src {server} --reply-dst {client} --reply-port-src {port} --reply-port-dst {from} 2>&1"
    ));
}

/// Number of entries of datagrams to `service`.
fn tracked_to(service: &str) -> usize {
    let family = if service.contains(':') {
        "ipv6"
    } else {
        "ipv4"
    };
    let list = sh(&format!(
        "conntrack -L -f {family} -p udp --orig-dst {service} 2>/dev/null"
    ));
    list.lines().count()
}

/// The status code of `GET /livez`.
fn livez() -> String {
    sh(&format!(
        "curl -s -o /dev/null -w '%{{http_code}}' http://{HEALTHZ}/livez"
    ))
}

/// The value of a metric about deleting IPv4 entries.
fn metric(name: &str) -> u32 {
    let all = sh(&format!("curl -s http://{METRICS}/metrics"));
    let name = format!("kubeproxy_conntrack_reconciler_{name}{{ip_family=\"IPv4\"}} ");
    let found = all.lines().find_map(|line| line.strip_prefix(&name));
    found.unwrap_or(&all).parse().unwrap()
}

#[test]
fn d13_the_entries_of_2000_udp_ports_are_read_in_a_few_dumps_outside_the_main_loop() {
    let mut lab = Lab::new();
    let (client, one, two) = (lab.pod(), lab.pod(), lab.pod());
    sh("sysctl -qw net.netfilter.nf_conntrack_udp_timeout=600");
    let arguments = [
        "--service-cidr",
        "10.96.0.0/12",
        "--healthz-bind-address",
        HEALTHZ,
        "--metrics-bind-address",
        METRICS,
    ];
    let mut node = Node::new().with(&arguments);
    let ports: Vec<_> = (1..=PORTS).map(|port| ("UDP", port)).collect();
    let targets: Vec<_> = (1..=PORTS).map(|port| ("UDP", port, port)).collect();
    let service = Service {
        ports: &ports,
        ..web("many", &["10.96.0.10"])
    };
    let endpoint = |pod: &Place| slice("many", "many-4", &targets, &[format!("{} n1", pod.v4)]);
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &service.yaml());
    node.write("slice.yaml", &endpoint(&one));
    node.start();
    wait_until("an entry of each port", || {
        // A burst of datagrams can overflow the queue of the client's link.
        client.inside(|| ask(client.v4));
        tracked(&one) == usize::from(PORTS)
    });
    track_unowned(&client, &one);
    assert_eq!(tracked(&one), usize::from(PORTS + UNOWNED));

    let (dumps, deleted) = (
        metric("sync_duration_seconds_count"),
        metric("deleted_entries_total"),
    );
    let began = Instant::now();
    node.write("slice.yaml", &endpoint(&two));
    wait_until("no entry of the old server", || {
        assert_eq!(livez(), "200");
        tracked(&one) == 0
    });
    eprintln!("gone after {:?}", began.elapsed());
    let dumps = metric("sync_duration_seconds_count") - dumps;
    let deleted = metric("deleted_entries_total") - deleted;
    eprintln!("{dumps} dumps, {deleted} deletions");
    // The steps are written in six chunks, each with at most one dump.
    assert!((1..=6).contains(&dumps), "{dumps}");
    assert!(deleted >= u32::from(UNOWNED), "{deleted}");
}

const A: [&str; 2] = ["10.96.0.10", "fd00:10:96::10"];
const B: [&str; 2] = ["10.96.0.11", "fd00:10:96::11"];
/// Addresses of no Service.
const NEITHER: [&str; 2] = ["10.96.0.12", "fd00:10:96::12"];

/// Slices of both families for Services with these endpoints.
fn slices(pods: [(&str, &Place); 2]) -> String {
    let ports = [("UDP", 53, 53), ("UDP", 54, 54)];
    let of = |(service, pod): (&str, &Place)| {
        [(4, pod.v4), (6, pod.v6)].map(|(family, address)| {
            let name = format!("{service}-{family}");
            slice(service, &name, &ports, &[format!("{address} n1")])
        })
    };
    pods.map(of).concat().concat()
}

/// Adds entries of both families to two ports of a Service.
fn track_all(client: &Place, service: [&str; 2], server: &Place) {
    for address in service {
        track(client, address, server, 53);
        track(client, address, server, 54);
    }
}

#[test]
fn d13_entries_of_one_and_of_several_addresses_are_the_only_ones_deleted_in_both_families() {
    let mut lab = Lab::new();
    let (client, one, two) = (lab.pod(), lab.pod(), lab.pod());
    let ranges = "10.96.0.0/12,fd00:10:96::/112";
    let mut node = Node::new().with(&["--service-cidr", ranges]);
    node.write("nodes.yaml", NODES);
    for (name, ips) in [("a", &A), ("b", &B)] {
        let ports = &[("UDP", 53), ("UDP", 54)];
        let service = Service {
            ports,
            ..web(name, ips)
        };
        node.write(&format!("{name}.yaml"), &service.yaml());
    }
    node.write("slices.yaml", &slices([("a", &one), ("b", &one)]));
    node.start();
    for service in [A, B, NEITHER] {
        track_all(&client, service, &one);
    }
    let left = |service: [&str; 2]| service.map(tracked_to);
    assert_eq!([A, B, NEITHER].map(left), [[2, 2]; 3]);

    // Two ports of one address: the agent dumps the entries of that address.
    node.write("slices.yaml", &slices([("a", &two), ("b", &one)]));
    wait_until("no entry of a", || left(A) == [0, 0]);
    assert_eq!([B, NEITHER].map(left), [[2, 2]; 2]);

    // Two addresses: the agent dumps the entries of the family.
    track_all(&client, A, &two);
    node.write("slices.yaml", &slices([("a", &one), ("b", &two)]));
    wait_until("no entry of a and b", || [A, B].map(left) == [[0, 0]; 2]);
    assert_eq!(left(NEITHER), [2, 2]);
}

/// A Service that serves the same UDP port at each of its addresses.
const PORT: u16 = 30_053;
const VIPS: [&str; 2] = ["203.0.113.7", "2001:db8::7"];
/// Where another host serves the number of the node port.
const OTHER_HOST: [&str; 2] = ["192.0.2.8", "2001:db8:ffff::8"];

fn external(ingress: &[&str], node_ports: &[u16]) -> String {
    let service = Service {
        ports: &[("UDP", PORT)],
        ..web("web", &A)
    };
    if ingress.is_empty() && node_ports.is_empty() {
        return service.yaml();
    }
    let external = External {
        node_ports,
        ingress,
        ..External::default()
    };
    external.yaml(&service)
}

fn endpoints(pods: &[&Place]) -> String {
    let of = |family: &str, ip: fn(&Place) -> IpAddr| {
        let lines: Vec<_> = pods.iter().map(|pod| format!("{} n1", ip(pod))).collect();
        slice(
            "web",
            &format!("web-{family}"),
            &[("UDP", PORT, PORT)],
            &lines,
        )
    };
    of("4", |pod| pod.v4) + &of("6", |pod| pod.v6)
}

#[test]
fn kp_ct_04_a_node_port_or_an_address_that_is_removed_takes_its_own_entries_along_and_no_others() {
    let mut lab = Lab::new();
    let (client, server) = (lab.pod(), lab.pod());
    let ranges = "10.96.0.0/12,fd00:10:96::/112";
    let mut node = Node::new().with(&["--service-cidr", ranges]);
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &external(&VIPS, &[PORT]));
    node.write("slices.yaml", &endpoints(&[&server]));
    node.start();
    let frontends = [A, VIPS, [NODE_V4, NODE_V6], OTHER_HOST];
    for address in frontends.into_iter().flatten() {
        track(&client, address, &server, PORT);
    }
    let left = || frontends.map(|addresses| addresses.map(tracked_to));
    assert_eq!(left(), [[1, 1]; 4]);

    node.write("service.yaml", &external(&VIPS, &[]));
    wait_until("no entry of the node port", || left()[2] == [0, 0]);
    assert_eq!(left(), [[1, 1], [1, 1], [0, 0], [1, 1]]);

    node.write("service.yaml", &external(&[], &[]));
    wait_until("no entry of the load balancer", || left()[1] == [0, 0]);
    assert_eq!(left(), [[1, 1], [0, 0], [0, 0], [1, 1]]);

    // KP-CT-02: kube-proxy keeps the entries of a Service without endpoints.
    node.write("slices.yaml", &endpoints(&[]));
    wait_until("no entry of the cluster IP", || left()[0] == [0, 0]);
    assert_eq!(left()[3], [1, 1]);
}

/// KP-CT-03
#[test]
fn the_first_endpoint_of_a_service_deletes_entries_without_an_endpoint_in_every_zone() {
    let mut lab = Lab::new();
    let (client, server) = (lab.pod(), lab.pod());
    let ranges = "10.96.0.0/12,fd00:10:96::/112";
    let mut node = Node::new().with(&["--service-cidr", ranges]);
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &external(&[], &[PORT]));
    node.write("slices.yaml", &endpoints(&[]));
    node.start();
    let node_ips = [NODE_V4, NODE_V6];
    for address in [A, node_ips, NEITHER].into_iter().flatten() {
        for zone in [0, 7] {
            track_from(&client, address, address, PORT, zone);
        }
    }
    let left = || [A, node_ips, NEITHER].map(|addresses| addresses.map(tracked_to));
    assert_eq!(left(), [[2, 2]; 3]);
    node.write("slices.yaml", &endpoints(&[&server]));
    wait_until("no entry without an endpoint", || {
        left()[..2] == [[0, 0]; 2]
    });
    assert_eq!(left()[2], [2, 2]);
}
