//! Compares the shares in `render` with the kernel's own counts (`ipvsadm --stats`): over TCP with
//! active connections, and with weights of 99 and 1 over few and many endpoints.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::agent::Node;
use crate::lab::{Lab, sh};
use crate::shares::{FIRST, NEAR, reported};
use crate::yaml::{NODES, Service, slice};

/// Limit of open files: both ends of every connection of a Service.
const FILES: u64 = 20_000;

/// A Service for each scheduler: one near endpoint, and some in another zone.
struct Group {
    protocol: &'static str,
    schedulers: &'static [&'static str],
    weights: &'static str,
    far: u8,
    clients: u32,
}

/// A Service of a group.
struct Target {
    name: String,
    vip: Ipv4Addr,
    protocol: &'static str,
    clients: u32,
}

impl Group {
    /// The Services; `at` is the third number of their addresses.
    fn targets(&self, at: u8) -> impl Iterator<Item = (&'static str, Target)> {
        (1..).zip(self.schedulers).map(move |(number, scheduler)| {
            let target = Target {
                name: format!("{scheduler}-{}", self.far),
                vip: Ipv4Addr::new(10, 96, at, number),
                protocol: self.protocol,
                clients: self.clients,
            };
            (*scheduler, target)
        })
    }

    fn write(&self, node: &Node, scheduler: &str, target: &Target) {
        let annotations = format!(
            "topology.ipvs-topo.io/weights: '{}', topology.ipvs-topo.io/scheduler: {scheduler}",
            self.weights
        );
        let service = Service {
            name: &target.name,
            ips: &[&target.vip.to_string()],
            ports: &[(self.protocol, 53)],
            spec: "",
            annotations: &annotations,
        };
        let far = (1..=self.far).map(|number| format!("10.244.3.{number} n3"));
        let endpoints: Vec<String> = std::iter::once(format!("{NEAR} n1")).chain(far).collect();
        let ports = [(self.protocol, 53, 5353)];
        let slice = slice(&target.name, &target.name, &ports, &endpoints);
        node.write(&format!("{}.yaml", target.name), &(service.yaml() + &slice));
    }
}

impl Target {
    /// Sends a datagram from each client address. The test does not read them.
    fn send(&self) {
        for client in FIRST..FIRST + self.clients {
            let socket = UdpSocket::bind((Ipv4Addr::from(client), 0)).unwrap();
            // The kernel does not count refused datagrams.
            let _refused = socket.send_to(b"x", (self.vip, 53));
        }
    }

    /// Opens a connection from each client address; all remain open.
    fn connect(&self, listener: &TcpListener) {
        let mut open: Vec<[TcpStream; 2]> = Vec::new();
        for client in FIRST..FIRST + self.clients {
            let near = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            bind(&near, &SocketAddrV4::new(client.into(), 0)).unwrap();
            connect(&near, &SocketAddrV4::new(self.vip, 53)).unwrap();
            let (far, from) = listener.accept().unwrap();
            assert_eq!(from.ip(), Ipv4Addr::from(client));
            open.push([near.into(), far]);
        }
    }

    /// The number of connections of each real server.
    fn counted(&self) -> BTreeMap<String, u32> {
        let option = if self.protocol == "TCP" { "-t" } else { "-u" };
        let list = sh(&format!("ipvsadm -Ln --stats {option} {}:53", self.vip));
        let servers = list.lines().filter_map(|line| {
            let mut words = line.strip_prefix("  -> ")?.split_whitespace();
            let server: SocketAddr = words.next()?.parse().ok()?;
            Some((server.ip().to_string(), words.next()?.parse().unwrap()))
        });
        servers.collect()
    }

    /// The same when the counts are complete: the kernel adds up its per-processor counts every two
    /// seconds (`ip_vs_est.c`).
    fn counted_in_the_end(&self) -> BTreeMap<String, u32> {
        for _ in 0..20 {
            let counted = self.counted();
            if counted.values().sum::<u32>() == self.clients {
                return counted;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        self.counted()
    }

    /// Endpoints with a count more than five standard deviations from the reported share.
    fn off(&self, reported: &BTreeMap<String, f64>) -> String {
        let counted = self.counted_in_the_end();
        let all: u32 = counted.values().sum();
        let mut off = String::new();
        for (address, share) in reported {
            let count = counted.get(address).copied().unwrap_or(0);
            let measured = f64::from(count) / f64::from(self.clients);
            let chance = 5.0 * (share * (1.0 - share) / f64::from(self.clients)).sqrt() + 0.002;
            if address == NEAR {
                eprintln!("{:7} reported {share:.4} measured {measured:.4}", self.name);
            }
            if all != self.clients || (measured - share).abs() > chance {
                let name = &self.name;
                writeln!(
                    off,
                    "{name} {address}: {share} and {measured}, {all} arrived"
                )
                .unwrap();
            }
        }
        off
    }
}

/// Starts an agent, connects clients to all `groups`, and compares.
fn compare(groups: &[Group]) {
    let _lab = Lab::new();
    let limit = Rlimit {
        current: Some(FILES),
        maximum: Some(FILES),
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut node = Node::new().with(&["--service-cidr", "10.96.0.0/12"]);
    node.write("nodes.yaml", NODES);
    let mut targets = Vec::new();
    for (at, group) in (2..).zip(groups) {
        for (scheduler, target) in group.targets(at) {
            group.write(&node, scheduler, &target);
            targets.push(target);
        }
    }
    let reported = reported(&node);
    node.start();
    // The agent's tables only slow the test down; its virtual servers remain.
    node.kill();
    sh("nft flush ruleset
        ip route add local 10.244.0.0/16 dev lo table local
        ip route add local 10.64.0.0/16 dev lo table local");
    let _reads_nothing = UdpSocket::bind("0.0.0.0:5353").unwrap();
    let listener = TcpListener::bind("0.0.0.0:5353").unwrap();
    let mut off = String::new();
    for target in &targets {
        match target.protocol {
            "TCP" => target.connect(&listener),
            _ => target.send(),
        }
    }
    for target in &targets {
        off += &target.off(&reported[&target.name]);
    }
    assert!(off.is_empty(), "{off}");
}

#[test]
fn d12_shares_of_4_000_tcp_clients_equal_the_reported() {
    compare(&[Group {
        protocol: "TCP",
        schedulers: &["wrr", "wlc", "sed", "nq", "mh", "sh"],
        weights: "zone=90,*=10",
        far: 5,
        clients: 4_000,
    }]);
}

#[test]
fn d12_shares_of_99_and_1_over_few_and_many_endpoints_equal_the_reported() {
    compare(&[5, 200].map(|far| Group {
        protocol: "UDP",
        schedulers: &["wrr", "mh", "sh"],
        weights: "zone=99,*=1",
        far,
        clients: 20_000,
    }));
}
