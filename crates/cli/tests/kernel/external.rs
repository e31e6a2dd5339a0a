//! Traffic to node ports and load balancer addresses: from a host outside of the cluster, from a pod, and from the node.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::agent::{Node, kernel};
use crate::lab::{
    Lab, NODE_V4, NODE_V6, OUTSIDER_V4, OUTSIDER_V6, Place, Process, sh, succeeds, wait_until,
};
use crate::traffic::{counted, load};
use crate::yaml::{External, Service, nodes_with_pod_ranges, slice};

const CIDRS: &str = "10.96.0.0/12,fd00:10:96::/112";
/// In the order of the Service's ports.
const NODE_PORTS: &[u16] = &[30080, 30053];
pub(crate) const PORTS: &[(&str, u16, u16)] = &[("TCP", 80, 8080), ("UDP", 53, 5353)];

/// The addresses of one family.
pub(crate) struct Net {
    pub(crate) node: &'static str,
    pub(crate) vip: &'static str,
    pub(crate) outsider: &'static str,
}

pub(crate) const NETS: [Net; 2] = [
    Net {
        node: NODE_V4,
        vip: "203.0.113.7",
        outsider: OUTSIDER_V4,
    },
    Net {
        node: NODE_V6,
        vip: "2001:db8::7",
        outsider: OUTSIDER_V6,
    },
];
pub(crate) const VIPS: &[&str] = &[NETS[0].vip, NETS[1].vip];
const VIP_RANGES: &[&str] = &["203.0.113.0/24", "2001:db8::/64"];

pub(crate) const NODE_PORT: External<'_> = External {
    node_ports: NODE_PORTS,
    ingress: &[],
    ips: &[],
    health_port: 0,
    local: false,
    ranges: &[],
};
pub(crate) const BOTH: External<'_> = External {
    ingress: VIPS,
    ..NODE_PORT
};
pub(crate) const LOCAL: External<'_> = External {
    local: true,
    ..BOTH
};

/// Where clients send to: a target of TCP or of UDP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    at: String,
    udp: bool,
}

pub(crate) fn at(ip: &str, port: u16) -> String {
    SocketAddr::new(ip.parse().unwrap(), port).to_string()
}

pub(crate) fn tcp(ip: &str, port: u16) -> Target {
    let (at, udp) = (at(ip, port), false);
    Target { at, udp }
}

pub(crate) fn udp(ip: &str, port: u16) -> Target {
    let (at, udp) = (at(ip, port), true);
    Target { at, udp }
}

/// The node ports of both protocols at an address.
fn node_ports(ip: &str) -> [Target; 2] {
    [tcp(ip, 30080), udp(ip, 30053)]
}

/// The node ports and the load balancer address.
pub(crate) fn all_targets(net: &Net) -> Vec<Target> {
    let mut targets = node_ports(net.node).to_vec();
    targets.extend([tcp(net.vip, 80), udp(net.vip, 53)]);
    targets
}

/// Where a client runs: in a namespace, or on the node.
pub(crate) type Client<'a> = Option<&'a Place>;

/// The connections that each server answered, and the source addresses that the servers saw.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answers {
    pub(crate) servers: BTreeMap<String, u64>,
    pub(crate) peers: BTreeSet<String>,
}

pub(crate) fn answers(client: Client<'_>, target: &Target, connections: u32) -> Answers {
    let flags = if target.udp { "--udp" } else { "" };
    let line = load(&target.at, connections, flags);
    let hits = counted(&client.map_or_else(|| sh(&line), |place| place.sh(&line)));
    let mut answers = Answers {
        servers: BTreeMap::new(),
        peers: BTreeSet::new(),
    };
    for (text, count) in hits {
        let (server, peer) = text.split_once(' ').unwrap_or((&text, ""));
        *answers.servers.entry(server.to_owned()).or_default() += count;
        answers.peers.insert(peer.to_owned());
    }
    answers
}

pub(crate) fn servers(
    client: Client<'_>,
    target: &Target,
    connections: u32,
) -> BTreeMap<String, u64> {
    answers(client, target, connections).servers
}

pub(crate) fn counts(list: &[(&str, u64)]) -> BTreeMap<String, u64> {
    let list = list.iter();
    list.map(|&(name, count)| (name.to_owned(), count))
        .collect()
}

/// The result of one attempt. A timeout is two unanswered SYNs, or one datagram.
pub(crate) fn attempt(client: Client<'_>, target: &Target) -> Result<(), ErrorKind> {
    let try_once = || {
        let at: SocketAddr = target.at.parse().unwrap();
        if !target.udp {
            return TcpStream::connect_timeout(&at, Duration::from_secs(3)).map(drop);
        }
        let any: IpAddr = match at {
            SocketAddr::V4(_) => [0; 4].into(),
            SocketAddr::V6(_) => [0; 16].into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        socket.connect(at)?;
        socket.send(b"?")?;
        socket.recv(&mut [0; 64]).map(drop)
    };
    let result = client.map_or_else(try_once, |place| place.inside(try_once));
    result.map_err(|error| match error.kind() {
        // The sender itself gets an error if its datagram is dropped in the output hook.
        ErrorKind::WouldBlock | ErrorKind::PermissionDenied => ErrorKind::TimedOut,
        kind => kind,
    })
}

pub(crate) const DROPPED: Result<(), ErrorKind> = Err(ErrorKind::TimedOut);
pub(crate) const REFUSED: Result<(), ErrorKind> = Err(ErrorKind::ConnectionRefused);

/// A node with a client pod, an endpoint on it, and an endpoint on another node.
pub(crate) struct World {
    pub(crate) node: Node,
    pub(crate) client: Place,
    pub(crate) near: Place,
    pub(crate) far: Place,
    pub(crate) outsider: Place,
    _servers: Vec<Process>,
    // Last: it deletes the namespaces.
    pub(crate) lab: Lab,
}

impl World {
    pub(crate) fn new(arguments: &[&str]) -> Self {
        let mut lab = Lab::new();
        lab.route_from_outside(VIP_RANGES);
        let (client, near, far) = (lab.pod(), lab.pod(), lab.pod());
        let servers = [(&near, "near"), (&far, "far")];
        let servers = servers.into_iter().flat_map(|(pod, name)| serve(pod, name));
        let servers = servers.collect();
        let mut node = Node::new().with(&["--service-cidr", CIDRS]).with(arguments);
        // Without checks, so that only changes have an effect.
        if !arguments.contains(&"--check-period") {
            node = node.with(&["--check-period", "1h"]);
        }
        node.write("nodes.yaml", &nodes_with_pod_ranges());
        Self {
            node,
            client,
            near,
            far,
            outsider: lab.outsider(),
            _servers: servers,
            lab,
        }
    }

    /// Starts the agent and waits for its tables, which may come later than virtual servers.
    pub(crate) fn start_agent(&mut self) {
        self.node.start();
        Self::wait_tables();
    }

    /// Waits until the agent has written its tables.
    pub(crate) fn wait_tables() {
        let tables = ["ip", "ip6"].map(|ip| format!("nft list table {ip} ipvs-topo"));
        wait_until("tables", || tables.iter().all(|table| succeeds(table)));
    }

    /// Starts the agent with a Service of this kind and both endpoints.
    pub(crate) fn start(arguments: &[&str], external: &External<'_>) -> Self {
        let mut world = Self::new(arguments);
        world.write_service(external);
        world.write_endpoints(&[(&world.near, "n1"), (&world.far, "n2")]);
        world.start_agent();
        world
    }

    pub(crate) fn write_service(&self, external: &External<'_>) {
        self.node
            .write("service.yaml", &external.yaml(&service("")));
    }

    pub(crate) fn write_endpoints(&self, endpoints: &[(&Place, &str)]) {
        let of = |family: &str, ip: fn(&Place) -> IpAddr| {
            let lines = endpoints.iter();
            let lines: Vec<_> = lines
                .map(|(pod, node)| format!("{} {node}", ip(pod)))
                .collect();
            slice("web", &format!("web-{family}"), PORTS, &lines)
        };
        self.node.write(
            "slices.yaml",
            &(of("4", |pod| pod.v4) + &of("6", |pod| pod.v6)),
        );
    }

    /// The outside host, a pod and the node.
    pub(crate) fn clients(&self) -> [Client<'_>; 3] {
        [Some(&self.outsider), Some(&self.client), None]
    }
}

pub(crate) fn service(spec: &str) -> Service<'_> {
    Service {
        name: "web",
        ips: &["10.96.0.10", "fd00:10:96::a"],
        ports: &[("TCP", 80), ("UDP", 53)],
        spec,
        annotations: "",
    }
}

/// Starts servers of both protocols and families, which answer with their name and the client's address.
fn serve(pod: &Place, name: &str) -> Vec<Process> {
    let start = |ip: IpAddr, port: u16, udp: &str| {
        let listen = SocketAddr::new(ip, port);
        pod.spawn(&format!(
            "guest serve --listen {listen} --name {name} --peer {udp}"
        ))
    };
    let ips = [pod.v4, pod.v6];
    let started = ips.map(|ip| [start(ip, 8080, ""), start(ip, 5353, "--udp")]);
    for ip in ips.map(|ip| ip.to_string()) {
        for target in [tcp(&ip, 8080), udp(&ip, 5353)] {
            wait_until("a server", || attempt(Some(pod), &target).is_ok());
        }
    }
    started.into_iter().flatten().collect()
}

/// All addresses of the node, without prefix lengths.
pub(crate) fn node_addresses() -> BTreeSet<String> {
    let list = sh("ip -o addr show");
    let words = list.split_whitespace().filter(|word| word.contains('/'));
    words
        .filter_map(|word| word.split_once('/'))
        .map(|(ip, _)| ip.to_owned())
        .collect()
}

#[test]
fn clients_anywhere_reach_all_endpoints_at_a_node_port_and_outside_ones_are_masqueraded() {
    let world = World::start(&[], &NODE_PORT);
    let both = counts(&[("near", 2), ("far", 2)]);
    for net in NETS {
        for target in node_ports(net.node) {
            for client in world.clients() {
                let got = answers(client, &target, 4);
                assert_eq!(got.servers, both, "{target:?} from {client:?}");
            }
            let peers = answers(Some(&world.outsider), &target, 2).peers;
            assert!(
                peers.is_subset(&node_addresses()),
                "{target:?}: {peers:?} are not addresses of the node"
            );
        }
    }
}

#[test]
fn kp_vs_13_node_ports_follow_the_addresses_of_the_node_at_once() {
    let world = World::start(&[], &NODE_PORT);
    world
        .lab
        .route_from_outside(&["192.168.20.0/24", "fd00:20::/64"]);
    let has = |ip: &str| kernel().iter().any(|line| line.contains(ip));
    for (ip, prefix) in [("192.168.20.5", 24), ("fd00:20::5", 64)] {
        assert!(!has(ip));
        let nodad = if prefix == 64 { " nodad" } else { "" };
        sh(&format!("ip addr add {ip}/{prefix} dev eth0{nodad}"));
        wait_until("a virtual server", || has(ip));
        for target in node_ports(ip) {
            for client in world.clients() {
                wait_until("an answer", || attempt(client, &target).is_ok());
            }
        }
        sh(&format!("ip addr del {ip}/{prefix} dev eth0"));
        wait_until("no virtual server", || !has(ip));
        let tables = "nft list table ip ipvs-topo; nft list table ip6 ipvs-topo";
        wait_until("no element", || !sh(tables).contains(ip));
    }
    for net in NETS {
        let target = tcp(net.node, 30080);
        assert_eq!(attempt(Some(&world.outsider), &target), Ok(()));
    }
}

#[test]
fn kp_ut_018_node_ports_are_served_at_the_selected_addresses_only() {
    let mut world = World::new(&["--nodeport-addresses", "192.168.20.0/24,fd00:10::/64"]);
    sh("ip addr add 192.168.20.5/24 dev eth0");
    world.lab.route_from_outside(&["192.168.20.0/24"]);
    world.write_service(&External {
        local: true,
        ..NODE_PORT
    });
    world.write_endpoints(&[(&world.near, "n1"), (&world.far, "n2")]);
    world.start_agent();
    for client in world.clients() {
        let [other, selected] = [NODE_V4, "192.168.20.5"].map(|ip| tcp(ip, 30080));
        assert_eq!(attempt(client, &other), REFUSED, "{client:?}");
        assert_eq!(attempt(client, &selected), Ok(()), "{client:?}");
        assert_eq!(attempt(client, &tcp(NODE_V6, 30080)), Ok(()), "{client:?}");
    }
    let outside = answers(Some(&world.outsider), &tcp("192.168.20.5", 30080), 4);
    assert_eq!(outside.servers, counts(&[("near", 4)]));
}

#[test]
fn t11_a_load_balancer_address_serves_its_ports_refuses_others_and_gets_no_arp_reply() {
    // As from an announcer on the node's own network, which answers ARP elsewhere.
    let on_link = "192.168.10.200";
    let ingress = [VIPS, &[on_link]].concat();
    let world = World::start(
        &[],
        &External {
            ingress: &ingress,
            ..NODE_PORT
        },
    );
    let both = counts(&[("near", 2), ("far", 2)]);
    for Net { vip, outsider, .. } in NETS {
        for target in [tcp(vip, 80), udp(vip, 53)] {
            for client in world.clients() {
                assert_eq!(
                    servers(client, &target, 4),
                    both,
                    "{target:?} from {client:?}"
                );
            }
            let peers = answers(Some(&world.outsider), &target, 2).peers;
            assert!(!peers.contains(outsider), "{target:?}: {peers:?}");
        }
        for target in [tcp(vip, 81), tcp(vip, 22), tcp(vip, 8080), udp(vip, 54)] {
            for client in world.clients() {
                assert_eq!(
                    attempt(client, &target),
                    REFUSED,
                    "{target:?} from {client:?}"
                );
            }
        }
    }
    let outside = world.lab.outside();
    let asks = |ip: &str| format!("ip netns exec {outside} busybox arping -c 2 -w 3 -I eth0 {ip}");
    assert!(succeeds(&asks(NODE_V4)));
    for vip in [on_link, NETS[0].vip] {
        assert!(!succeeds(&asks(vip)), "{vip} gets an ARP reply");
    }
}

#[test]
fn kp_wk_01_local_policy_keeps_outside_clients_here_with_their_address_and_pods_reach_all() {
    let world = World::start(&[], &LOCAL);
    let both = counts(&[("near", 2), ("far", 2)]);
    let inside = [Some(&world.client), None];
    let outsider = Some(&world.outsider);
    for net in NETS {
        for target in all_targets(&net) {
            let outside = answers(outsider, &target, 4);
            assert_eq!(outside.servers, counts(&[("near", 4)]), "{target:?}");
            let own: BTreeSet<_> = [net.outsider.to_owned()].into();
            assert_eq!(outside.peers, own, "{target:?}");
            for client in inside {
                let got = servers(client, &target, 4);
                assert_eq!(got, both, "{target:?} from {client:?}");
            }
        }
    }

    world.write_endpoints(&[(&world.far, "n2")]);
    let far = counts(&[("far", 2)]);
    for net in NETS {
        for target in all_targets(&net) {
            wait_until("silence", || attempt(outsider, &target) == DROPPED);
            for client in inside {
                let got = servers(client, &target, 2);
                assert_eq!(got, far, "{target:?} from {client:?}");
            }
        }
    }

    world.write_endpoints(&[(&world.near, "n1")]);
    for target in NETS.iter().flat_map(all_targets) {
        wait_until("the local endpoint", || attempt(outsider, &target).is_ok());
    }
}
