//! Foreign objects are listed and never changed (T08, PAIN-12).

use crate::agent::{Node, kernel, wait_kernel};
use crate::lab::{Lab, sh, wait_until};
use crate::yaml::{NODES, slice, web};

fn node() -> Node {
    let node = Node::new().with(&["--service-cidr", "10.96.0.0/12"]);
    let service = web("web", &["10.96.0.10"]);
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &service.yaml());
    node.write(
        "v4.yaml",
        &slice("web", "web-4", &[("TCP", 80, 8080)], &["10.244.1.1 n1"]),
    );
    node
}

const OURS: [&str; 2] = [
    "-A -t 10.96.0.10:80 -s wrr",
    "-a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 1",
];

#[test]
fn t08_foreign_virtual_servers_routes_and_tables_survive_everything() {
    let _lab = Lab::new();
    let mut node = node();
    sh("ipvsadm -A -t 192.0.2.1:443 -s rr
        ipvsadm -a -t 192.0.2.1:443 -r 10.244.9.9:443 -g -w 7
        ipvsadm -A -f 42 -s sh
        ip route add local 10.96.5.5/32 dev lo table local proto static
        nft add table ip keepalived
        nft add chain ip keepalived input '{ type filter hook input priority 0; }'");
    let foreign = [
        "-A -f 42 -s sh",
        "-A -t 192.0.2.1:443 -s rr",
        "-a -t 192.0.2.1:443 -r 10.244.9.9:443 -g -w 7",
    ];
    let both: Vec<_> = OURS.iter().chain(&foreign).copied().collect();
    node.start();
    wait_kernel(&both);
    let status = sh(&format!(
        "ipvs-topo status -o json --socket {}",
        node.socket().display()
    ));
    for words in ["192.0.2.1", "10.96.5.5", "keepalived"] {
        assert!(
            status.contains(words),
            "{words} must be listed as foreign: {status}"
        );
    }
    let socket = node.socket();
    let socket = socket.display();
    let wide = sh(&format!("ipvs-topo status -o wide --socket {socket}"));
    let shown = |words| wide.contains(words);
    assert!(shown("10.244.1.1:8080") && shown("PERSIST"), "{wide}");
    let watched = format!("timeout 8 ipvs-topo status --watch --socket {socket} || true");
    let watched = sh(&watched);
    assert!(watched.matches("\nkernel ").count() >= 2, "{watched}");
    let explained = sh(&format!("ipvs-topo explain t/web:80 --socket {socket}"));
    assert!(explained.contains("10.244.1.1"), "{explained}");
    node.kill();
    node.start();
    wait_kernel(&both);
    node.remove("service.yaml");
    wait_kernel(&foreign);
    node.stop();
    assert!(sh("ip route show table local").contains("local 10.96.5.5"));
    assert!(sh("nft list tables").contains("table ip keepalived"));
}

#[test]
fn t08_a_foreign_virtual_server_at_our_address_is_reported_and_not_touched() {
    let _lab = Lab::new();
    let mut node = node();
    sh("ipvsadm -A -t 10.96.0.10:80 -s rr; ipvsadm -a -t 10.96.0.10:80 -r 10.244.9.9:80 -m -w 3");
    let foreign = kernel();
    node.start();
    node.wait_log("-t 10.96.0.10:80");
    assert_eq!(kernel(), foreign);
    // The remedy in the message.
    sh("ipvsadm -D -t 10.96.0.10:80");
    node.kill();
    node.start();
    wait_kernel(&OURS);
}

#[test]
fn adopt_takes_over_only_virtual_servers_of_the_cluster() {
    let _lab = Lab::new();
    let mut node = node().with(&["--adopt"]);
    sh("ipvsadm -A -t 10.96.0.10:80 -s rr
        ipvsadm -a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 3
        ipvsadm -A -t 192.0.2.1:443 -s rr");
    node.start();
    let mut both = OURS.to_vec();
    both.push("-A -t 192.0.2.1:443 -s rr");
    wait_kernel(&both);
}

#[test]
fn the_documented_removal_of_ipvs_topo_leaves_foreign_objects() {
    const FOREIGN: &str = "-A -t 10.96.0.99:80 -s rr";
    let _lab = Lab::new();
    let ranges = "10.96.0.0/12,fd00:10:96::/112";
    let mut node = Node::new().with(&["--service-cidr", ranges]);
    node.write("nodes.yaml", NODES);
    for (name, ip) in [
        ("one", "10.96.0.10"),
        ("two", "10.96.0.11"),
        ("six", "fd00:10:96::a"),
    ] {
        node.write(&format!("{name}.yaml"), &web(name, &[ip]).yaml());
    }
    node.start();
    sh(&format!(
        "ipvsadm {FOREIGN}; nft add table ip theirs; ip route add local 192.0.2.9 dev lo"
    ));
    node.remove("one.yaml");
    wait_kernel(&[
        "-A -t 10.96.0.11:80 -s wrr",
        "-A -t [fd00:10:96::a]:80 -s wrr",
        FOREIGN,
    ]);
    node.stop();
    node.run_documented("you remove the tables with these commands");
    assert_eq!(kernel(), [FOREIGN]);
    assert_eq!(sh("nft list tables"), "table ip theirs\n");
    assert!(sh("ip route show table local").contains("local 192.0.2.9 "));
    assert!(!sh("ip link").contains("kube-ipvs0"));
    for family in ["-4", "-6"] {
        let routes = format!("ip {family} route show table local proto 173");
        assert_eq!(sh(&routes), "", "{family}");
    }
    assert!(!node.state().exists());
}

/// W-31: the agent finds kernel objects of a kube-proxy in nftables, iptables or ipvs mode by name.
#[test]
fn traces_of_a_kube_proxy_are_a_warning_of_the_node_until_they_are_gone() {
    let _lab = Lab::new();
    let mut node = node().with(&["--check-period", "1s"]);
    sh("nft add table ip6 kube-proxy");
    node.start();
    wait_kernel(&OURS);
    let socket = node.socket().display().to_string();
    let warns_of =
        move |words: &str| sh(&format!("ipvs-topo status --socket {socket}")).contains(words);
    wait_until("the table", || {
        warns_of("has the nftables table kube-proxy of a kube-proxy in nftables mode")
    });
    sh("nft delete table ip6 kube-proxy
        nft add table ip nat
        nft add chain ip nat KUBE-SERVICES");
    wait_until("the chain", || {
        warns_of("has the chain KUBE-SERVICES of a kube-proxy in iptables mode")
    });
    for (family, name) in [("inet6", "KUBE-6-CLUSTER-IP"), ("inet", "KUBE-CLUSTER-IP")] {
        sh(&format!("ipset create {name} hash:ip,port family {family}"));
        let words =
            format!("has the chain KUBE-SERVICES, the ipset {name} of a kube-proxy in ipvs mode");
        wait_until("the set", || warns_of(&words));
        sh(&format!("ipset destroy {name}"));
    }
    sh("nft delete table ip nat");
    wait_until("no traces", || !warns_of("kube-proxy"));
}

#[test]
fn repeated_changes_by_another_program_are_a_warning_of_the_node() {
    let _lab = Lab::new();
    let mut node = node().with(&["--check-period", "3s"]);
    node.start();
    wait_kernel(&OURS);
    sh(
        "(while sleep 0.2; do ipvsadm -e -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 7; done) >/dev/null 2>&1 &",
    );
    node.wait_log("another program changed our virtual servers");
    let socket = node.socket();
    let socket = socket.display();
    wait_until("the warning", || {
        sh(&format!("ipvs-topo status --socket {socket} || true"))
            .contains("another program changed")
    });
}
