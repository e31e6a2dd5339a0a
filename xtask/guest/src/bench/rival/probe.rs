//! A Service with one endpoint that is moved, and the time until new connections reach the new place.
//!
//! Looking at the traffic disturbs no proxy; looking at the kernel's tables would.

use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::api::Api;

/// The cluster IP and port of the Service, and the two places of its endpoint: as `kubernetes fill` has them.
const SERVICE: &str = "10.96.0.80:80";
const PLACES: [&str; 2] = ["10.244.0.2", "10.244.0.3"];
/// The link that QEMU gives this guest, and what its user-mode network expects behind it.
const LINK: &str = "eth0";
const PAUSE: Duration = Duration::from_millis(5);
const LIMIT: Duration = Duration::from_secs(300);

/// What prepares the network: the way to the host, and a pod with two addresses.
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

/// The probed Service.
pub(crate) struct Probe {
    api: Api,
    service: SocketAddr,
    /// Where the endpoint is, and where it goes next.
    places: [&'static str; 2],
    _servers: Vec<Server>,
}

impl Probe {
    /// Prepares the network and the two places, and moves the endpoint to the first.
    pub(crate) fn prepare(api: Api) -> Result<Self> {
        let status = Command::new("sh").args(["-ec", SCRIPT]).status()?;
        ensure!(status.success(), "the network cannot be prepared");
        let servers = PLACES
            .into_iter()
            .map(Server::start)
            .collect::<Result<_>>()?;
        let [first, _] = PLACES;
        api.set_endpoints("probe", &[first.to_owned()])?;
        Ok(Self {
            api,
            service: SERVICE.parse()?,
            places: PLACES,
            _servers: servers,
        })
    }

    /// Moves the endpoint; the time from the API server's answer until a new connection reaches the new place.
    pub(crate) fn flip(&mut self) -> Result<Duration> {
        self.places.reverse();
        let [place, _] = self.places;
        self.api.set_endpoints("probe", &[place.to_owned()])?;
        let begin = Instant::now();
        while self.answer().as_deref() != Some(place) {
            if begin.elapsed() > LIMIT {
                bail!("new connections did not reach {place} within {LIMIT:?}");
            }
            sleep(PAUSE);
        }
        Ok(begin.elapsed())
    }

    /// Which place answers a new connection.
    fn answer(&self) -> Option<String> {
        let mut stream = TcpStream::connect_timeout(&self.service, Duration::from_secs(1)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.trim().to_owned())
    }
}

/// One place of the endpoint: answers with its own address. Killed when dropped.
struct Server(Child);

impl Server {
    fn start(address: &str) -> Result<Self> {
        let child = Command::new("ip")
            .args(["netns", "exec", "pod", "guest", "serve"])
            .args(["--listen", &format!("{address}:8080"), "--name", address])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("ip netns exec")?;
        Ok(Self(child))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Dead already is as good as killed.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Bytes that this guest sent and received so far.
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
