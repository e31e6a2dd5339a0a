//! Measures what rolling updates cost a bare loop that deletes every replaced real server immediately.
//!
//! The cost grows with time. IPVS keeps a deleted real server in its trash for two to three minutes, and walks the whole
//! trash when a real server is added (`ip_vs_trash_get_dest` of `net/netfilter/ipvs/ip_vs_ctl.c`).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command as Process;

use anyhow::{Context as _, Result, ensure};
use ipvs_netlink::{Client, Command, Destination, Protocol, Service, ServiceId};

use super::roll;
use crate::bench::bare_socket::{BareSocket, EncodedDatagram};
use crate::bench::{namespace, process};

/// The network namespace for the bare loop's own IPVS table.
const NAMESPACE: &str = "eager";
/// The port of every endpoint.
const PORT: u16 = 8080;
/// 10.96.0.0, the range of the virtual servers.
const FIRST: u32 = 0x0a60_0000;

/// `guest bench replace`: replaces all real servers of one virtual server after the other.
#[derive(clap::Args)]
pub(crate) struct ReplaceArgs {
    /// Number of virtual servers.
    #[arg(long)]
    services: u32,
    /// Number of real servers of each.
    #[arg(long)]
    endpoints: u32,
    /// Number of replacements, each of all real servers of one virtual server.
    #[arg(long)]
    changes: u32,
}

impl ReplaceArgs {
    /// Returns the CPU time of the bare loop, in seconds.
    pub(crate) fn replace(&self) -> Result<f64> {
        namespace::prepare()?;
        let client = Client::open()?;
        let mut sequence = 1;
        let mut datagrams = |commands: &[Command]| {
            let datagrams = client.encode(commands, sequence).into_iter();
            let datagrams: Vec<_> = datagrams.map(EncodedDatagram::new).collect();
            sequence = datagrams
                .last()
                .map_or(sequence, |datagram| datagram.last + 1);
            datagrams
        };
        let first: Vec<Command> = (0..self.services)
            .flat_map(|service| self.created(service))
            .collect();
        let first = datagrams(&first);
        let changes: Vec<EncodedDatagram> = (0..self.changes)
            .flat_map(|change| self.replaced(change))
            .flat_map(|commands| datagrams(&commands))
            .collect();
        let mut bare = BareSocket::open()?;
        bare.send(&first)?;
        let before = process::read(std::process::id())?;
        bare.send(&changes)?;
        let used = process::read(std::process::id())?.since(before);
        Ok(used.first().as_secs_f64())
    }

    fn created(&self, service: u32) -> Vec<Command> {
        let id = id(service);
        let reals = self.addresses(service, 0);
        let reals = reals.map(|address| Command::NewDest(id, Destination::new(address, PORT, 1)));
        std::iter::once(Command::NewService(Service::new(id, "wrr")))
            .chain(reals)
            .collect()
    }

    /// Encodes the commands that the agent sends for a few replaced endpoints: adds the new real servers and sets the
    /// weight of the old ones to 0; then deletes these.
    fn replaced(&self, change: u32) -> [Vec<Command>; 2] {
        let (service, round) = (change % self.services, change / self.services);
        let id = id(service);
        let server = |address, weight| Destination::new(address, PORT, weight);
        let new = self.addresses(service, round + 1);
        let new = new.map(|address| Command::NewDest(id, server(address, 1)));
        let weightless = self.addresses(service, round);
        let weightless = weightless.map(|address| Command::SetDest(id, server(address, 0)));
        let gone = self.addresses(service, round);
        let gone = gone.map(|address| Command::DelDest(id, SocketAddr::new(address, PORT)));
        [new.chain(weightless).collect(), gone.collect()]
    }

    fn addresses(&self, service: u32, round: u32) -> impl Iterator<Item = IpAddr> {
        let pods = service * self.endpoints..(service + 1) * self.endpoints;
        pods.map(move |pod| roll::address(pod, round).into())
    }
}

fn id(service: u32) -> ServiceId {
    let address = Ipv4Addr::from_bits(FIRST + 1 + service);
    ServiceId::address(Protocol::TCP, address.into(), 80)
}

/// Runs the bare loop in its own network namespace and returns its CPU time in seconds.
pub(super) fn measure(services: u32, endpoints: u32, changes: u32) -> Result<f64> {
    let added = Process::new("ip")
        .args(["netns", "add", NAMESPACE])
        .status()?;
    ensure!(added.success(), "`ip netns add {NAMESPACE}` failed");
    let output = Process::new("ip")
        .args(["netns", "exec", NAMESPACE, "guest", "bench", "replace"])
        .arg(format!("--services={services}"))
        .arg(format!("--endpoints={endpoints}"))
        .arg(format!("--changes={changes}"))
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`guest bench replace`: {errors}");
    said.trim()
        .parse()
        .with_context(|| format!("`guest bench replace` said: {said}"))
}
