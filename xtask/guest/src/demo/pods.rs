//! The processes in the pods: servers behind the endpoints, and the client.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use guest_wire::Tally;

use super::world;

/// How long a server may take until it answers.
const START: Duration = Duration::from_secs(60);

/// Connections under way at the same time.
const PARALLEL: &str = "4";

/// The servers that run, by address.
#[derive(Default)]
pub(super) struct Pods {
    servers: BTreeMap<SocketAddr, Child>,
}

impl Pods {
    /// Starts the server at `address` unless it runs, and waits until it answers.
    pub(super) fn start(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        if self.servers.contains_key(&address) {
            return Ok(());
        }
        let name = address.to_string();
        let child = inside(&world::namespace(address))
            .args(["guest", "serve", "--listen", &name, "--name", &name])
            .spawn()
            .with_context(|| format!("cannot start the server at {name}"))?;
        self.servers.insert(address, child);
        let deadline = Instant::now() + START;
        while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
            if Instant::now() > deadline {
                bail!("the server at {name} does not answer");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Ends the servers at `addresses`, at once and without a word to their clients.
    pub(super) fn stop(&mut self, addresses: &[SocketAddr]) -> anyhow::Result<()> {
        for address in addresses {
            if let Some(mut child) = self.servers.remove(address) {
                child.kill()?;
                child.wait()?;
            }
        }
        Ok(())
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        for child in self.servers.values_mut() {
            // The guest is powered off next.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// A client that goes on until it is stopped.
pub(super) struct Background {
    child: Child,
}

impl Background {
    /// Starts the client.
    pub(super) fn start(target: SocketAddr) -> anyhow::Result<Self> {
        let child = client(target)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the client")?;
        Ok(Self { child })
    }

    /// Stops it after the requests under way; what they came to.
    pub(super) fn stop(mut self) -> anyhow::Result<Tally> {
        drop(self.child.stdin.take());
        read(&self.child.wait_with_output()?.stdout)
    }
}

/// Sends `connections` requests from the client pod.
pub(super) fn measure(target: SocketAddr, connections: u64) -> anyhow::Result<Tally> {
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

fn read(output: &[u8]) -> anyhow::Result<Tally> {
    serde_json::from_slice(output).context("the client ended without a result")
}

fn client(target: SocketAddr) -> Command {
    let mut command = inside(world::CLIENT);
    command.args(["guest", "load", "--target", &target.to_string()]);
    command.args(["--parallel", PARALLEL, "--output", "json"]);
    command
}

/// A command inside a network namespace.
fn inside(namespace: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]);
    command
}
