//! What is not ours is shown and left alone (T08, PAIN-12).

use crate::agent::{Node, kernel, wait_kernel};
use crate::lab::{Lab, sh};
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
            "{words} is listed as foreign: {status}"
        );
    }
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
    // The remedy that the message names.
    sh("ipvsadm -D -t 10.96.0.10:80");
    node.kill();
    node.start();
    wait_kernel(&OURS);
}

#[test]
fn adopt_takes_over_what_the_cluster_asks_for_and_nothing_else() {
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
