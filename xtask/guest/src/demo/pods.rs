//! Runs the processes in the pods: a server for each endpoint, and the client.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use guest_wire::RequestCounts;

use super::network;
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
    let done = client(target)
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
    let mut command = inside(network::CLIENT);
    command.args(["guest", "load", "--target", &target.to_string()]);
    command.args(["--parallel", PARALLEL, "--output", "json"]);
    command
}

/// Returns a command that runs in a network namespace.
fn inside(namespace: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]);
    command
}
