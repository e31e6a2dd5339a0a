//! A node with an endpoint and a client pod, and a second node behind the outside host.

use std::net::{IpAddr, SocketAddr};

use super::connect::Protocol;
use super::rules::{Cell, Client, Endpoints, Frontend, Policy};
use crate::agent::{Node, kernel};
use crate::lab::{Lab, NODE_V4, NODE_V6, Place, Process, sh, succeeds, wait_until};
use crate::yaml::{External, NODES, Service, slice};

const PORTS: &[(&str, u16, u16)] = &[("TCP", 80, 8080), ("UDP", 80, 8080), ("SCTP", 80, 8080)];
const VIP_RANGES: [&str; 2] = ["203.0.113.0/24", "2001:db8::/64"];
const SERVICE_PORTS: &[(&str, u16)] = &[("TCP", 80), ("UDP", 80), ("SCTP", 80)];
const EXTERNAL_RANGES: [&str; 2] = ["198.51.100.0/24", "2001:db8:1::/64"];
/// `loadBalancerSourceRanges`: the outside host and the pods of this node.
const SOURCES: [&str; 4] = [
    "192.168.10.1/32",
    "10.244.1.0/24",
    "fd00:10::1/128",
    "fd00:10:244:1::/64",
];
const HEALTH_PORT: u16 = 30999;
/// The second address of the outside host, as that of another node.
const OTHER_NODE: [&str; 2] = ["192.168.10.12", "fd00:10::12"];

pub(crate) struct World {
    node: Node,
    pod: Place,
    near: Place,
    outsider: Place,
    /// A namespace of the other node for each of its pods.
    elsewhere: [Place; 2],
    generation: u16,
    _servers: Vec<Process>,
    // Last: it deletes the namespaces.
    _lab: Lab,
}

/// The kernel limits its ICMP messages, by default to one in a second for each client, and many cells are refused at the
/// same time.
const ICMP_LIMITS: [(&str, u32); 4] = [
    ("ipv4/icmp_ratelimit", 0),
    ("ipv4/icmp_msgs_per_sec", 100_000),
    ("ipv4/icmp_msgs_burst", 100_000),
    ("ipv6/icmp/ratelimit", 0),
];

impl World {
    pub(crate) fn start() -> Self {
        assert!(succeeds("modprobe sctp"), "this kernel has no module sctp");
        for (limit, value) in ICMP_LIMITS {
            sh(&format!("echo {value} > /proc/sys/net/{limit}"));
        }
        let mut lab = Lab::new();
        let service_ranges = ["10.96.0.0/16", "fd00:10:96::/112"];
        let ranges = [VIP_RANGES, EXTERNAL_RANGES, service_ranges].concat();
        lab.route_from_outside(&ranges);
        lab.route_from_outside(&["10.244.1.0/24", "fd00:10:244:1::/64"]);
        let (pod, near) = (lab.pod(), lab.pod());
        let elsewhere = [1, 2].map(|number| lab.pod_elsewhere(number));
        let outsider = lab.outsider();
        for (address, prefix) in OTHER_NODE.iter().zip(["24", "64 nodad"]) {
            outsider.sh(&format!("ip addr add {address}/{prefix} dev eth0"));
        }
        let servers = [(&near, "here"), (&elsewhere[0], "elsewhere")];
        let servers = servers.into_iter().flat_map(|(pod, name)| serve(pod, name));
        let servers = servers.collect();
        let external_ranges = EXTERNAL_RANGES.join(",");
        let mut node = Node::new().with(&[
            "--external-ip-ranges",
            &external_ranges,
            "--service-cidr",
            "10.96.0.0/16,fd00:10:96::/112",
            "--cluster-cidr",
            "10.244.0.0/16,fd00:10:244::/48",
            "--check-period",
            "1h",
        ]);
        node.write("nodes.yaml", NODES);
        for policy in Policy::ALL {
            node.write(&format!("{policy:?}.yaml"), &service(policy));
        }
        node.start();
        let tables = ["ip", "ip6"].map(|ip| format!("nft list table {ip} ipvs-topo"));
        wait_until("tables", || tables.iter().all(|table| succeeds(table)));
        Self {
            node,
            pod,
            near,
            outsider,
            elsewhere,
            generation: 1000,
            _servers: servers,
            _lab: lab,
        }
    }

    /// Changes the endpoints, and waits until the kernel has followed.
    pub(crate) fn set(&mut self, endpoints: Endpoints) {
        self.generation += 1;
        let here = |ip: IpAddr| format!("{ip} n1");
        let mut slices = String::new();
        for (family, near, far) in [
            ("4", self.near.v4, self.elsewhere[0].v4),
            ("6", self.near.v6, self.elsewhere[0].v6),
        ] {
            let far = format!("{far} n2");
            let lines = match endpoints {
                Endpoints::Both => vec![here(near), far],
                Endpoints::Here => vec![here(near)],
                Endpoints::Elsewhere => vec![far],
                Endpoints::Terminating => vec![format!("{near} n1 terminating")],
                Endpoints::Leaving => vec![format!("{near} n1 terminating"), far],
                Endpoints::Unready => vec![format!("{near} n1 down"), far],
                Endpoints::None => Vec::new(),
            };
            if !lines.is_empty() {
                for name in Policy::ALL.map(name) {
                    slices += &slice(&name, &format!("{name}-{family}"), PORTS, &lines);
                }
            }
        }
        // A Service that shows that the agent has read the file.
        let sentinel = Service {
            name: "sentinel",
            ips: &["10.96.9.9"],
            ports: &[("TCP", self.generation)],
            spec: "",
            annotations: "",
        };
        self.node.write("slices.yaml", &(slices + &sentinel.yaml()));
        let line = format!("10.96.9.9:{} ", self.generation);
        wait_until("the new endpoints", || {
            kernel().iter().any(|held| held.contains(&line))
        });
        self.node.wait_programmed();
    }

    /// The namespace and the address of a client; `None` for the node itself.
    pub(crate) fn client(&self, client: Client, is_v6: bool) -> (Option<&Place>, IpAddr) {
        let of = |place: &Place| if is_v6 { place.v6 } else { place.v4 };
        let place = match client {
            Client::PodHere => &self.pod,
            Client::Endpoint => &self.near,
            Client::PodElsewhere => &self.elsewhere[1],
            Client::Outside => &self.outsider,
            Client::OtherNode => {
                let address = OTHER_NODE[usize::from(is_v6)].parse().unwrap();
                return (Some(&self.outsider), address);
            }
            Client::ThisNode => {
                let any = [IpAddr::from([0; 4]), IpAddr::from([0; 16])];
                return (None, any[usize::from(is_v6)]);
            }
        };
        (Some(place), of(place))
    }
}

/// The target of a cell. All Services have the same ports.
pub(crate) fn target(cell: Cell, protocol: Protocol, is_v6: bool) -> SocketAddr {
    let addresses = match cell.frontend {
        Frontend::ClusterIp => cluster_ips(cell.policy),
        Frontend::NodePort | Frontend::HealthPort => [NODE_V4, NODE_V6].map(str::to_owned),
        Frontend::LoadBalancer => vips(cell.policy),
        Frontend::ExternalIp => external_ips(cell.policy),
    };
    let port = match cell.frontend {
        Frontend::NodePort => node_port(cell.policy, protocol),
        Frontend::HealthPort => HEALTH_PORT,
        Frontend::ClusterIp | Frontend::LoadBalancer | Frontend::ExternalIp => 80,
    };
    let address = &addresses[usize::from(is_v6)];
    SocketAddr::new(address.parse().unwrap(), port)
}

/// Whether a client has the same endpoint each time.
pub(crate) const fn is_sticky(policy: Policy) -> bool {
    matches!(policy, Policy::Affinity | Policy::LocalAffinity)
}

fn name(policy: Policy) -> String {
    format!("{policy:?}").to_lowercase()
}

/// The last part of the addresses of a policy's Service.
const fn host(policy: Policy) -> u16 {
    10 + policy as u16
}

fn cluster_ips(policy: Policy) -> [String; 2] {
    let host = host(policy);
    [format!("10.96.0.{host}"), format!("fd00:10:96::{host:x}")]
}

fn vips(policy: Policy) -> [String; 2] {
    let host = host(policy);
    [format!("203.0.113.{host}"), format!("2001:db8::{host:x}")]
}

fn external_ips(policy: Policy) -> [String; 2] {
    let host = host(policy);
    [
        format!("198.51.100.{host}"),
        format!("2001:db8:1::{host:x}"),
    ]
}

const fn node_port(policy: Policy, protocol: Protocol) -> u16 {
    30000 + 10 * host(policy) + protocol as u16
}

fn service(policy: Policy) -> String {
    let mut spec = String::new();
    if policy.is_internal_local() {
        spec += "  internalTrafficPolicy: Local\n";
    }
    if is_sticky(policy) {
        spec += "  sessionAffinity: ClientIP\n";
    }
    let annotations = match policy {
        Policy::Hard => "topology.ipvs-topo.io/keys: node",
        Policy::Prefer => "topology.ipvs-topo.io/keys: 'node,*'",
        _ => "",
    };
    let (cluster_ips, vips, external_ips) =
        (cluster_ips(policy), vips(policy), external_ips(policy));
    let service = Service {
        name: &name(policy),
        ips: &cluster_ips.each_ref().map(String::as_str),
        ports: SERVICE_PORTS,
        spec: &spec,
        annotations,
    };
    let external = External {
        node_ports: &Protocol::ALL.map(|protocol| node_port(policy, protocol)),
        ingress: &vips.each_ref().map(String::as_str),
        local: policy.is_external_local(),
        ranges: if policy.has_ranges() { &SOURCES } else { &[] },
        ips: &external_ips.each_ref().map(String::as_str),
        health_port: if policy == Policy::Local {
            HEALTH_PORT
        } else {
            0
        },
    };
    external.yaml(&service)
}

/// Starts servers of each protocol and family, which answer with their name and the client's address.
fn serve(pod: &Place, name: &str) -> Vec<Process> {
    let mut servers = Vec::new();
    for ip in [pod.v4, pod.v6] {
        let listen = SocketAddr::new(ip, 8080);
        for protocol in ["", "--udp", "--sctp"] {
            servers.push(pod.spawn(&format!(
                "guest serve --listen {listen} --name {name} --peer {protocol}"
            )));
        }
        pod.wait_for_server(&listen.to_string());
        for list in ["ss -Huln", "ss -HSln"] {
            wait_until("a server", || pod.sh(list).contains(&listen.to_string()));
        }
    }
    servers
}

/// The addresses of the node.
pub(crate) fn node_addresses() -> Vec<IpAddr> {
    let list = sh("ip -o addr show");
    let words = list.split_whitespace();
    let addresses = words.filter_map(|word| word.split_once('/')?.0.parse().ok());
    addresses.collect()
}
