//! Moves the endpoint of a Service and measures the time until new connections reach the new address.
//!
//! Connections do not disturb a proxy; reading the kernel's tables would.

use std::fs;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use guest_wire::ServiceType;

use super::api::Api;
use crate::child::KillOnDrop;

/// The Service and its slice, as `kubernetes fill` creates them.
pub(crate) const SERVICE: &str = "probe";
/// Its cluster IP.
pub(crate) const CLUSTER_IP: SocketAddr = address([10, 96, 0, 80], 80);
/// Its node port at this node's address, if its type has one.
pub(crate) const NODE_PORT: SocketAddr = address([10, 0, 2, 15], 20_000);
/// Its load balancer address, if its type has one.
const LOAD_BALANCER: SocketAddr = address([198, 18, 0, 1], 80);
/// The two addresses between which its endpoint moves.
const ADDRESSES: [&str; 2] = ["10.244.0.2", "10.244.0.3"];
/// The guest's network card.
const LINK: &str = "eth0";
const PAUSE: Duration = Duration::from_millis(5);
const LIMIT: Duration = Duration::from_secs(300);

/// Configures the route to the host, and a pod with two addresses.
const SCRIPT: &str = "
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
sysctl -qw net.ipv4.ip_forward=1
ip netns add pod
ip link add pod0 type veth peer name eth0 netns pod
ip link set pod0 up
ip address add 10.244.0.1/24 dev pod0
ip -n pod link set lo up
ip -n pod link set eth0 up
ip -n pod address add 10.244.0.2/24 dev eth0
ip -n pod address add 10.244.0.3/24 dev eth0
ip -n pod route add default via 10.244.0.1
";

pub(crate) struct Probe {
    api: Api,
    /// Where clients reach the Service.
    frontends: Vec<SocketAddr>,
    /// The endpoint's address, and the address to which it moves next.
    addresses: [&'static str; 2],
    _servers: Vec<KillOnDrop>,
}

impl Probe {
    /// Configures the network, starts a server at both addresses, and moves the endpoint to the first.
    pub(crate) fn prepare(api: Api, service_type: ServiceType) -> Result<Self> {
        let status = Command::new("sh").args(["-ec", SCRIPT]).status()?;
        ensure!(status.success(), "the network cannot be prepared");
        let servers = ADDRESSES
            .into_iter()
            .map(start_server)
            .collect::<Result<_>>()?;
        let [first, _] = ADDRESSES;
        api.set_endpoints(SERVICE, &[first.to_owned()])?;
        let frontends = match service_type {
            ServiceType::ClusterIp => vec![CLUSTER_IP],
            ServiceType::NodePort => vec![CLUSTER_IP, NODE_PORT],
            ServiceType::LoadBalancer => vec![CLUSTER_IP, NODE_PORT, LOAD_BALANCER],
        };
        Ok(Self {
            api,
            frontends,
            addresses: ADDRESSES,
            _servers: servers,
        })
    }

    /// Moves the endpoint and returns the time from the API server's answer until new connections to every frontend
    /// reach it.
    pub(crate) fn flip(&mut self) -> Result<Duration> {
        self.addresses.reverse();
        let [address, _] = self.addresses;
        self.api.set_endpoints(SERVICE, &[address.to_owned()])?;
        let begin = Instant::now();
        for frontend in &self.frontends {
            while answer(*frontend).as_deref() != Some(address) {
                if begin.elapsed() > LIMIT {
                    bail!("connections to {frontend} did not reach {address} within {LIMIT:?}");
                }
                sleep(PAUSE);
            }
        }
        Ok(begin.elapsed())
    }
}

/// Returns the address that answers a new connection to `frontend`.
fn answer(frontend: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&frontend, Duration::from_secs(1)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.trim().to_owned())
}

const fn address([a, b, c, d]: [u8; 4], port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), port)
}

/// Starts a server in the pod that answers with its own address.
fn start_server(address: &str) -> Result<KillOnDrop> {
    let child = Command::new("ip")
        .args(["netns", "exec", "pod", "guest", "serve"])
        .args(["--listen", &format!("{address}:8080"), "--name", address])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("ip netns exec")?;
    Ok(KillOnDrop(child))
}

/// Reads how many bytes this guest has sent and received.
pub(crate) fn bytes_on_the_wire() -> Result<u64> {
    ["rx_bytes", "tx_bytes"]
        .into_iter()
        .map(|name| {
            let path = format!("/sys/class/net/{LINK}/statistics/{name}");
            let text = fs::read_to_string(&path).with_context(|| path.clone())?;
            text.trim().parse::<u64>().context(path)
        })
        .sum()
}
