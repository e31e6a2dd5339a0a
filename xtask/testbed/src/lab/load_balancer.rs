//! `cargo xtask lab load-balancer`: what a cloud's load balancer does for Services of type `LoadBalancer`.
//!
//! Each Service gets an address of a range for documentation. The lab's network routes the address to every node, or
//! with `externalTrafficPolicy: Local` to the nodes whose health-check port answers with 200, and with `sessionAffinity`
//! to one of these nodes. Without a node, packets get no answer, as from a cloud.

mod assignment;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::folder::Folder;
use super::network::{self, Network};
use super::node::{self, NODES};
use crate::vm::Machines;
use crate::vm::command::output;
use assignment::{Assignment, Balanced, Patch, RANGE_ROUTE, ServiceEvent};

/// A variable that the command sets for itself when it enters the lab's network.
const INSIDE: &str = "LAB_INSIDE";

/// Interval of the health checks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Limit for a health check; the nodes are emulated.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Takes packets to addresses without a node: no guest has this hardware address.
const NOWHERE: &str = "192.0.2.254";

/// The source address of clients, from a range for tests (RFC 2544). Kubernetes' tests take the /16 of a node's address
/// for the cluster's own.
const CLIENT: &str = "198.18.0.1";

/// The nodes of each address.
type Routes = BTreeMap<Ipv4Addr, Vec<Ipv4Addr>>;

/// Runs until the lab ends. It enters the lab's network first.
pub(super) fn run(folder: &Folder) -> anyhow::Result<()> {
    if std::env::var_os(INSIDE).is_none() {
        let program = std::env::current_exe()?;
        let mut again = Network::of(&folder.state()?.holder).command(program);
        again.args(["lab", "load-balancer"]).env(INSIDE, "1");
        return Err(again.exec().into());
    }
    // Connections of one client go to different nodes.
    fs::write("/proc/sys/net/ipv4/fib_multipath_hash_policy", "1")?;
    let balancer = Balancer {
        folder,
        machines: Machines::open()?,
        nodes: addresses()?,
    };
    balancer.route(&format!(
        "address replace {CLIENT}/32 dev lo\n\
         neighbour replace {NOWHERE} lladdr 02:00:00:00:00:fe dev {BRIDGE} nud permanent\n\
         route replace {RANGE_ROUTE} src {CLIENT} via {NOWHERE}\n",
        BRIDGE = network::BRIDGE
    ))?;
    let mut routes = Routes::default();
    while folder.is_running() {
        // The API server ends a watch after some time; the next one starts with every Service.
        balancer.follow(&mut routes)?;
        std::thread::sleep(INTERVAL);
    }
    Ok(())
}

/// Returns the addresses of the nodes.
fn addresses() -> anyhow::Result<Vec<Ipv4Addr>> {
    let nodes = NODES.iter();
    nodes
        .map(|name| Ok(node::address_of(name)?.parse()?))
        .collect()
}

struct Balancer<'a> {
    folder: &'a Folder,
    machines: Machines,
    nodes: Vec<Ipv4Addr>,
}

impl Balancer<'_> {
    /// Follows the Services until the watch or the lab ends.
    fn follow(&self, routes: &mut Routes) -> anyhow::Result<()> {
        let (mut watch, events) = self.watch()?;
        let mut assignment = Assignment::default();
        let mut next = Instant::now() + INTERVAL;
        while self.folder.is_running() {
            match events.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(event) => {
                    for patch in assignment.observe(&event)? {
                        self.write(&patch);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // Also while events arrive one after the other.
            if Instant::now() >= next {
                self.update(routes, &assignment)?;
                next = Instant::now() + INTERVAL;
            }
        }
        // It may have exited.
        drop(watch.kill());
        watch.wait()?;
        Ok(())
    }

    fn watch(&self) -> anyhow::Result<(Child, Receiver<ServiceEvent>)> {
        let words = "get services --all-namespaces --watch --output-watch-events --output=json";
        let mut watch = self
            .kubectl()?
            .args(words.split(' '))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let events = watch.stdout.take().context("kubectl has no output")?;
        let events = serde_json::Deserializer::from_reader(BufReader::new(events));
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            // An event that cannot be read ends the watch, and the next one starts.
            let mut events = events.into_iter::<ServiceEvent>();
            while let Some(Ok(event)) = events.next() {
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
        Ok((watch, receiver))
    }

    /// Writes to a Service. A test may have deleted it, which is no failure.
    fn write(&self, patch: &Patch) {
        if let Err(error) = self.try_to_write(patch) {
            anstream::eprintln!("  {}/{}: {error:#}", patch.namespace, patch.name);
        }
    }

    fn try_to_write(&self, patch: &Patch) -> anyhow::Result<()> {
        let mut kubectl = self.kubectl()?;
        kubectl.args(["patch", "service", &patch.name, "--type=merge"]);
        kubectl.args(["--namespace", &patch.namespace]);
        if patch.is_status {
            kubectl.arg("--subresource=status");
        }
        output(kubectl.args(["--patch", &patch.body.to_string()])).map(drop)
    }

    /// Changes the routes that differ from those of the Services.
    fn update(&self, routes: &mut Routes, assignment: &Assignment) -> anyhow::Result<()> {
        let balanced = assignment.balanced();
        let desired = balanced.map(|one| (one.address, self.targets(*one)));
        let desired = desired.filter(|(_, nodes)| !nodes.is_empty()).collect();
        let lines = changes(routes, &desired);
        if !lines.is_empty() {
            self.route(&lines)?;
            *routes = desired;
        }
        Ok(())
    }

    fn targets(&self, balanced: Balanced) -> Vec<Ipv4Addr> {
        let nodes = self.nodes.iter().copied();
        let healthy = nodes.filter(|node| {
            let port = balanced.health_port;
            port.is_none_or(|port| is_healthy(*node, port))
        });
        // The only client is the lab's network.
        let most = if balanced.has_affinity { 1 } else { usize::MAX };
        healthy.take(most).collect()
    }

    fn kubectl(&self) -> anyhow::Result<Command> {
        let controlplane = self.folder.controlplane();
        let mut kubectl = Command::new(controlplane.state()?.program);
        kubectl
            .arg("kubectl")
            .env("KUBECONFIG", controlplane.kubeconfig());
        Ok(kubectl)
    }

    /// Runs the lines of an `ip` batch.
    fn route(&self, lines: &str) -> anyhow::Result<()> {
        let mut ip = self.machines.tools.host("ip")?;
        let mut child = ip.args(["-batch", "-"]).stdin(Stdio::piped()).spawn()?;
        let mut input = child.stdin.take().context("ip has no input")?;
        input.write_all(lines.as_bytes())?;
        drop(input);
        let status = child.wait()?;
        ensure!(status.success(), "`ip` failed ({status}):\n{lines}");
        Ok(())
    }
}

/// Returns the `ip` commands that turn the routes `now` into `desired`.
fn changes(now: &Routes, desired: &Routes) -> String {
    let gone = now.keys().filter(|address| !desired.contains_key(*address));
    let gone = gone.map(|address| format!("route delete {address}/32\n"));
    let is_new = |(address, nodes): &(&Ipv4Addr, &Vec<Ipv4Addr>)| now.get(*address) != Some(*nodes);
    let new = desired.iter().filter(is_new).map(|(address, nodes)| {
        let hops = nodes.iter().map(|node| format!(" nexthop via {node}"));
        format!(
            "route replace {address}/32 src {CLIENT}{}\n",
            hops.collect::<String>()
        )
    });
    gone.chain(new).collect()
}

/// Returns whether a node's health-check port answers with 200.
fn is_healthy(node: Ipv4Addr, port: u16) -> bool {
    status_of(node, port).is_ok_and(|status| status.starts_with("HTTP/1.1 200"))
}

fn status_of(node: Ipv4Addr, port: u16) -> std::io::Result<String> {
    let address = SocketAddr::new(IpAddr::V4(node), port);
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;
    use std::net::TcpListener;

    use super::*;

    fn routes(all: &[(u8, &[u8])]) -> Routes {
        let each = all.iter().map(|(last, nodes)| {
            let nodes = nodes.iter().map(|node| Ipv4Addr::new(192, 0, 2, *node));
            (Ipv4Addr::new(198, 51, 100, *last), nodes.collect())
        });
        each.collect()
    }

    #[test]
    fn only_routes_that_differ_are_changed() {
        let now = routes(&[(1, &[11]), (2, &[11, 12]), (3, &[11])]);
        let desired = routes(&[(2, &[11, 12]), (3, &[12, 13]), (4, &[11])]);
        let expected = "route delete 198.51.100.1/32\n\
             route replace 198.51.100.3/32 src 198.18.0.1 nexthop via 192.0.2.12 nexthop via 192.0.2.13\n\
             route replace 198.51.100.4/32 src 198.18.0.1 nexthop via 192.0.2.11\n";
        assert_eq!(changes(&now, &desired), expected);
        assert_eq!(changes(&desired, &desired), "");
    }

    #[test]
    fn a_node_is_healthy_only_with_the_status_200() {
        for (status, expected) in [("200 OK", true), ("503 Service Unavailable", false)] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").unwrap();
            });
            assert_eq!(is_healthy(Ipv4Addr::LOCALHOST, port), expected, "{status}");
            server.join().unwrap();
            assert!(!is_healthy(Ipv4Addr::LOCALHOST, port));
        }
    }
}
