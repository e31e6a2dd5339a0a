//! Client ports that IPVS still has in the entry of another connection.
//!
//! IPVS finds the entry of a reply by the real server and the client (`ip_vs_conn_out_get` in
//! `net/netfilter/ipvs/ip_vs_conn.c`), and sends the reply from the virtual address of that entry.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};

use crate::agent::Node;
use crate::lab::{Lab, NODE_V4, Place, sh, succeeds, talk, wait_until};
use crate::yaml::{NODES, slice, web};

const SERVICES: [&str; 2] = ["10.96.0.10", "10.96.0.11"];
/// Client ports.
const PORT: u16 = 40_000;
const OTHER_PORT: u16 = 40_002;
/// At least two SYNs.
const PATIENCE: Duration = Duration::from_secs(4);
/// The result of a connection without a SYN-ACK.
const NO_ANSWER: Result<(), Errno> = Err(Errno::INPROGRESS);

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
        let mut node = Node::new().with(&["--service-cidr", "10.96.0.0/12"]);
        node = node.with(arguments);
        node.write("nodes.yaml", NODES);
        let endpoints = [format!("{} n1", endpoint.v4)];
        for (name, ip) in ["one", "two"].into_iter().zip(SERVICES) {
            let ports = [("TCP", 80, 8080)];
            let text = slice(name, &format!("{name}-4"), &ports, &endpoints);
            node.write(&format!("{name}.yaml"), &(web(name, &[ip]).yaml() + &text));
        }
        node.start();
        // Without a chain for NAT the kernel does not look for a free source port.
        wait_until("the table", || succeeds("nft list table ip ipvs-topo"));
        Self {
            client,
            endpoint,
            _node: node,
            _lab: lab,
        }
    }

    /// Where the endpoint listens.
    fn direct(&self) -> SocketAddr {
        SocketAddr::new(self.endpoint.v4, 8080)
    }

    /// Connects from a port of the client pod.
    fn ask(&self, port: u16, target: SocketAddr) -> Result<(), Errno> {
        let source = SocketAddr::new(self.client.v4, port);
        self.client.inside(|| ask(source, target))
    }

    /// Connects through the first Service, and waits until both sides have closed the connection.
    fn ask_service(&self, port: u16) {
        assert_eq!(self.ask(port, service(0)), Ok(()));
        wait_closed(port);
    }

    /// Connects through both Services from one port, and returns the ends of the client and the endpoint, older first.
    fn connect_twice(&self) -> [(TcpStream, TcpStream); 2] {
        let listener = self.endpoint.listen(8080);
        let source = SocketAddr::new(self.client.v4, PORT);
        [0, 1].map(|number| {
            let open = || connect_from(source, service(number)).unwrap();
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

fn service(number: usize) -> SocketAddr {
    SocketAddr::new(SERVICES[number].parse().unwrap(), 80)
}

/// Connects in the thread's namespace. Other connections may have the same source.
fn connect_from(source: SocketAddr, target: SocketAddr) -> Result<TcpStream, Errno> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
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

fn load_rules(text: &str) {
    sh(&format!("nft -f - <<'EOF'\n{text}\nEOF"));
}

/// Counts replies of direct connections that come from a Service. IPVS changes replies at priority 100 of the hook
/// `forward`, and at 98 of `input`.
fn count_at(hook: &str) {
    load_rules(&format!(
        "table ip counted {{
            chain replies {{
                type filter hook {hook} priority 101;
                ct original ip daddr != 10.96.0.0/12 ip saddr 10.96.0.0/12 counter
            }}
        }}"
    ));
}

fn counted() -> u32 {
    let chain = sh("nft list chain ip counted replies");
    let (_, count) = chain.split_once("packets ").unwrap();
    count.split(' ').next().unwrap().parse().unwrap()
}

/// Gives replies the source to which the client has sent, which connection tracking knows.
const RESTORE: &str = "
table ip restored {
    chain replies {
        type filter hook forward priority 101;
        ct direction reply ip saddr 10.96.0.0/12 meta l4proto tcp ip saddr set ct original ip daddr tcp sport set ct original proto-dst
    }
}";

#[test]
fn replies_of_a_direct_connection_come_from_the_service_that_had_its_client_port_before() {
    let world = SharedEndpoint::start(&[]);
    let _servers = world.endpoint.serve(8080, "endpoint");
    count_at("forward");
    world.ask_service(PORT);

    assert_eq!(world.ask(OTHER_PORT, world.direct()), Ok(()));
    assert_eq!(counted(), 0);
    assert_eq!(world.ask(PORT, world.direct()), NO_ANSWER);
    assert!(counted() > 0);

    // NAT changes it back before IPVS sees the reply.
    world.assert_other_source_port(PORT);
}

#[test]
fn with_nat_alone_the_same_port_reaches_the_endpoint() {
    let world = SharedEndpoint::start(&[]);
    let _servers = world.endpoint.serve(8080, "endpoint");
    // As kube-proxy's nftables mode.
    load_rules(&format!(
        "table ip translated {{
            chain prerouting {{
                type nat hook prerouting priority -100;
                ip daddr 203.0.113.9 tcp dport 80 dnat to {}
            }}
        }}",
        world.direct()
    ));
    let translated = "203.0.113.9:80".parse().unwrap();
    assert_eq!(world.ask(PORT, translated), Ok(()));
    assert_eq!(world.ask(PORT, world.direct()), Ok(()));
    world.assert_other_source_port(PORT);
}

#[test]
fn processes_of_the_node_get_such_replies_because_the_kernel_finds_their_socket_before() {
    let world = SharedEndpoint::start(&[]);
    let _servers = world.endpoint.serve(8080, "endpoint");
    count_at("input");
    for (early_demux, port, expected) in [(1, PORT, Ok(())), (0, OTHER_PORT, NO_ANSWER)] {
        sh(&format!("sysctl -qw net.ipv4.ip_early_demux={early_demux}"));
        let source = SocketAddr::new(NODE_V4.parse().unwrap(), port);
        assert_eq!(ask(source, service(0)), Ok(()));
        wait_closed(port);
        let before = counted();
        assert_eq!(ask(source, world.direct()), expected);
        assert!(counted() > before);
    }
}

#[test]
fn a_rule_behind_ipvs_restores_the_source_of_replies_of_direct_connections() {
    let world = SharedEndpoint::start(&[]);
    let _servers = world.endpoint.serve(8080, "endpoint");
    world.ask_service(PORT);
    load_rules(RESTORE);
    assert_eq!(world.ask(PORT, world.direct()), Ok(()));
    assert!(entry(PORT).is_some());
    assert_eq!(world.ask(OTHER_PORT, service(0)), Ok(()));
}

/// Asserts that only replies of the newer of two connections arrive, until a rule restores their sources.
fn assert_older_stops(older: (TcpStream, TcpStream), newer: &(TcpStream, TcpStream)) {
    let (mut client, mut server) = older;
    talk(&newer.0, &newer.1);
    server.write_all(b"word").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let error = client.read_exact(&mut [0; 4]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);

    load_rules(RESTORE);
    // TCP repeats the word, with growing pauses.
    client.set_read_timeout(Some(PATIENCE * 8)).unwrap();
    client.read_exact(&mut [0; 4]).unwrap();
    talk(&client, &server);
    talk(&newer.0, &newer.1);
}

#[test]
fn of_two_connections_from_one_port_the_older_stops_until_a_rule_restores_its_source() {
    let world = SharedEndpoint::start(&[]);
    let [older, newer] = world.connect_twice();
    assert_older_stops(older, &newer);
}

#[test]
fn the_older_also_stops_if_both_are_masqueraded() {
    let world = SharedEndpoint::start(&["--masquerade-all"]);
    let [older, newer] = world.connect_twice();
    let [one, two] = [&older, &newer].map(|(_, server)| server.peer_addr().unwrap());
    assert_ne!(one.ip(), world.client.v4);
    assert_ne!(one, two);
    assert_older_stops(older, &newer);
}
