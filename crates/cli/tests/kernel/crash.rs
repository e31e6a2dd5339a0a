//! SIGKILL after each single write: the next agent converges without duplicates, and connections of
//! unchanged real servers continue (T06).

use std::os::unix::process::ExitStatusExt as _;

use crate::agent::{Node, kernel};
use crate::lab::{Lab, other_end, sh, talk, wait_until};
use crate::yaml::{NODES, Service, slice};

/// Few ports of each Service, because each write of a change is a run of its own.
const TCP: &[(&str, u16, u16)] = &[("TCP", 80, 8080)];
const UDP: &[(&str, u16, u16)] = &[("UDP", 53, 5353)];

fn write(node: &Node, name: &str, ip: &str, ports: &[(&str, u16, u16)], endpoints: &[&str]) {
    let own: Vec<_> = ports
        .iter()
        .map(|(protocol, port, _)| (*protocol, *port))
        .collect();
    let service = Service {
        name,
        ips: &[ip],
        ports: &own,
        spec: "",
        annotations: "",
    };
    let text = service.yaml() + &slice(name, &format!("{name}-4"), ports, endpoints);
    node.write(&format!("{name}.yaml"), &text);
}

fn write_first(node: &Node, kept: &str) {
    node.remove("new.yaml");
    write(node, "kept", "10.96.0.10", TCP, &[kept]);
    write(node, "gone", "203.0.113.9", UDP, &["10.244.1.9 n1"]);
}

/// A new Service, a deleted one, and a real server that is added (and removed on the way back).
fn write_second(node: &Node, kept: &str) {
    let new = ["10.244.1.8 n1", "10.244.3.2 n3"];
    node.remove("gone.yaml");
    write(node, "kept", "10.96.0.10", TCP, &[kept, "10.244.3.1 n3"]);
    write(node, "new", "203.0.113.7", TCP, &new);
}

/// The objects that the agent owns, as other programs show them.
fn everything() -> String {
    let tables =
        ["ip", "arp"].map(|family| sh(&format!("nft list table {family} ipvs-topo 2>&1 || true")));
    let routes = sh("ip route show table local proto 173");
    format!("{}\n{}{routes}", kernel().join("\n"), tables.concat())
}

/// Starts an agent that is killed after `after` writes, then a second agent. Returns whether the
/// first one was killed.
fn die_and_heal(node: &mut Node, after: u32) -> bool {
    node.forget_log();
    node.launch(&["--crash-after", &after.to_string()]);
    let died = node.ready_or_dead();
    if let Some(status) = died {
        assert_eq!(status.signal(), Some(9), "{}", node.log());
        node.forget_log();
        node.start();
    }
    died.is_some()
}

#[test]
fn t06_the_next_start_repairs_a_kill_after_any_write() {
    let mut lab = Lab::new();
    let (client, pod) = (lab.pod(), lab.pod());
    let listener = pod.listen(8080);
    let kept = format!("{} n1", pod.v4);
    let established = || {
        let (list, address) = (sh("ipvsadm -Lnc"), pod.v4.to_string());
        list.lines()
            .filter(|line| line.contains("ESTABLISHED") && line.contains(&address))
            .count()
    };

    let mut node = Node::new().with(&["--service-cidr", "10.96.0.0/12"]);
    node.write("nodes.yaml", NODES);
    write_first(&node, &kept);
    node.start();
    let first = everything();
    let held = client.connect("10.96.0.10:80");
    let served = other_end(&listener, &held);
    wait_until("held connections", || established() > 0);
    let connections = established();
    write_second(&node, &kept);
    wait_until("the second state", || {
        let now = everything();
        now.contains("203.0.113.7:80")
            && now.contains("10.244.3.1:8080")
            && !now.contains("203.0.113.9")
    });
    node.wait_quiet();
    let second = everything();
    node.kill();

    // Alternates between the states, each time with one more write before the kill, until neither
    // change has so many writes.
    let states = [
        (&first, write_first as fn(&Node, &str)),
        (&second, write_second),
    ];
    let mut lived = 0;
    for (after, (state, write)) in (1..).zip(states.into_iter().cycle()) {
        write(&node, &kept);
        lived = if die_and_heal(&mut node, after) {
            0
        } else {
            lived + 1
        };
        let what = format!("{state} after a kill after {after} writes");
        wait_until(&what, || &everything() == state);
        assert_eq!(
            established(),
            connections,
            "connections of the untouched real server"
        );
        talk(&held, &served);
        node.kill();
        if lived == 2 {
            assert!(after > 8, "only {after} crash points were reached");
            return;
        }
    }
}
