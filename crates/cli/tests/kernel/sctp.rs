//! SCTP associations through virtual servers.

use std::collections::BTreeMap;

use crate::agent::{Node, wait_kernel};
use crate::lab::{Lab, Place, sh, succeeds};
use crate::traffic::hits;
use crate::yaml::{NODES, Service, slice};

const PORTS: &[(&str, u16, u16)] = &[("SCTP", 132, 1320)];

/// Starts an SCTP server on each family.
fn serve(pod: &Place, name: &str) -> Vec<crate::lab::Process> {
    let listen = [format!("{}:1320", pod.v4), format!("[{}]:1320", pod.v6)];
    let serve = |at| pod.spawn(&format!("guest serve --sctp --listen {at} --name {name}"));
    listen.into_iter().map(serve).collect()
}

/// IPVS' own count of connections to each real server.
fn counted(of: &str) -> BTreeMap<String, u64> {
    let table = sh(&format!("ipvsadm -Ln --stats --exact --sctp-service {of}"));
    let real = |line: &str| {
        let mut words = line
            .split_whitespace()
            .skip_while(|word| *word != "->")
            .skip(1);
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    table.lines().filter_map(real).collect()
}

#[test]
fn sctp_associations_are_distributed_by_weight() {
    assert!(
        succeeds("modprobe sctp"),
        "this kernel has no module sctp, so no SCTP association can be made in it: {}",
        sh("modprobe sctp 2>&1; uname -r")
    );
    let mut lab = Lab::new();
    let (client, near, far) = (lab.pod(), lab.pod(), lab.pod());
    let _servers = [serve(&near, "near"), serve(&far, "far")];
    let ranges = "10.96.0.0/12,fd00:10:96::/112";
    let mut node = Node::new().with(&["--service-cidr", ranges]);
    let service = Service {
        name: "signals",
        ips: &["10.96.0.10", "fd00:10:96::a"],
        ports: &[("SCTP", 132)],
        spec: "",
        annotations: "topology.ipvs-topo.io/weights: 'node=80,*=20'",
    };
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &service.yaml());
    let endpoints = |near, far| [format!("{near} n1"), format!("{far} n3")];
    for (name, lines) in [
        ("signals-4", endpoints(near.v4, far.v4)),
        ("signals-6", endpoints(near.v6, far.v6)),
    ] {
        node.write(
            &format!("{name}.yaml"),
            &slice("signals", name, PORTS, &lines),
        );
    }
    node.start();
    let (near4, far4) = (format!("{}:1320", near.v4), format!("{}:1320", far.v4));
    wait_kernel(&[
        "-A --sctp-service 10.96.0.10:132 -s wrr",
        "-A --sctp-service [fd00:10:96::a]:132 -s wrr",
        &format!("-a --sctp-service 10.96.0.10:132 -r {near4} -m -w 4"),
        &format!("-a --sctp-service 10.96.0.10:132 -r {far4} -m -w 1"),
        &format!(
            "-a --sctp-service [fd00:10:96::a]:132 -r [{}]:1320 -m -w 4",
            near.v6
        ),
        &format!(
            "-a --sctp-service [fd00:10:96::a]:132 -r [{}]:1320 -m -w 1",
            far.v6
        ),
    ]);
    let wanted = BTreeMap::from([("near".to_owned(), 40), ("far".to_owned(), 10)]);
    for target in ["10.96.0.10:132", "[fd00:10:96::a]:132"] {
        // SCTP resends a lost chunk after 3 s, 6 s and 12 s.
        let flags = "--sctp --patience 60000";
        assert_eq!(hits(&client, target, 50, flags), wanted, "{target}");
    }
    let wanted = BTreeMap::from([(near4, 40), (far4, 10)]);
    crate::lab::wait_until("what IPVS counts", || counted("10.96.0.10:132") == wanted);
}
