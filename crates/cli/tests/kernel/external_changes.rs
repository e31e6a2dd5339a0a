//! External frontends that change or have conditions: source ranges, traffic policies, session affinity, hairpin, and
//! restarts of the agent.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use crate::agent::kernel;
use crate::external::{
    BOTH, Client, DROPPED, LOCAL, NETS, Target, World, all_targets, at, attempt, counts, servers,
    service, tcp, udp,
};
use crate::lab::{Monitor, NODE_V4, Place, sh, talk, wait_until};
use crate::yaml::{External, slice};

#[test]
fn kp_it_30_source_ranges_bind_outside_clients_pods_and_the_node_but_not_node_ports() {
    let world = World::start(&[], &BOTH);
    // Ranges; whether they have the client outside, the pod and the node.
    let cases: [(&[&str], [bool; 3]); 4] = [
        (&["192.168.10.1/32", "fd00:10::1/128"], [true, false, false]),
        (&["10.244.0.0/16", "fd00:10:244::/48"], [false, true, false]),
        // KP-IT-31: of the node, the address with which it reaches the Service counts.
        (
            &["192.168.10.11/32", "fd00:10::11/128"],
            [false, false, true],
        ),
        (&["0.0.0.0/0", "::/0"], [true; 3]),
    ];
    for (ranges, allowed) in cases {
        for local in [false, true] {
            world.write_service(&External {
                local,
                ranges,
                ..BOTH
            });
            let targets = NETS
                .iter()
                .flat_map(|net| [tcp(net.vip, 80), udp(net.vip, 53)]);
            let targets: Vec<Target> = targets.collect();
            let expected = allowed.map(|allowed| if allowed { Ok(()) } else { DROPPED });
            let expected: Vec<_> = targets.iter().map(|_| expected).collect();
            let what = format!("{expected:?} with {ranges:?}, local {local}, at {targets:?}");
            wait_until(&what, || attempts(world.clients(), &targets) == expected);
            // KP-WK-08.
            let targets = NETS.map(|net| tcp(net.node, 30080));
            let got = attempts(world.clients(), &targets);
            assert_eq!(
                got,
                [[Ok(()); 3]; 2],
                "{targets:?} from {:?}",
                world.clients()
            );
        }
    }
}

/// The results of each client at each target, all at the same time.
fn attempts<const CLIENTS: usize>(
    clients: [Client<'_>; CLIENTS],
    targets: &[Target],
) -> Vec<[Result<(), ErrorKind>; CLIENTS]> {
    std::thread::scope(|scope| {
        let start = |target| clients.map(|client| scope.spawn(move || attempt(client, target)));
        let threads: Vec<_> = targets.iter().map(start).collect();
        let result =
            |thread: ScopedJoinHandle<'_, _>| thread.join().expect("the panic was printed");
        let results = threads.into_iter().map(|clients| clients.map(result));
        results.collect()
    })
}

/// As with rules for name servers that spare conntrack each query.
#[test]
fn source_ranges_bind_clients_that_another_program_hides_from_conntrack() {
    let ranges = &["10.244.0.0/16", "fd00:10:244::/48"];
    let world = World::start(&[], &External { ranges, ..BOTH });
    sh("nft add table inet hides
        nft add chain inet hides early '{ type filter hook prerouting priority -300; }'
        nft add rule inet hides early iifname eth0 notrack");
    for net in NETS {
        for target in [tcp(net.vip, 80), udp(net.vip, 53)] {
            let outside = attempt(Some(&world.outsider), &target);
            assert_eq!(outside, DROPPED, "{target:?}");
            let inside = attempt(Some(&world.client), &target);
            assert_eq!(inside, Ok(()), "{target:?}");
        }
    }
}

/// All objects that the agent writes. Handles reveal replaced rules.
fn everything() -> String {
    let nft = ["ip", "ip6", "arp"];
    let nft = nft.map(|family| sh(&format!("nft -a list table {family} ipvs-topo")));
    let routes = sh("ip route show table local proto 173; ip -6 route show table local proto 173");
    format!("{}\n{}{routes}", kernel().join("\n"), nft.concat())
}

#[test]
fn t06_a_restart_with_external_frontends_writes_nothing() {
    let ranges = ["192.168.10.0/24", "10.244.0.0/16", "fd00::/16"];
    let mut world = World::start(
        &[],
        &External {
            ranges: &ranges,
            ..LOCAL
        },
    );
    world.node.wait_quiet();
    let before = everything();
    assert!(before.contains("-f "), "{before}");
    world.node.stop();
    assert_eq!(everything(), before, "the exit must change nothing");
    for _ in 0..2 {
        let monitor = Monitor::start();
        world.node.start();
        assert!(
            world.node.log().contains("writes=0"),
            "{}",
            world.node.log()
        );
        assert_eq!(monitor.seen(), "", "the restart must write nothing");
        world.node.kill();
    }
    assert_eq!(everything(), before);
}

/// A connection: the client's end, the server's end, and the server's number.
struct Connection(TcpStream, TcpStream, usize);

impl Connection {
    /// Connects, while no other connection waits at the servers.
    fn open(client: &Place, target: &str, servers: &[TcpListener]) -> Self {
        let stream = client.connect(target);
        let mut found = None;
        wait_until("the server's end", || {
            let mut accepted = servers.iter().map(TcpListener::accept).enumerate();
            found = accepted.find_map(|(nth, accepted)| Some((accepted.ok()?.0, nth)));
            found.is_some()
        });
        let (server, nth) = found.expect("waited for");
        server.set_nonblocking(false).unwrap();
        Self(stream, server, nth)
    }

    fn talk(&self) {
        talk(&self.0, &self.1);
    }
}

#[test]
fn a_changed_external_traffic_policy_takes_effect_and_connections_go_on() {
    let mut world = World::new(&[]);
    let listeners = [&world.near, &world.far].map(|pod| pod.listen(9090));
    for listener in &listeners {
        listener.set_nonblocking(true).unwrap();
    }
    let endpoints = [
        format!("{} n1", world.near.v4),
        format!("{} n2", world.far.v4),
    ];
    let ports = [("TCP", 80, 9090)];
    let endpoints = slice("web", "web-4", &ports, &endpoints);
    world.write_service(&BOTH);
    world.node.write("slices.yaml", &endpoints);
    world.start_agent();
    // Each with the client's ports: IPVS confuses connections with the same client's port and real server.
    let targets = [
        (at(NODE_V4, 30080), "20000 29999"),
        (at(NETS[0].vip, 80), "40000 49999"),
    ];
    let mut connections = Vec::new();
    // The endpoints of two connections to each target, in turn.
    let mut reached = |expected: [usize; 2]| {
        targets.iter().all(|(target, ports)| {
            let range = format!("net.ipv4.ip_local_port_range={ports}");
            world.outsider.sh(&format!("sysctl -qw \"{range}\""));
            let pair = [(); 2].map(|()| Connection::open(&world.outsider, target, &listeners));
            let mut numbers = [pair[0].2, pair[1].2];
            numbers.sort_unstable();
            connections.extend(pair);
            connections.iter().for_each(Connection::talk);
            numbers == expected
        })
    };
    for _ in 0..2 {
        world.write_service(&BOTH);
        wait_until("both endpoints", || reached([0, 1]));
        world.write_service(&LOCAL);
        wait_until("the endpoint here", || reached([0, 0]));
    }
    world.write_service(&BOTH);
    wait_until("both endpoints", || reached([0, 1]));
    world.node.wait_quiet();
    std::thread::sleep(Duration::from_secs(2));
    connections.iter().for_each(Connection::talk);
}

/// Whether the kernel has virtual servers for firewall marks.
fn has_marks() -> bool {
    kernel().iter().any(|line| line.starts_with("-A -f "))
}

#[test]
fn session_affinity_holds_at_node_ports_and_load_balancer_addresses() {
    let world = World::start(&[], &BOTH);
    for local in [false, true] {
        let external = External { local, ..BOTH };
        let text = external.yaml(&service("  sessionAffinity: ClientIP\n"));
        world.node.write("service.yaml", &text);
        wait_until("persistence", || {
            let lines = kernel();
            let mut servers = lines.iter().filter(|line| line.starts_with("-A"));
            // For marks the scheduler hashes the address of the client.
            let holds = |line: &String| line.contains(" -p 10800") || line.contains(" -s mh");
            has_marks() == local && servers.all(holds)
        });
        for target in NETS.iter().flat_map(all_targets) {
            for client in world.clients() {
                let got = servers(client, &target, 6);
                assert_eq!(got.len(), 1, "{got:?}: {target:?} from {client:?}");
                assert!(!got.contains_key("failed"), "{target:?} from {client:?}");
            }
        }
    }
}

#[test]
fn pain_26_a_pod_reaches_itself_through_node_ports_and_load_balancer_addresses() {
    let mut world = World::new(&[]);
    world.write_service(&BOTH);
    world.write_endpoints(&[(&world.near, "n1")]);
    world.start_agent();
    let mut failures = Vec::new();
    for local in [false, true] {
        world.write_service(&External { local, ..BOTH });
        wait_until("the policy", || has_marks() == local);
        world.node.wait_quiet();
        for target in NETS.iter().flat_map(all_targets) {
            let got = servers(Some(&world.near), &target, 2);
            if got != counts(&[("near", 2)]) {
                failures.push(format!("{target:?}, local {local}: {got:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
