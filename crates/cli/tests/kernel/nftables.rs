//! The agent's tables refuse only traffic without a virtual server (design D2, D3; T11, T12).

use std::io::ErrorKind;
use std::time::Duration;

use crate::agent::{Node, wait_kernel};
use crate::lab::{
    Lab, NODE_V4, NODE_V6, Process, SystemCalls, sh, succeeds, try_connect, wait_until,
};
use crate::yaml::{NODES, slice, web};

const CIDRS: &[&str] = &["--service-cidr", "10.96.0.0/12,fd00:10:96::/112"];

fn node() -> Node {
    let node = Node::new().with(CIDRS);
    let service = web("web", &["10.96.0.10", "fd00:10:96::a"]);
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &service.yaml());
    node
}

/// Whether a connection is established. A refusal returns false, a timeout panics.
fn connects(target: &str) -> bool {
    let connection = try_connect(target).map_err(|error| error.kind());
    assert_ne!(
        connection.as_ref().err(),
        Some(&ErrorKind::TimedOut),
        "{target}"
    );
    connection.is_ok()
}

#[test]
fn d3_only_declared_ports_of_a_virtual_address_answer() {
    let mut lab = Lab::new();
    let client = lab.pod();
    let mut node = node();
    // A process of the host that listens on all addresses, as sshd does.
    let mut host = std::process::Command::new("guest");
    host.args(["serve", "--listen", "[::]:22", "--name", "host"]);
    let _host = Process::spawn(host);
    node.start();
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        "-A -t [fd00:10:96::a]:80 -s wrr",
    ]);
    let refused = [
        "10.96.0.10:22",
        "10.96.0.10:80",
        "10.96.99.99:22",
        "[fd00:10:96::a]:22",
        "[fd00:10:96::9]:22",
    ];
    for target in refused {
        assert!(
            !client.inside(|| connects(target)),
            "{target} must be refused from a pod"
        );
        assert!(!connects(target), "{target} must be refused from the node");
    }
    for own in [format!("{NODE_V4}:22"), format!("[{NODE_V6}]:22")] {
        assert!(
            client.inside(|| connects(&own)),
            "the node's own address must not be affected: {own}"
        );
        assert!(
            connects(&own),
            "the node's own address must not be affected: {own}"
        );
    }
    for ip in ["10.96.0.10", "fd00:10:96::a"] {
        let ping = format!("busybox ping -c 1 -W 2 {ip}");
        assert!(
            client.succeeds(&ping) && succeeds(&ping),
            "echo to {ip} is answered"
        );
    }
    // UDP gets an ICMP error at once, not a timeout.
    let load = "guest load --udp --target 10.96.0.10:9 --connections 1 -o json || true";
    let answer = client.sh(load);
    assert!(answer.contains("refused"), "{answer}");
}

#[test]
fn t11_virtual_addresses_get_no_arp_reply() {
    let lab = Lab::new();
    let mut node = node();
    let outside = lab.outside();
    let asks = |ip: &str| {
        succeeds(&format!(
            "ip netns exec {outside} busybox arping -c 2 -w 3 -I eth0 {ip}"
        ))
    };
    node.start();
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        "-A -t [fd00:10:96::a]:80 -s wrr",
    ]);
    assert!(asks(NODE_V4), "the node's own address needs a reply");
    assert!(!asks("10.96.0.10"), "a Service address must get no reply");
    sh("nft delete table arp ipvs-topo");
    assert!(asks("10.96.0.10"), "without the table the kernel replies");
}

#[test]
fn d4_the_tables_follow_local_pods_and_are_restored_when_changed() {
    let _lab = Lab::new();
    let mut node = node().with(&["--check-period", "1s"]);
    let hairpin = || sh("nft list set ip ipvs-topo hairpin");
    node.write(
        "v4.yaml",
        &slice(
            "web",
            "web-4",
            &[("TCP", 80, 8080)],
            &["10.244.1.1 n1", "10.244.2.1 n2"],
        ),
    );
    node.start();
    assert!(
        hairpin().contains("10.244.1.1 . 10.244.1.1"),
        "{}",
        hairpin()
    );
    assert!(
        !hairpin().contains("10.244.2.1"),
        "only this node's endpoints: {}",
        hairpin()
    );
    node.write(
        "v4.yaml",
        &slice("web", "web-4", &[("TCP", 80, 8080)], &["10.244.1.7 n1"]),
    );
    wait_until("the other pod", || {
        hairpin().contains("10.244.1.7") && !hairpin().contains("10.244.1.1")
    });
    sh("nft flush chain ip ipvs-topo input; nft delete table ip6 ipvs-topo");
    wait_until("the repair", || {
        succeeds(
            "nft list chain ip ipvs-topo input | grep -q unclaimed && nft list table ip6 ipvs-topo >/dev/null",
        )
    });
    // All rules and elements stay, and one set gets other properties.
    let timeout = || sh("nft list set ip ipvs-topo same-link | grep timeout");
    let before = timeout();
    sh(
        "{ echo 'delete table ip ipvs-topo'; nft list table ip ipvs-topo | sed 's/timeout 1m/timeout 1h/'; } | nft -f -",
    );
    assert_ne!(timeout(), before);
    wait_until("the set", || timeout() == before);
}

#[test]
fn pain_05_a_pod_that_comes_or_goes_is_one_element_and_no_process() {
    let _lab = Lab::new();
    let mut node = node();
    let pods = |pods: &[&str]| slice("web", "web-4", &[("TCP", 80, 8080)], pods);
    let hairpin = |family: &str| sh(&format!("nft list set {family} ipvs-topo hairpin"));
    node.write("v4.yaml", &pods(&["10.244.1.1 n1", "10.244.1.2 n1"]));
    node.start();
    node.wait_quiet();
    let before = node.childrens_faults();
    assert!(before > 0, "nft made the tables");
    node.write("v4.yaml", &pods(&["10.244.1.2 n1", "10.244.1.7 n1"]));
    let v6 = ["fd00:10:244::7 n1"];
    node.write("v6.yaml", &slice("web", "web-6", &[("TCP", 80, 8080)], &v6));
    wait_until("the pods that came", || {
        hairpin("ip").contains("10.244.1.7 . 10.244.1.7")
            && hairpin("ip6").contains("fd00:10:244::7 . fd00:10:244::7")
    });
    wait_until("the end of the one that left", || {
        !hairpin("ip").contains("10.244.1.1 ")
    });
    assert!(hairpin("ip").contains("10.244.1.2 . 10.244.1.2"));
    // More elements than fit into one transaction.
    let many: Vec<String> = (0..1_500)
        .map(|nth| format!("10.245.{}.{} n1", nth / 250, nth % 250))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let of_many = slice("web", "web-many", &[("TCP", 80, 8080)], &many);
    let held = || hairpin("ip").matches("10.245.").count() / 2;
    node.write("many.yaml", &of_many);
    wait_until("many pods", || held() == 1_500);
    node.remove("many.yaml");
    wait_until("the end of many pods", || held() == 0);
    assert_eq!(node.childrens_faults(), before, "a process was started");

    // Another program removes elements; the agent recreates the tables.
    sh("nft flush set ip ipvs-topo hairpin");
    node.write("v4.yaml", &pods(&["10.244.1.7 n1", "10.244.1.8 n1"]));
    wait_until("the repair", || {
        hairpin("ip").contains("10.244.1.7 . ") && hairpin("ip").contains("10.244.1.8 . ")
    });
    assert!(node.childrens_faults() > before);
}

#[test]
fn unchanged_tables_are_not_read_again() {
    let _lab = Lab::new();
    let mut node = node().with(&["--check-period", "1s"]);
    let pods = |pods: &[&str]| slice("web", "web-4", &[("TCP", 80, 8080)], pods);
    node.write("v4.yaml", &pods(&["10.244.1.1 n1"]));
    node.start();
    let checks = || std::thread::sleep(Duration::from_secs(3));
    checks();
    let sockets = SystemCalls::of(node.id(), "socket");
    // Each read of the tables has sockets of its own.
    let read = || sockets.so_far().matches("NETLINK_NETFILTER").count();
    node.write("v4.yaml", &pods(&["10.244.1.7 n1"]));
    wait_until("the other pod", || {
        sh("nft list set ip ipvs-topo hairpin").contains("10.244.1.7")
    });
    checks();
    assert_eq!(
        read(),
        0,
        "neither at a check nor after the agent's own change"
    );

    sh("nft add table ip foreign");
    wait_until("a read after a foreign change", || read() > 0);
    checks();
    let before = read();
    checks();
    assert_eq!(read(), before, "one read is enough");

    sh("nft delete table ip foreign; nft flush chain ip ipvs-topo input");
    wait_until("the repair", || {
        succeeds("nft list chain ip ipvs-topo input | grep -q unclaimed")
    });
    checks();
    let before = read();
    checks();
    assert_eq!(read(), before, "nor after the repair");
}

#[test]
fn d13_an_nft_that_hangs_is_reported_and_everything_else_is_served() {
    let _lab = Lab::new();
    let mut node = node();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("nft");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 1000000\n").unwrap();
    sh(&format!("chmod 755 {}", program.display()));
    let usual = std::env::var("PATH").unwrap();
    node.launch_with_path(&format!("{}:{usual}", folder.path().display()));
    let served = [
        "-A -t 10.96.0.10:80 -s wrr",
        "-A -t 10.96.0.11:80 -s wrr",
        "-A -t [fd00:10:96::a]:80 -s wrr",
    ];
    wait_kernel(&[served[0], served[2]]);
    node.wait_ready();
    node.write("more.yaml", &web("more", &["10.96.0.11"]).yaml());
    wait_kernel(&served);
    node.wait_log("did not end within 30 s and was killed");
    // The exit code reports a problem; the output must not wait for nft.
    let status = sh(&format!(
        "ipvs-topo status --socket {} || test $? = 1",
        node.socket().display()
    ));
    assert!(status.contains("did not end within 30 s"), "{status}");
    // Once nft works, the agent creates the tables.
    std::fs::remove_file(&program).unwrap();
    wait_until("the tables", || succeeds("nft list table ip ipvs-topo"));
    node.write("less.yaml", &web("less", &["10.96.0.12"]).yaml());
    wait_until("one more Service", || {
        sh("ipvsadm -Sn").contains("10.96.0.12:80")
    });
}

#[test]
fn without_nft_everything_else_is_served_and_one_message_reports_it() {
    let _lab = Lab::new();
    let mut node = node();
    node.launch_with_path("/nowhere");
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        "-A -t [fd00:10:96::a]:80 -s wrr",
    ]);
    node.wait_log("nft: not found");
    assert_eq!(
        node.log().matches("nft: not found").count(),
        1,
        "{}",
        node.log()
    );
    assert!(node.log().contains("install the nftables package"));
}
