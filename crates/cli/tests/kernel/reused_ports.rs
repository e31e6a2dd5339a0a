//! Client ports that IPVS still has in the entry of another connection.
//!
//! IPVS finds the entry of a reply by the real server and the client (`ip_vs_conn_out_get` in
//! `net/netfilter/ipvs/ip_vs_conn.c`), and sends the reply from the virtual address of that entry. Rules of the agent behind
//! IPVS send it from the address that the client asked.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};

use crate::agent::Node;
use crate::lab::{Lab, NODE_V4, Place, sh, succeeds, talk, wait_until};
use crate::yaml::{NODES, Service, slice, web};

/// The cluster IPs of two Services.
const SERVICES: [[&str; 2]; 2] = [
    ["10.96.0.10", "fd00:10:96::10"],
    ["10.96.0.11", "fd00:10:96::11"],
];
/// Client ports.
const PORT: u16 = 40_000;
const OTHER_PORT: u16 = 40_002;
/// At least two SYNs.
const PATIENCE: Duration = Duration::from_secs(4);
/// The result of a connection without a SYN-ACK.
const NO_ANSWER: Result<(), Errno> = Err(Errno::INPROGRESS);

#[derive(Clone, Copy)]
enum Family {
    V4,
    V6,
}

/// A client pod, and two Services with another pod as their only endpoint.
struct SharedEndpoint {
    client: Place,
    endpoint: Place,
    _node: Node,
    // Last: it deletes the namespaces.
    _lab: Lab,
}

impl SharedEndpoint {
    fn start(arguments: &[&str]) -> Self {
        let mut lab = Lab::new();
        let (client, endpoint) = (lab.pod(), lab.pod());
        let ranges = "10.96.0.0/12,fd00:10:96::/112";
        let mut node = Node::new().with(&["--service-cidr", ranges, "--check-period", "1h"]);
        node = node.with(arguments);
        node.write("nodes.yaml", NODES);
        for (name, ips) in ["one", "two"].into_iter().zip(&SERVICES) {
            let service = Service {
                ports: &[("TCP", 80), ("UDP", 53)],
                ..web(name, ips)
            };
            let slices = [("4", endpoint.v4), ("6", endpoint.v6)].map(|(family, address)| {
                let ports = [("TCP", 80, 8080), ("UDP", 53, 8080)];
                let endpoints = [format!("{address} n1")];
                slice(name, &format!("{name}-{family}"), &ports, &endpoints)
            });
            node.write(
                &format!("{name}.yaml"),
                &(service.yaml() + &slices.concat()),
            );
        }
        node.start();
        wait_until("the tables", || {
            succeeds("nft list table ip ipvs-topo && nft list table ip6 ipvs-topo")
        });
        Self {
            client,
            endpoint,
            _node: node,
            _lab: lab,
        }
    }

    /// Where the endpoint listens.
    fn direct(&self, family: Family) -> SocketAddr {
        let address = match family {
            Family::V4 => self.endpoint.v4,
            Family::V6 => self.endpoint.v6,
        };
        SocketAddr::new(address, 8080)
    }

    /// Connects from a port of the client pod.
    fn ask(&self, port: u16, target: SocketAddr) -> Result<(), Errno> {
        let address = if target.is_ipv4() {
            self.client.v4
        } else {
            self.client.v6
        };
        let source = SocketAddr::new(address, port);
        self.client.inside(|| ask(source, target))
    }

    /// Connects through the first Service, and waits until both sides have closed the connection.
    fn ask_service(&self, port: u16, family: Family) {
        assert_eq!(self.ask(port, service(0, family, 80)), Ok(()));
        wait_closed(port);
    }

    /// Connects through both Services from one port, and returns the ends of the client and the endpoint, older first.
    fn connect_twice(&self) -> [(TcpStream, TcpStream); 2] {
        let listener = self.endpoint.listen(8080);
        let source = SocketAddr::new(self.client.v4, PORT);
        [0, 1].map(|number| {
            let open = || connect_from(source, service(number, Family::V4, 80)).unwrap();
            let client = self.client.inside(open);
            let (server, _) = listener.accept().unwrap();
            (client, server)
        })
    }

    /// Asserts that NAT gave another source port to the direct connection from a client port.
    fn assert_other_source_port(&self, port: u16) {
        let tracked = sh(&format!(
            "conntrack -L -p tcp --orig-dst {} --sport {port} 2>/dev/null",
            self.endpoint.v4
        ));
        assert!(tracked.contains(&format!("sport={port} ")), "{tracked}");
        assert!(!tracked.contains(&format!("dport={port} ")), "{tracked}");
    }
}

fn service(number: usize, family: Family, port: u16) -> SocketAddr {
    let address = SERVICES[number][family as usize];
    SocketAddr::new(address.parse().unwrap(), port)
}

/// Connects in the thread's namespace. Other connections may have the same source.
fn connect_from(source: SocketAddr, target: SocketAddr) -> Result<TcpStream, Errno> {
    let family = match source {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket(family, SocketType::STREAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(PATIENCE))?;
    bind(&socket, &source)?;
    connect(&socket, &target)?;
    Ok(TcpStream::from(socket))
}

/// Connects, and reads the answer of `guest serve`, which then closes the connection.
fn ask(source: SocketAddr, target: SocketAddr) -> Result<(), Errno> {
    let mut stream = connect_from(source, target)?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer.trim(), "endpoint");
    Ok(())
}

/// The state of the entry of IPVS for a client port.
fn entry(port: u16) -> Option<String> {
    let (table, port) = (sh("ipvsadm -Lnc"), format!(":{port} "));
    let line = table.lines().find(|line| line.contains(&port))?;
    line.split_whitespace().nth(2).map(str::to_owned)
}

/// Waits until IPVS has seen the end of a connection from both sides.
fn wait_closed(port: u16) {
    wait_until("the end of the connection", || {
        entry(port).as_deref() == Some("TIME_WAIT")
    });
}

/// Removes the agent's rules for replies, so that IPVS alone decides.
fn remove_rules() {
    for chain in ["after-ipvs-forward", "after-ipvs-input"] {
        sh(&format!("nft flush chain ip ipvs-topo {chain}"));
    }
}

#[test]
fn a_direct_connection_has_its_replies_although_ipvs_has_its_client_port() {
    let world = SharedEndpoint::start(&[]);
    let _servers = world.endpoint.serve(8080, "endpoint");
    for (family, port) in [(Family::V4, PORT), (Family::V6, PORT + 1)] {
        world.ask_service(port, family);
        assert_eq!(world.ask(port, world.direct(family)), Ok(()));
        assert!(entry(port).is_some());
    }
    // Without the rules there is no answer, although NAT chooses a free source port: it changes the port of replies back
    // before IPVS sees them.
    remove_rules();
    let direct = world.direct(Family::V4);
    world.ask_service(OTHER_PORT, Family::V4);
    assert_eq!(world.ask(OTHER_PORT + 1, direct), Ok(()));
    assert_eq!(world.ask(OTHER_PORT, direct), NO_ANSWER);
    world.assert_other_source_port(OTHER_PORT);
}

/// The kernel finds the socket of a process before IPVS changes the reply, unless `ip_early_demux` is 0.
#[test]
fn a_process_of_the_node_has_its_replies_without_early_demux_too() {
    let world = SharedEndpoint::start(&[]);
    let _servers = world.endpoint.serve(8080, "endpoint");
    let ask_both = |port| {
        let source = SocketAddr::new(NODE_V4.parse().unwrap(), port);
        assert_eq!(ask(source, service(0, Family::V4, 80)), Ok(()));
        wait_closed(port);
        ask(source, world.direct(Family::V4))
    };
    let early_demux = |on: u8| sh(&format!("sysctl -qw net.ipv4.ip_early_demux={on}"));
    early_demux(0);
    assert_eq!(ask_both(PORT), Ok(()));
    remove_rules();
    assert_eq!(ask_both(PORT + 1), NO_ANSWER);
    early_demux(1);
    assert_eq!(ask_both(PORT + 2), Ok(()));
}

/// Asserts that both connections continue, and the older one only by the rules, as in kubernetes#107249.
fn assert_both_continue(older: (TcpStream, TcpStream), newer: &(TcpStream, TcpStream)) {
    talk(&older.0, &older.1);
    talk(&newer.0, &newer.1);
    remove_rules();
    talk(&newer.0, &newer.1);
    let (mut client, mut server) = older;
    server.write_all(b"word").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let error = client.read_exact(&mut [0; 4]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[test]
fn two_connections_from_one_port_to_one_endpoint_continue() {
    let world = SharedEndpoint::start(&[]);
    let [older, newer] = world.connect_twice();
    assert_both_continue(older, &newer);
}

#[test]
fn two_masqueraded_connections_from_one_port_to_one_endpoint_continue() {
    let world = SharedEndpoint::start(&["--masquerade-all"]);
    let [older, newer] = world.connect_twice();
    for (_, server) in [&older, &newer] {
        assert_ne!(server.peer_addr().unwrap().ip(), world.client.v4);
    }
    assert_both_continue(older, &newer);
}

/// A resolver may ask two name servers from one socket.
#[test]
fn two_questions_from_one_port_to_one_endpoint_have_answers_from_the_addresses_they_were_for() {
    let world = SharedEndpoint::start(&[]);
    let open = |place: &Place, address: SocketAddr| {
        let socket = place.inside(|| UdpSocket::bind(address).unwrap());
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let server = open(&world.endpoint, world.direct(Family::V4));
    let client = open(&world.client, SocketAddr::new(world.client.v4, PORT));
    let services = [0, 1].map(|number| service(number, Family::V4, 53));
    let asked = services.map(|service| {
        client
            .send_to(service.to_string().as_bytes(), service)
            .unwrap();
        let mut question = [0; 32];
        let (length, source) = server.recv_from(&mut question).unwrap();
        (question[..length].to_vec(), source)
    });
    let answers = || {
        for (question, source) in &asked {
            server.send_to(question, source).unwrap();
        }
        services.map(|_| {
            let mut answer = [0; 32];
            let (length, source) = client.recv_from(&mut answer).unwrap();
            String::from_utf8_lossy(&answer[..length]) == source.to_string()
        })
    };
    assert_eq!(answers(), [true, true]);
    remove_rules();
    assert_eq!(answers(), [false, true]);
}
