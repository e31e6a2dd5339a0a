//! Runs the processes in the pods: a server for each endpoint, and the client.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use guest_wire::RequestCounts;

use super::network::{self, DnsClient, inside};
use crate::child::KillOnDrop;

/// Limit for a server to answer its first connection.
const START: Duration = Duration::from_secs(60);

/// Concurrent connections of the client.
const PARALLEL: &str = "4";

/// The running servers by address.
#[derive(Default)]
pub(super) struct Pods {
    servers: BTreeMap<SocketAddr, KillOnDrop>,
}

impl Pods {
    /// Starts the server at `address` unless it runs, and waits until it answers.
    pub(super) fn start(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        if self.servers.contains_key(&address) {
            return Ok(());
        }
        let name = address.to_string();
        let child = inside(&network::namespace(address))
            .args(["guest", "serve", "--listen", &name, "--name", &name])
            .spawn()
            .with_context(|| format!("cannot start the server at {name}"))?;
        self.servers.insert(address, KillOnDrop(child));
        let deadline = Instant::now() + START;
        while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
            if Instant::now() > deadline {
                bail!("the server at {name} does not answer");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Kills the servers at `addresses` without a warning to their clients.
    pub(super) fn stop(&mut self, addresses: &[SocketAddr]) {
        self.servers
            .retain(|address, _| !addresses.contains(address));
    }
}

/// A client that sends until it is stopped.
pub(super) struct Background {
    child: Child,
}

impl Background {
    pub(super) fn start(target: SocketAddr) -> anyhow::Result<Self> {
        let child = client(target)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the client")?;
        Ok(Self { child })
    }

    /// Lets it finish the current requests, and returns its counts.
    pub(super) fn stop(mut self) -> anyhow::Result<RequestCounts> {
        drop(self.child.stdin.take());
        read(&self.child.wait_with_output()?.stdout)
    }
}

/// Sends `connections` requests from the client pod.
pub(super) fn measure(target: SocketAddr, connections: u64) -> anyhow::Result<RequestCounts> {
    requests(client(target), connections)
}

/// Asks the node's DNS server for `name` before each of `connections` requests, and sends it to the first address.
pub(super) fn measure_name(
    from: &DnsClient,
    name: &str,
    port: u16,
    connections: u64,
) -> anyhow::Result<RequestCounts> {
    let mut command = load(from.namespace);
    command.args(["--name", name, "--port", &port.to_string()]);
    command.args(["--name-server", &from.name_server.to_string()]);
    requests(command, connections)
}

/// Lets a client send so many requests.
fn requests(mut client: Command, connections: u64) -> anyhow::Result<RequestCounts> {
    let done = client
        .args(["--connections", &connections.to_string()])
        .output()
        .context("cannot start the client")?;
    let tally = read(&done.stdout)?;
    if tally.requests != connections {
        bail!(
            "the client sent {} requests of {connections}",
            tally.requests
        );
    }
    Ok(tally)
}

fn read(output: &[u8]) -> anyhow::Result<RequestCounts> {
    serde_json::from_slice(output).context("the client ended without a result")
}

fn client(target: SocketAddr) -> Command {
    let mut command = load(network::CLIENT);
    command.args(["--target", &target.to_string()]);
    command
}

/// Returns the command of a client in the pod `namespace`, without its target.
fn load(namespace: &str) -> Command {
    let mut command = inside(namespace);
    command.args(["guest", "load", "--parallel", PARALLEL, "--output", "json"]);
    command
}
