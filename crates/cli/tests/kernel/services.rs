//! Each kind of Service and the virtual servers that ipvsadm shows.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use crate::agent::{Node, kernel, wait_kernel};
use crate::lab::{Lab, sh, wait_until};
use crate::yaml::{NODES, Service, slice, web};

const CIDRS: &[&str] = &["--service-cidr", "10.96.0.0/12,fd00:10:96::/112"];

#[test]
fn kp_vs_20_tcp_udp_and_sctp_of_both_families() {
    let _lab = Lab::new();
    let mut node = Node::new().with(CIDRS);
    let service = Service {
        name: "all",
        ips: &["10.96.0.10", "fd00:10:96::a"],
        ports: &[("TCP", 80), ("UDP", 53), ("SCTP", 132)],
        spec: "",
        annotations: "",
    };
    let ports = &[("TCP", 80, 8080), ("UDP", 53, 5353), ("SCTP", 132, 1320)];
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &service.yaml());
    node.write(
        "v4.yaml",
        &slice("all", "all-4", ports, &["10.244.1.1 n1", "10.244.2.1 n2"]),
    );
    node.write(
        "v6.yaml",
        &slice("all", "all-6", ports, &["fd00:10:244:1::1 n1"]),
    );
    node.start();
    wait_kernel(&[
        "-A --sctp-service 10.96.0.10:132 -s wrr",
        "-A --sctp-service [fd00:10:96::a]:132 -s wrr",
        "-A -t 10.96.0.10:80 -s wrr",
        "-A -t [fd00:10:96::a]:80 -s wrr",
        "-A -u 10.96.0.10:53 -s wrr",
        "-A -u [fd00:10:96::a]:53 -s wrr",
        "-a --sctp-service 10.96.0.10:132 -r 10.244.1.1:1320 -m -w 1",
        "-a --sctp-service 10.96.0.10:132 -r 10.244.2.1:1320 -m -w 1",
        "-a --sctp-service [fd00:10:96::a]:132 -r [fd00:10:244:1::1]:1320 -m -w 1",
        "-a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 1",
        "-a -t 10.96.0.10:80 -r 10.244.2.1:8080 -m -w 1",
        "-a -t [fd00:10:96::a]:80 -r [fd00:10:244:1::1]:8080 -m -w 1",
        "-a -u 10.96.0.10:53 -r 10.244.1.1:5353 -m -w 1",
        "-a -u 10.96.0.10:53 -r 10.244.2.1:5353 -m -w 1",
        "-a -u [fd00:10:96::a]:53 -r [fd00:10:244:1::1]:5353 -m -w 1",
    ]);
    let routes = sh("ip route show table local proto 173; ip -6 route show table local proto 173");
    assert!(routes.contains("local 10.96.0.0/12 dev lo"), "{routes}");
    assert!(routes.contains("src 192.168.10.11"), "{routes}");
    assert!(routes.contains("local fd00:10:96::/112 dev lo"), "{routes}");
    assert!(sh("ip link show kube-ipvs0").contains("kube-ipvs0"));
    let addresses = sh("ip addr show dev kube-ipvs0");
    assert!(!addresses.contains("inet"), "{addresses}");
}

#[test]
fn kp_ut_027_session_affinity_is_persistence_and_can_be_changed_in_place() {
    let _lab = Lab::new();
    let mut node = Node::new().with(CIDRS);
    let with = |affinity: &str| {
        let spec = format!(
            "  sessionAffinity: ClientIP\n  sessionAffinityConfig: {{clientIP: {{timeoutSeconds: {affinity}}}}}\n"
        );
        Service {
            name: "web",
            ips: &["10.96.0.20"],
            ports: &[("TCP", 80)],
            spec: &spec,
            annotations: "",
        }
        .yaml()
    };
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &with("10800"));
    node.write(
        "slice.yaml",
        &slice("web", "web-1", &[("TCP", 80, 8080)], &["10.244.1.1 n1"]),
    );
    node.start();
    wait_kernel(&[
        "-A -t 10.96.0.20:80 -s wrr -p 10800",
        "-a -t 10.96.0.20:80 -r 10.244.1.1:8080 -m -w 1",
    ]);
    node.write("service.yaml", &with("600"));
    wait_kernel(&[
        "-A -t 10.96.0.20:80 -s wrr -p 600",
        "-a -t 10.96.0.20:80 -r 10.244.1.1:8080 -m -w 1",
    ]);
}

#[test]
fn d2_addresses_outside_of_every_range_get_their_own_routes() {
    let _lab = Lab::new();
    let mut node = Node::new();
    let service = |ip: &str| web("web", &[ip]).yaml();
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &service("203.0.113.7"));
    node.start();
    wait_kernel(&["-A -t 203.0.113.7:80 -s wrr"]);
    let routes = || sh("ip route show table local proto 173");
    assert_eq!(
        routes().trim(),
        "local 203.0.113.7 dev lo scope host src 192.168.10.11"
    );
    node.write("service.yaml", &service("203.0.113.8"));
    wait_kernel(&["-A -t 203.0.113.8:80 -s wrr"]);
    wait_until("the other route", || {
        routes().trim() == "local 203.0.113.8 dev lo scope host src 192.168.10.11"
    });
    node.remove("service.yaml");
    wait_kernel(&[]);
    wait_until("no route", || routes().trim().is_empty());
}

#[test]
fn d2_servicecidr_objects_take_precedence_over_the_flag() {
    const OBJECT: &str = "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\n\
        spec: {cidrs: [10.96.0.0/12]}\n";
    let _lab = Lab::new();
    let mut node = Node::new().with(&["--service-cidr", "10.32.0.0/16"]);
    node.write("nodes.yaml", NODES);
    node.write("range.yaml", OBJECT);
    node.write("service.yaml", &web("web", &["10.96.0.30"]).yaml());
    node.start();
    wait_kernel(&["-A -t 10.96.0.30:80 -s wrr"]);
    assert_eq!(
        sh("ip route show table local proto 173").trim(),
        "local 10.96.0.0/12 dev lo scope host src 192.168.10.11"
    );
}

#[test]
fn d8_nothing_is_programmed_or_removed_before_the_first_full_read() {
    let _lab = Lab::new();
    let mut node = Node::new().with(CIDRS);
    let [old, new] = ["10.96.0.30", "10.96.0.31"].map(|ip| web("web", &[ip]).yaml());
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &old);
    node.start();
    wait_kernel(&["-A -t 10.96.0.30:80 -s wrr"]);
    node.kill();
    let mut input = node.launch_reading();
    input.write_all(format!("{NODES}{new}").as_bytes()).unwrap();
    wait_until("the agent", || UnixStream::connect(node.socket()).is_ok());
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(kernel(), ["-A -t 10.96.0.30:80 -s wrr"]);
    drop(input);
    wait_kernel(&["-A -t 10.96.0.31:80 -s wrr"]);
}

#[test]
fn a_broken_file_does_not_affect_others_at_the_start() {
    let _lab = Lab::new();
    let mut node = Node::new().with(CIDRS);
    let service = web("web", &["10.96.0.30"]);
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &service.yaml());
    node.write("broken.yaml", "apiVersion: v1\nkind: [");
    node.launch(&[]);
    node.wait_log("broken.yaml");
    // The other files are served.
    wait_kernel(&["-A -t 10.96.0.30:80 -s wrr"]);
}
