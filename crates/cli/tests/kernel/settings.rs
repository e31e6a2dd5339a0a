//! Sysctls and timeouts: set, recorded, set again, and reported if they cannot be set.

use std::fs;

use crate::agent::Node;
use crate::lab::{Lab, sh, wait_until};
use crate::yaml::{NODES, Service, slice, web};

const CIDRS: &[&str] = &["--service-cidr", "10.96.0.0/12,fd00:10:96::/112"];
const OFTEN: &str = "--check-period=1s";
const UDP: &str = "net.netfilter.nf_conntrack_udp_timeout";

/// A node with a Service of both families.
fn node(more: &[&str], annotations: &str) -> Node {
    let node = Node::new().with(CIDRS).with(more);
    node.write("nodes.yaml", NODES);
    write_service(&node, annotations);
    let endpoints = slice("web", "web-4", &[("TCP", 80, 80)], &["10.244.1.1 n1"]);
    node.write("slice.yaml", &endpoints);
    node
}

fn write_service(node: &Node, annotations: &str) {
    let service = Service {
        annotations,
        ..web("web", &["10.96.0.10", "fd00:10:96::a"])
    };
    node.write("service.yaml", &service.yaml());
}

fn sysctl(name: &str) -> String {
    sh(&format!("sysctl -n {name}")).trim().to_owned()
}

/// The timeouts of IPVS: TCP, TCP after FIN, UDP.
fn timeouts() -> String {
    let all = sh("ipvsadm -l --timeout");
    let (_, numbers) = all.trim().split_once(": ").unwrap();
    numbers.to_owned()
}

/// The record, without checksums.
fn recorded(node: &Node) -> Vec<String> {
    let text = fs::read_to_string(node.state().join("settings")).unwrap();
    let lines = text.lines().skip(1);
    lines
        .map(|line| line.split(" sum ").next().unwrap().to_owned())
        .collect()
}

#[test]
fn kp_to_01_timeouts_are_set_recorded_set_again_after_a_foreign_change_and_restored() {
    let _lab = Lab::new();
    sh("modprobe ip_vs; ipvsadm --set 900 120 300");
    let old = sysctl(UDP);
    let mut node = node(
        &[
            OFTEN,
            "--ipvs-tcp-timeout=1m",
            "--ipvs-tcpfin-timeout=0",
            "--ipvs-udp-timeout=20s",
            "--conntrack-udp-timeout=10s",
        ],
        "",
    );
    node.start();
    assert_eq!(timeouts(), "60 120 20");
    assert_eq!(sysctl(UDP), "10");
    node.only_line("TCP 60 s (IPVS 60,");
    let expected = [
        "ipvs.tcp_timeout old 900 new 60".to_owned(),
        "ipvs.udp_timeout old 300 new 20".to_owned(),
        format!("{UDP} old {old} new 10"),
    ];
    let has_all = |node: &Node| {
        let lines = recorded(node);
        expected.iter().all(|line| lines.contains(line))
    };
    assert!(has_all(&node), "{:?}", recorded(&node));

    sh(&format!("ipvsadm --set 700 120 20; sysctl -qw {UDP}=33"));
    wait_until("the timeouts again", || {
        timeouts() == "60 120 20" && sysctl(UDP) == "10"
    });
    let before = recorded(&node);
    assert!(has_all(&node), "{before:?}");

    node.kill();
    node.start();
    assert_eq!(recorded(&node), before, "what is set needs no record");
    assert!(!node.log().contains("->"), "{}", node.log());

    node.stop();
    node.run_documented("you restore them with these commands");
    assert_eq!((&*timeouts(), sysctl(UDP)), ("900 120 300", old));
}

#[test]
fn sloppy_tcp_is_set_before_the_first_virtual_server_has_a_hashing_scheduler() {
    const SLOPPY: &str = "net.ipv4.vs.sloppy_tcp";
    let _lab = Lab::new();
    // No periodic check comes before the end of this test.
    let mut node = node(&["--check-period=1h"], "");
    node.start();
    assert_eq!(sysctl(SLOPPY), "0");
    write_service(&node, "topology.ipvs-topo.io/scheduler: mh");
    wait_until("the scheduler", || sh("ipvsadm -Sn").contains("-s mh"));
    assert_eq!(sysctl(SLOPPY), "1");
    let line = format!("{SLOPPY} old 0 new 1");
    assert!(recorded(&node).contains(&line), "{:?}", recorded(&node));
}

#[test]
fn t02_settings_that_cannot_be_written_are_reported_once_each_and_the_node_serves() {
    let _lab = Lab::new();
    sh("sysctl -qw net.ipv6.conf.all.forwarding=0");
    let config = tempfile::NamedTempFile::new().unwrap();
    let text = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n\
                conntrack: {maxPerCore: 1000000}\n";
    fs::write(config.path(), text).unwrap();
    let mut node = node(&[OFTEN, "--config", config.path().to_str().unwrap()], "");
    node.start();
    // Only the first network namespace of a machine may write it.
    node.only_line("nf_conntrack_max: cannot set it to");
    node.only_line("net.ipv6.conf.all.forwarding is 0");
    assert_eq!(sysctl("net.ipv6.conf.all.forwarding"), "0");
    let established = "net.netfilter.nf_conntrack_tcp_timeout_established";
    assert_eq!(sysctl(established), "86400", "the default of kube-proxy");
    assert!(sh("ipvsadm -Sn").contains("10.96.0.10:80"));
    // The next checks must not repeat them.
    std::thread::sleep(std::time::Duration::from_secs(3));
    node.only_line("nf_conntrack_max: cannot set it to");
}

#[test]
fn pain_17_without_estimation_counters_are_absent_and_with_it_they_are_complete() {
    const ESTIMATION: &str = "net.ipv4.vs.run_estimation";
    let mut lab = Lab::new();
    let pod = lab.pod();
    let mut node = node(&[], "");
    let endpoint = format!("{} n1", pod.v4);
    let endpoints = slice("web", "web-4", &[("TCP", 80, 80)], &[&endpoint]);
    node.write("slice.yaml", &endpoints);
    let _servers = pod.serve(80, "pod");
    node.launch(&["--estimation=off"]);
    node.wait_ready();
    assert_eq!(sysctl(ESTIMATION), "0");
    sh("guest load --target 10.96.0.10:80 --connections 20");
    let real = |node: &Node| {
        let socket = node.socket();
        let json = sh(&format!(
            "ipvs-topo status t/web -o json --socket {} || test $? = 1",
            socket.display()
        ));
        let status: serde_json::Value = serde_json::from_str(&json).unwrap();
        status["virtualServers"][0]["realServers"][0]["connections"].clone()
    };
    // The kernel's own counters stand still.
    let stopped = real(&node);
    assert_eq!(stopped["inactive"], 20, "{stopped}");
    assert!(stopped.get("total").is_none() && stopped.get("perSecond").is_none());

    node.kill();
    node.launch(&["--estimation=on"]);
    node.wait_ready();
    assert_eq!(sysctl(ESTIMATION), "1");
    wait_until("the counters", || real(&node)["total"] == 20);
}
