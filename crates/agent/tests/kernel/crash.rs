//! `kill -9` after every single write: the next agent converges, nothing is duplicated, and
//! connections of real servers that the change does not concern never notice (T06).

use std::os::unix::process::ExitStatusExt as _;

use crate::agent::{Node, kernel};
use crate::lab::{Lab, sh, wait_until};
use crate::yaml::{NODES, Service, slice};

const PORTS: &[(&str, u16, u16)] = &[("TCP", 80, 8080), ("UDP", 53, 5353)];

fn service(name: &str, ip: &str) -> String {
    Service {
        name,
        ips: &[ip],
        ports: &[("TCP", 80), ("UDP", 53)],
        spec: "",
        annotations: "",
    }
    .yaml()
}

fn write_first(node: &Node, kept: &str) {
    node.write("nodes.yaml", NODES);
    node.write(
        "kept.yaml",
        &(service("kept", "10.96.0.10")
            + &slice("kept", "kept-4", PORTS, &[kept, "10.244.2.1 n2"])),
    );
    node.write(
        "gone.yaml",
        &(service("gone", "203.0.113.9") + &slice("gone", "gone-4", PORTS, &["10.244.1.9 n1"])),
    );
}

/// A new Service, a vanished one, a real server that comes, one that goes, one whose weight changes.
fn write_second(node: &Node, kept: &str) {
    node.remove("gone.yaml");
    node.write(
        "kept.yaml",
        &(service("kept", "10.96.0.10")
            + &slice("kept", "kept-4", PORTS, &[kept, "10.244.3.1 n3"])),
    );
    node.write(
        "new.yaml",
        &(service("new", "203.0.113.7")
            + &slice("new", "new-4", PORTS, &["10.244.1.8 n1", "10.244.3.2 n3"])),
    );
}

fn everything() -> String {
    let nft =
        ["ip", "arp"].map(|family| sh(&format!("nft list table {family} ipvs-topo 2>&1 || true")));
    format!(
        "{}\n{}{}",
        kernel().join("\n"),
        nft.concat(),
        sh("ip route show table local proto 173")
    )
}

#[test]
fn t06_a_kill_after_any_write_is_healed_by_the_next_start() {
    let mut lab = Lab::new();
    let (client, pod) = (lab.pod(), lab.pod());
    let _server = pod.spawn(&format!(
        "guest serve --listen {}:8080 --name kept --hold",
        pod.v4
    ));
    let kept = format!("{} n1", pod.v4);

    let mut reference = Node::new().with(&["--service-cidr", "10.96.0.0/12"]);
    write_first(&reference, &kept);
    reference.start();
    let first = everything();
    // Several connections, so that at least one of them is with the real server of the pod.
    let _held = client.spawn("guest load --target 10.96.0.10:80 --connections 4 --hold");
    let established = || {
        sh("ipvsadm -Lnc")
            .lines()
            .filter(|l| l.contains("ESTABLISHED") && l.contains(&pod.v4.to_string()))
            .count()
    };
    wait_until("a held connection", || established() > 0);
    let connections = established();
    write_second(&reference, &kept);
    let second_kernel = ["203.0.113.7:80", "10.244.3.1:8080"];
    wait_until("the second state", || {
        let now = everything();
        second_kernel.iter().all(|words| now.contains(words)) && !now.contains("203.0.113.9")
    });
    reference.wait_quiet();
    let second = everything();

    let mut crashes = 0;
    for (state, write) in [
        (&first, write_first as fn(&Node, &str)),
        (&second, write_second),
    ]
    .into_iter()
    .cycle()
    .take(4)
    {
        write(&reference, &kept);
        if crashes == 0 {
            reference.kill();
        }
        for after in 1.. {
            reference.forget_log();
            reference.launch(&["--crash-after", &after.to_string()]);
            match reference.ready_or_dead() {
                Some(status) => {
                    assert_eq!(status.signal(), Some(9), "{}", reference.log());
                    crashes += 1;
                    assert!(after < 200, "the agent never gets through");
                }
                None => break,
            }
        }
        reference.wait_quiet();
        assert_eq!(&everything(), state);
        assert_eq!(
            established(),
            connections,
            "connections of the untouched real server"
        );
        reference.kill();
    }
    assert!(crashes > 10, "only {crashes} crash points were reached");
}
