//! Measures traffic through the node from a client to a pod, each in a network namespace: by routes alone, through the
//! Service `probe` of a node proxy, and through the virtual server that the agent leaves for it when it is killed.
//!
//! The programs of both ends are the subcommands `echo`, `path` and `stall`.

mod client;
mod echo;
mod path;
mod stall;

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use guest_wire::report::{PathReading, Stall, TrafficReport};
use serde::de::DeserializeOwned;

pub(crate) use echo::EchoArgs;
pub(crate) use path::PathArgs;
pub(crate) use stall::StallArgs;

use super::api::Api;
use super::probe::{CLUSTER_IP, NODE_PORT, SERVICE};
use super::running::RunningProxy;
use crate::child::KillOnDrop;
use crate::output::log;

/// The pod's address for traffic.
const POD: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 244, 0, 4)), 8080);
/// Number of readings of each path; the paths take turns.
const ROUNDS: u32 = 3;
/// How long a client sends while nothing changes.
const QUIET: Duration = Duration::from_secs(5);
/// Limit for the first answer through a path.
const LIMIT: Duration = Duration::from_secs(300);

/// Configures a client outside of the pod's network, and another address of the pod.
const NETWORK: &str = "
ip netns add client
ip link add client0 type veth peer name eth0 netns client
ip link set client0 up
ip address add 10.250.0.1/24 dev client0
ip -n client link set lo up
ip -n client link set eth0 up
ip -n client address add 10.250.0.2/24 dev eth0
ip -n client route add default via 10.250.0.1
ip -n pod address add 10.244.0.4/24 dev eth0
ip netns exec client sysctl -qw net.ipv4.ip_local_port_range='1024 65535'
";

/// Removes everything but IPVS from the packets' way.
const NO_TABLES: &str = "
nft flush ruleset
sysctl -qw net.ipv4.vs.conntrack=0
";

/// Masquerades connections through IPVS.
const MASQUERADE: &str = "
sysctl -qw net.ipv4.vs.conntrack=1
nft add table ip traffic-bench
nft add chain ip traffic-bench postrouting '{ type nat hook postrouting priority 100; }'
nft add rule ip traffic-bench postrouting ct original ip daddr 10.96.0.80 masquerade
";

/// Both ends of the traffic.
pub(crate) struct TrafficBench {
    _server: KillOnDrop,
    report: TrafficReport,
}

impl TrafficBench {
    /// Starts the server, and measures the path that needs no Service.
    pub(crate) fn prepare() -> Result<Self> {
        shell(NETWORK)?;
        let server = netns("pod")
            .args(["echo", "--listen", &POD.to_string()])
            .stdin(Stdio::null())
            .spawn()?;
        let mut bench = Self {
            _server: KillOnDrop(server),
            report: TrafficReport::default(),
        };
        for _ in 0..ROUNDS {
            bench.report.routed.push(path("routes alone", POD)?);
        }
        Ok(bench)
    }

    /// Moves the endpoint of the Service to the server, and measures the paths through `proxy`. `roller` replaces
    /// endpoints of other Services.
    pub(crate) fn measure(
        &mut self,
        api: Api,
        proxy: &RunningProxy,
        roller: SocketAddr,
        endpoints: u32,
    ) -> Result<()> {
        api.set_endpoints(SERVICE, &[POD.ip().to_string()])?;
        for target in [CLUSTER_IP, NODE_PORT] {
            wait_for(target)?;
        }
        proxy.settle()?;
        for _ in 0..ROUNDS {
            let report = &mut self.report;
            report.cluster_ip.push(path("cluster IP", CLUSTER_IP)?);
            report.node_port.push(path("node port", NODE_PORT)?);
        }
        self.report.quiet = stall("nothing changes", || {
            sleep(QUIET);
            Ok(())
        })?;
        let mut slices = 0;
        self.report.changing = stall("endpoints change", || {
            slices = replace(roller)?;
            proxy.settle()
        })?;
        self.report.changed = slices * endpoints;
        Ok(())
    }

    /// Measures the paths through the virtual servers that a killed agent left, without its nftables tables.
    pub(crate) fn measure_ipvs(&mut self) -> Result<()> {
        let report = &mut self.report;
        for _ in 0..ROUNDS {
            shell(NO_TABLES)?;
            report.ipvs.push(path("IPVS alone", CLUSTER_IP)?);
            shell(MASQUERADE)?;
            let masqueraded = path("IPVS alone, masquerading", CLUSTER_IP)?;
            report.masqueraded.push(masqueraded);
        }
        Ok(())
    }

    /// Returns the readings so far.
    pub(crate) fn into_report(self) -> TrafficReport {
        self.report
    }
}

/// Lets the host replace endpoints for a second, and returns the number of EndpointSlices that it wrote.
fn replace(roller: SocketAddr) -> Result<u32> {
    let mut roller = TcpStream::connect(roller).context("the roller")?;
    writeln!(roller, "1")?;
    let mut slices = String::new();
    roller.read_to_string(&mut slices)?;
    slices.trim().parse().context("the roller failed")
}

fn path(name: &str, target: SocketAddr) -> Result<PathReading> {
    wait_for(target)?;
    let output = netns("client")
        .args(["path", "--target", &target.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the client of {name} failed");
    let reading: PathReading = parse(&output.stdout)?;
    log(&format!(
        "{name}: {:.0} connections/s, p50 {:.2} ms, p99 {:.2} ms, {:.0} packets/s",
        reading.connections,
        1e3 * reading.p50,
        1e3 * reading.p99,
        reading.packets
    ));
    Ok(reading)
}

/// Returns the longest stalls from before `act` until after it.
fn stall(name: &str, act: impl FnOnce() -> Result<()>) -> Result<Stall> {
    let target = CLUSTER_IP.to_string();
    let client = netns("client")
        .args(["stall", "--target", &target])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut client = KillOnDrop(client);
    sleep(Duration::from_secs(1));
    act()?;
    let stall: Stall = parse(&finish(&mut client.0)?)?;
    log(&format!(
        "stalls while {name}: {:.0} ms established, {:.0} ms new, {} failed",
        1e3 * stall.established,
        1e3 * stall.new,
        stall.failed
    ));
    Ok(stall)
}

/// Ends a client's input and returns its output.
fn finish(client: &mut Child) -> Result<Vec<u8>> {
    drop(client.stdin.take());
    let mut output = Vec::new();
    let mut stdout = client.stdout.take().context("no output")?;
    stdout.read_to_end(&mut output)?;
    Ok(output)
}

/// Waits until a client reaches the server through `target`.
fn wait_for(target: SocketAddr) -> Result<()> {
    let begin = Instant::now();
    loop {
        let once = netns("client")
            .args(["path", "--once", "--target", &target.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if once.success() {
            return Ok(());
        }
        ensure!(
            begin.elapsed() < LIMIT,
            "no answer from {target} within {LIMIT:?}"
        );
    }
}

/// Returns the command `guest bench` in a network namespace.
fn netns(name: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", name, "guest", "bench"]);
    command
}

fn parse<T: DeserializeOwned>(output: &[u8]) -> Result<T> {
    serde_json::from_slice(output)
        .with_context(|| format!("a client said: {}", String::from_utf8_lossy(output)))
}

fn shell(script: &str) -> Result<()> {
    let status = Command::new("sh").args(["-ec", script]).status()?;
    ensure!(status.success(), "`{}` failed", script.trim());
    Ok(())
}
