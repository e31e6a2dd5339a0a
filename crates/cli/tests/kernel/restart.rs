//! A restart on a correct kernel writes nothing, and the exit changes nothing (T06, PAIN-15).

use std::fs;

use crate::agent::{Node, kernel, wait_kernel};
use crate::lab::{Lab, sh, wait_until};
use crate::yaml::{NODES, Service, slice};

fn node() -> Node {
    let node = Node::new().with(&["--service-cidr", "10.96.0.0/12,fd00:10:96::/112"]);
    node.write("nodes.yaml", NODES);
    for number in 1..=20 {
        let (ip, name) = (format!("10.96.1.{number}"), format!("web{number}"));
        let service = Service {
            name: &name,
            ips: &[&ip],
            ports: &[("TCP", 80), ("UDP", 53)],
            spec: "",
            annotations: "",
        };
        let endpoints = [
            format!("10.244.1.{number} n1"),
            format!("10.244.2.{number} n2"),
        ];
        let ports = &[("TCP", 80, 8080), ("UDP", 53, 5353)];
        let slice = slice(&name, &format!("{name}-4"), ports, &endpoints);
        node.write(&format!("{name}.yaml"), &(service.yaml() + &slice));
    }
    node
}

/// All objects that the agent writes, as other programs show them. Handles reveal replaced rules.
fn everything() -> String {
    let nft =
        ["ip", "ip6", "arp"].map(|family| sh(&format!("nft -a list table {family} ipvs-topo")));
    // Only the agent's, because the kernel adds link-local addresses.
    let routes = sh("ip route show table local proto 173
        ip -6 route show table local proto 173
        ip -d link show kube-ipvs0");
    format!("{}\n{}{routes}", kernel().join("\n"), nft.concat())
}

#[test]
fn t06_a_restart_on_a_correct_kernel_writes_nothing() {
    let _lab = Lab::new();
    let mut node = node();
    node.start();
    wait_until("all virtual servers", || kernel().len() == 20 * 6);
    let before = everything();
    node.stop();
    assert_eq!(everything(), before, "the exit must change nothing");
    for _ in 0..3 {
        let monitor = crate::lab::Monitor::start();
        node.start();
        assert!(node.log().contains("writes=0"), "{}", node.log());
        assert_eq!(monitor.seen(), "", "the restart must write nothing");
        node.kill();
        node.forget_log();
    }
    assert_eq!(everything(), before);
}

#[test]
fn pain_44_the_periodic_check_repairs_drift() {
    let _lab = Lab::new();
    let mut node = node().with(&["--check-period", "1s"]);
    node.start();
    let before = kernel();
    assert_eq!(before.len(), 20 * 6);
    sh("ipvsadm -D -t 10.96.1.1:80
        ipvsadm -e -t 10.96.1.2:80 -r 10.244.1.2:8080 -m -w 77
        ipvsadm -d -t 10.96.1.3:80 -r 10.244.1.3:8080
        ipvsadm -a -t 10.96.1.4:80 -r 10.244.7.7:8080 -m
        ipvsadm -E -t 10.96.1.5:80 -s rr
        ip route del local 10.96.0.0/12 dev lo table local");
    wait_until("the repair", || kernel() == before);
    wait_until("the route", || {
        sh("ip route show table local proto 173").contains("10.96.0.0/12")
    });
}

#[test]
fn an_idle_agent_logs_nothing_and_writes_nothing() {
    let _lab = Lab::new();
    let mut node = node().with(&["--check-period", "1s"]);
    node.start();
    wait_kernel(&kernel().iter().map(String::as_str).collect::<Vec<_>>());
    let (log, before) = (node.log(), everything());
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(node.log(), log);
    assert_eq!(everything(), before);
}

#[test]
fn kp_st_04_the_agent_exits_after_a_changed_configuration_and_the_kernel_serves() {
    let _lab = Lab::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.conf");
    let write = |scheduler: &str| {
        let head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
        fs::write(&file, format!("{head}ipvs: {{scheduler: {scheduler}}}\n")).unwrap();
    };
    write("wlc");
    let mut node = node().with(&["--config", file.to_str().unwrap()]);
    node.start();
    let before = kernel();
    assert_eq!(before.len(), 20 * 6);
    write("'W L C'");
    node.wait_log("stay in force");
    write("lc");
    assert_eq!(node.wait_end().code(), Some(1), "{}", node.log());
    assert!(node.log().contains("the settings changed"));
    assert_eq!(kernel(), before);
    node.forget_log();
    node.start();
    let after: Vec<_> = before
        .iter()
        .map(|line| line.replace(" wlc", " lc"))
        .collect();
    assert_ne!(after, before);
    wait_kernel(&after.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Two agents with different state folders would write the same IPVS table.
#[test]
fn a_second_agent_of_a_network_namespace_exits_and_names_the_first() {
    let _lab = Lab::new();
    let mut first = node();
    first.start();
    let mut second = node();
    second.launch(&[]);
    let status = second.ready_or_dead().expect("it exits");
    assert_eq!(status.code(), Some(1), "{}", second.log());
    let words = format!("another agent (process {})", first.id());
    assert!(second.log().contains(&words), "{}", second.log());
    // After any kind of exit of the first agent, another may start.
    first.kill();
    second.start();
    second.stop();
}
