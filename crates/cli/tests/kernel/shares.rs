//! Compares the shares in `render` with those of 20,000 client addresses in the kernel, for each
//! scheduler. Also: no client is refused while a real server drains.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use serde_json::Value;
use topology_core::model::Protocol;
use topology_core::ratio::Ratio;
use topology_core::scheduler::Scheduler;

use crate::agent::{Node, kernel};
use crate::lab::{Lab, sh, wait_until};
use crate::yaml::{NODES, Service, slice};

/// All schedulers that use weights, and some that do not.
const SCHEDULERS: [&str; 11] = [
    "wrr", "wlc", "twos", "mh", "sh", "rr", "lc", "sed", "nq", "fo", "dh",
];
const CLIENTS: u32 = 20_000;
/// The first client: 10.64.0.0.
pub(crate) const FIRST: u32 = 0x0A40_0000;
/// An endpoint in the node's zone, and others in another zone.
pub(crate) const NEAR: &str = "10.244.1.1";
const FAR: [&str; 5] = [
    "10.244.3.1",
    "10.244.3.2",
    "10.244.3.3",
    "10.244.3.4",
    "10.244.3.5",
];
/// Far fewer datagrams than fit into a socket's buffer.
const RECEIVE_EVERY: usize = 20;

fn vip(at: usize) -> String {
    format!("10.96.1.{}", at + 1)
}

/// Writes a UDP Service with weights of 90 and 10 for each scheduler.
fn write(node: &Node) {
    node.write("nodes.yaml", NODES);
    for (at, scheduler) in SCHEDULERS.iter().enumerate() {
        let annotations = format!(
            "topology.ipvs-topo.io/weights: 'zone=90,*=10', topology.ipvs-topo.io/scheduler: {scheduler}"
        );
        let service = Service {
            name: scheduler,
            ips: &[&vip(at)],
            ports: &[("UDP", 53)],
            spec: "",
            annotations: &annotations,
        };
        let far = FAR.iter().map(|address| format!("{address} n3"));
        let endpoints: Vec<String> = std::iter::once(format!("{NEAR} n1")).chain(far).collect();
        let slice = slice(scheduler, scheduler, &[("UDP", 53, 5353)], &endpoints);
        node.write(&format!("{scheduler}.yaml"), &(service.yaml() + &slice));
    }
}

/// The share of each endpoint in `render`, by Service.
pub(crate) fn reported(node: &Node) -> BTreeMap<String, BTreeMap<String, f64>> {
    let cluster = node.cluster();
    let render = format!(
        "ipvs-topo render --cluster {} --node n1 -o json 2>/dev/null",
        cluster.display()
    );
    let rendered: Value = serde_json::from_str(&sh(&render)).unwrap();
    let servers = rendered["virtualServers"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let shares = |server: &Value| {
        let reals = server["realServers"].as_array().unwrap().iter();
        reals
            .map(|real| (text(&real["address"]), real["share"].as_f64().unwrap()))
            .collect()
    };
    servers
        .iter()
        .map(|server| {
            let name = text(&server["service"]);
            (name.trim_start_matches("t/").to_owned(), shares(server))
        })
        .collect()
}

/// The expected part of each real server with `sh`, from the weights and the kernel's order.
fn modelled(at: usize) -> BTreeMap<String, f64> {
    let listed = sh(&format!("ipvsadm -Ln --nosort -u {}:53", vip(at)));
    let real = |line: &str| {
        let (address, rest) = line.trim().strip_prefix("-> ")?.split_once(":5353")?;
        let weight = rest.split_whitespace().nth(1)?.parse().ok()?;
        Some((address.to_owned(), weight))
    };
    let mut reals: Vec<(String, u32)> = listed.lines().filter_map(real).collect();
    // The kernel lists the newest first.
    reals.reverse();
    let destination = vip(at).parse().unwrap();
    let weights: Vec<u32> = reals.iter().map(|(_, weight)| *weight).collect();
    let shares = Scheduler::Sh
        .shares(&weights, Protocol::Udp, &[destination])
        .into_iter();
    let addresses = reals.into_iter().map(|(address, _)| address);
    addresses.zip(shares.map(Ratio::to_f64)).collect()
}

/// Sockets of the endpoints, whose addresses are local.
struct Endpoints(Vec<(&'static str, UdpSocket)>);

impl Endpoints {
    fn open() -> Self {
        sh("ip route add local 10.244.0.0/16 dev lo table local
            ip route add local 10.64.0.0/16 dev lo table local");
        let addresses = std::iter::once(NEAR).chain(FAR);
        let open = |address| {
            let socket = UdpSocket::bind((address, 5353)).unwrap();
            socket.set_nonblocking(true).unwrap();
            (address, socket)
        };
        Self(addresses.map(open).collect())
    }

    /// Counts the received datagrams; each contains the number of its Service.
    fn receive(&self, counts: &mut [BTreeMap<&'static str, u32>]) {
        let mut number = [0];
        for (address, socket) in &self.0 {
            while socket.recv(&mut number).is_ok() {
                *counts[usize::from(number[0])].entry(address).or_default() += 1;
            }
        }
    }

    /// Sends one datagram from each client address to each Service; returns the number for each
    /// endpoint, by Service.
    fn measure(
        &self,
        services: &[usize],
        first: u32,
        clients: u32,
    ) -> Vec<BTreeMap<&'static str, u32>> {
        let mut counts = vec![BTreeMap::new(); SCHEDULERS.len()];
        let mut sent = 0;
        for client in first..first + clients {
            let socket = UdpSocket::bind((Ipv4Addr::from(client), 0)).unwrap();
            for at in services {
                // A refused datagram does not arrive.
                let _refused = socket.send_to(&[u8::try_from(*at).unwrap()], (vip(*at), 53));
                sent += 1;
                if sent % RECEIVE_EVERY == 0 {
                    self.receive(&mut counts);
                }
            }
        }
        std::thread::sleep(Duration::from_millis(100));
        self.receive(&mut counts);
        counts
    }
}

/// The tolerance of a share: five standard deviations of random selection.
fn error(share: f64) -> f64 {
    5.0 * (share * (1.0 - share) / f64::from(CLIENTS)).sqrt() + 0.002
}

/// Alone: beside another test the endpoints cannot read as fast as datagrams arrive.
#[test]
fn alone_d12_shares_of_20_000_clients_equal_the_reported_and_a_drain_refuses_no_client() {
    let _lab = Lab::new();
    let mut node = Node::new().with(&["--service-cidr", "10.96.0.0/12"]);
    write(&node);
    let reported = reported(&node);
    node.start();
    // The agent's tables only slow the test down; its virtual servers remain.
    node.kill();
    sh("nft flush ruleset");
    let endpoints = Endpoints::open();
    let all: Vec<usize> = (0..SCHEDULERS.len()).collect();
    let counts = endpoints.measure(&all, FIRST, CLIENTS);
    let mut off = Vec::new();
    for (scheduler, counts) in SCHEDULERS.iter().zip(&counts) {
        let of: u32 = counts.values().sum();
        for (address, share) in &reported[*scheduler] {
            let count = counts.get(address.as_str()).copied().unwrap_or(0);
            let measured = f64::from(count) / f64::from(CLIENTS);
            eprintln!("{scheduler:5} {address:11} reported {share:.4} measured {measured:.4}");
            if of != CLIENTS || (measured - share).abs() > error(*share) {
                off.push(format!(
                    "{scheduler} {address}: {share} and {measured}, {of} arrived"
                ));
            }
        }
    }
    assert!(off.is_empty(), "{off:#?}");

    let hashing = [3, 4];
    for at in hashing {
        sh(&format!(
            "ipvsadm -e -u {}:53 -r {NEAR}:5353 -m -w 0",
            vip(at)
        ));
    }
    let clients = 2_000;
    let counts = endpoints.measure(&hashing, FIRST + 0x8000, clients);
    for at in hashing {
        let arrived: u32 = counts[at].values().sum();
        assert_eq!(arrived, clients, "{}: {:?}", SCHEDULERS[at], counts[at]);
        assert!(!counts[at].contains_key(NEAR));
    }
    oldest_loses_buckets_to_those_that_drain(&endpoints);
}

/// Each real server with weight 0 gets a bucket of `sh`, at the cost of the oldest ones.
fn oldest_loses_buckets_to_those_that_drain(endpoints: &Endpoints) {
    const SH: usize = 4;
    sh(&format!(
        "ipvsadm -e -u {}:53 -r {NEAR}:5353 -m -w 205",
        vip(SH)
    ));
    let before = modelled(SH);
    for pod in 1..=6 {
        sh(&format!(
            "ipvsadm -a -u {}:53 -r 10.244.9.{pod}:5353 -m -w 0",
            vip(SH)
        ));
    }
    let modelled = modelled(SH);
    let loses = |(address, share): (&String, &f64)| modelled[address] < share - 0.01;
    assert!(before.iter().any(loses), "{before:?} {modelled:?}");
    let counts = endpoints.measure(&[SH], FIRST, CLIENTS);
    for (address, share) in &modelled {
        let count = counts[SH].get(address.as_str()).copied().unwrap_or(0);
        let measured = f64::from(count) / f64::from(CLIENTS);
        eprintln!("sh {address:11} modelled {share:.4} measured {measured:.4}");
        assert!((measured - share).abs() <= error(*share), "{counts:?}");
    }
}

#[test]
fn d12_a_hashing_virtual_server_without_its_flag_is_corrected_by_one_edit() {
    let _lab = Lab::new();
    let cidr = ["--service-cidr", "10.96.0.0/12", "--check-period", "1s"];
    let mut node = Node::new().with(&cidr).with(&["--adopt"]);
    node.write("nodes.yaml", NODES);
    let service = Service {
        name: "web",
        ips: &["10.96.0.10"],
        ports: &[("TCP", 80)],
        spec: "  sessionAffinity: ClientIP\n",
        annotations: "topology.ipvs-topo.io/mode: none, topology.ipvs-topo.io/scheduler: mh",
    };
    let slice = slice("web", "web", &[("TCP", 80, 8080)], &["10.244.1.1 n1"]);
    node.write("web.yaml", &(service.yaml() + &slice));
    // As kube-proxy programs it.
    sh("ipvsadm -A -t 10.96.0.10:80 -s mh -b mh-port -p 10800
        ipvsadm -a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 1");
    node.start();
    let cluster = node.cluster();
    let rendered = sh(&format!(
        "ipvs-topo render --cluster {} --node n1 -o save 2>/dev/null",
        cluster.display()
    ));
    let rendered: Vec<&str> = rendered.lines().collect();
    assert!(rendered[0].contains("mh-fallback"), "{rendered:?}");
    wait_until("the agent's flag", || kernel() == rendered);
    std::thread::sleep(Duration::from_secs(3));
    assert!(
        !node.log().contains("was not as we left it"),
        "{}",
        node.log()
    );
    assert_eq!(kernel(), rendered);
}
