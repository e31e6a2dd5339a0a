//! A DNS server on the node that is killed while clients ask: no query waits for an EndpointSlice.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::agent::{Node, wait_kernel};
use crate::lab::{Lab, Place, Process, sh, wait_until};
use crate::yaml::{NODES, Service, slice, web};

const VIP: &str = "10.96.0.10";
/// When a client sends a query again.
const RETRY: Duration = Duration::from_millis(100);
/// From a query of a client to its next; the two clients together ask 500 times a second.
const PERIOD: Duration = Duration::from_millis(4);
/// The time in which every query must be answered.
const LIMIT: Duration = Duration::from_secs(1);

/// `dns-version.cluster.local`, type TXT, class IN.
const QUESTION: &[u8] = b"\x0bdns-version\x07cluster\x05local\x00\x00\x10\x00\x01";

/// What one client saw.
#[derive(Debug, Default)]
struct Asked {
    queries: u32,
    /// Queries that were sent more than once.
    retried: u32,
    /// The longest time until an answer.
    longest: Duration,
}

fn query(id: u16) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend(QUESTION);
    bytes
}

/// Whether an answer to the query arrives before the next retry. The answer has no error.
fn is_answered(socket: &UdpSocket, id: u16) -> bool {
    let sent = Instant::now();
    while let Some(left) = RETRY
        .checked_sub(sent.elapsed())
        .filter(|left| !left.is_zero())
    {
        socket.set_read_timeout(Some(left)).unwrap();
        let mut bytes = [0; 512];
        // A closed port answers with ICMP, which is an error of the socket.
        let Ok(length) = socket.recv(&mut bytes) else {
            continue;
        };
        if length > 12 && bytes[..2] == id.to_be_bytes() {
            assert_eq!(bytes[3] & 0x0f, 0, "a DNS error");
            return true;
        }
    }
    false
}

impl Asked {
    /// Asks until `stop`, each query from the socket that `next_socket` returns for it and for its retries.
    fn ask(stop: &AtomicBool, mut next_socket: impl FnMut() -> UdpSocket) -> Self {
        let mut asked = Self::default();
        let start = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let (socket, id) = (
                next_socket(),
                u16::try_from(asked.queries % 0xffff).unwrap(),
            );
            let began = Instant::now();
            let mut attempts = 0;
            loop {
                // The send may report the ICMP error of an earlier one.
                drop(socket.send(&query(id)));
                attempts += 1;
                if is_answered(&socket, id) {
                    break;
                }
                assert!(began.elapsed() < LIMIT, "a query is lost: {asked:?}");
            }
            asked.queries += 1;
            asked.retried += u32::from(attempts > 1);
            asked.longest = asked.longest.max(began.elapsed());
            let due = start + PERIOD * asked.queries;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        asked
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket
        .connect((VIP.parse::<std::net::IpAddr>().unwrap(), 53))
        .unwrap();
    socket
}

/// A node with a DNS server on it and one elsewhere, the near one first.
struct World {
    node: Node,
    client: Place,
    near: Place,
    _far: Process,
    _lab: Lab,
}

impl World {
    fn start() -> Self {
        let mut lab = Lab::new();
        lab.route_from_outside(&["10.244.1.0/24"]);
        let (client, near, far) = (lab.pod(), lab.pod(), lab.pod_elsewhere(1));
        let mut node = Node::new().with(&["--service-cidr", "10.96.0.0/12"]);
        let service = Service {
            ports: &[("UDP", 53), ("TCP", 53)],
            annotations: "topology.ipvs-topo.io/keys: 'node,*'",
            ..web("dns", &[VIP])
        };
        let endpoints = [format!("{} n1", near.v4), format!("{} n2", far.v4)];
        let ports = [("UDP", 53, 53), ("TCP", 53, 53)];
        node.write("nodes.yaml", NODES);
        node.write("service.yaml", &service.yaml());
        node.write("slice.yaml", &slice("dns", "dns-4", &ports, &endpoints));
        let cluster = node.cluster();
        let elsewhere = format!(
            "ipvs-topo dns --cluster {} --node n2 --listen {}",
            cluster.display(),
            SocketAddr::new(far.v4, 53)
        );
        let server = far.spawn(&elsewhere);
        far.wait_for_server(&SocketAddr::new(far.v4, 53).to_string());
        node.start();
        Self {
            node,
            client,
            near,
            _far: server,
            _lab: lab,
        }
    }

    /// Starts the DNS server on the node, and waits until the agent knows it.
    fn serve_near(&self) -> Process {
        let at = SocketAddr::new(self.near.v4, 53);
        let (cluster, socket) = (self.node.cluster(), self.node.socket());
        let server = self.near.spawn(&format!(
            "ipvs-topo dns --cluster {} --node n1 --listen {at} --agent-socket {}",
            cluster.display(),
            socket.display()
        ));
        self.near.wait_for_server(&at.to_string());
        server
    }

    /// Waits until the kernel sends to this server only.
    fn wait_for(&self, server: &str) {
        wait_kernel(&[
            &format!("-A -t {VIP}:53 -s wrr"),
            &format!("-a -t {VIP}:53 -r {server}:53 -m -w 1"),
            &format!("-A -u {VIP}:53 -s wrr"),
            &format!("-a -u {VIP}:53 -r {server}:53 -m -w 1"),
        ]);
        self.node.wait_quiet();
    }
}

fn kill_the_near_server_while_clients_ask() {
    let world = World::start();
    let near = world.near.v4.to_string();
    world.wait_for(&near);
    for round in 1..=3 {
        let server = world.serve_near();
        wait_until("a connection of the server", || {
            world
                .node
                .log()
                .matches("is connected to this agent")
                .count()
                == round
        });
        world.wait_for(&near);
        let stop = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let fresh = scope.spawn(|| world.client.inside(|| Asked::ask(&stop, socket)));
            let same = scope.spawn(|| {
                world.client.inside(|| {
                    let only = socket();
                    Asked::ask(&stop, || only.try_clone().unwrap())
                })
            });
            std::thread::sleep(Duration::from_secs(1));
            let killed = Instant::now();
            drop(server);
            world.wait_for("10.244.2.1");
            eprintln!(
                "the kernel has the other server after {:?}",
                killed.elapsed()
            );
            std::thread::sleep(Duration::from_secs(1));
            stop.store(true, Ordering::Relaxed);
            [fresh, same].map(|client| client.join().unwrap())
        });
        eprintln!("{seen:?}");
        assert!(seen.iter().all(|asked| asked.queries > 20), "{seen:?}");
    }
    let explained = sh(&format!(
        "ipvs-topo explain t/dns -o json --socket {}",
        world.node.socket().display()
    ));
    assert!(explained.contains("Disconnected"), "{explained}");
}

/// The limit of a second leaves no room for another test in the same emulated guest.
mod alone {
    #[test]
    fn a_killed_dns_server_of_the_node_loses_no_query_beyond_a_retry_within_a_second() {
        super::kill_the_near_server_while_clients_ask();
    }
}
