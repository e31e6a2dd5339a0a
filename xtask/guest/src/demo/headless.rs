//! The act about DNS: clients on two nodes ask for the plain name of a headless Service, and connect to the first address.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use guest_wire::{AnswerView, Distribution, EndpointHits, LoadSummary};

use super::command::ipvs_topo;
use super::network::{self, DNS_CLIENTS, DnsClient};
use super::pods;
use crate::child::KillOnDrop;
use crate::lookup;

/// The Service and its endpoints, which are pods of the example.
const OBJECTS: &str = include_str!("headless.yaml");

const SERVICE: &str = "shop/cart-pods";

/// The port on which its pods listen.
const PORT: u16 = 8080;

/// The plain name of the Service.
const NAME: &str = "cart-pods.shop.svc.cluster.local";

/// Limit for a server to answer its first question.
const START: Duration = Duration::from_secs(60);

/// How long to wait for one answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts a DNS server on the node of each client, and returns which endpoints answered the client's connections.
pub(super) fn ask(example: &Path, connections: u64) -> anyhow::Result<Vec<Distribution>> {
    let folder = write_cluster(example)?;
    let clients = DNS_CLIENTS.iter();
    let asked = clients.map(|client| {
        let _server = start_server(client, &folder)?;
        distribution(client, &folder, connections)
    });
    asked.collect()
}

/// Writes the Nodes of the example and the headless Service to a folder.
fn write_cluster(example: &Path) -> anyhow::Result<PathBuf> {
    let folder = std::env::temp_dir().join("headless");
    fs::create_dir_all(&folder)?;
    fs::copy(example.join("nodes.yaml"), folder.join("nodes.yaml"))?;
    fs::write(folder.join("headless.yaml"), OBJECTS)?;
    Ok(folder)
}

/// Starts `ipvs-topo dns` on the client's node, and waits until it answers.
fn start_server(client: &DnsClient, folder: &Path) -> anyhow::Result<KillOnDrop> {
    let server = network::on_node(client.node, "ipvs-topo")
        .args(["dns", "--node", client.node, "--listen"])
        .arg(client.name_server.to_string())
        .arg("--cluster")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start `ipvs-topo dns`")?;
    let server = KillOnDrop(server);
    let deadline = Instant::now() + START;
    while lookup::first_address(NAME, client.name_server, PATIENCE).is_err() {
        if Instant::now() > deadline {
            bail!("the DNS server on {} does not answer", client.node);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(server)
}

/// Connects to the first address of an answer `connections` times.
fn distribution(
    client: &DnsClient,
    folder: &Path,
    connections: u64,
) -> anyhow::Result<Distribution> {
    let view = explain(client, folder)?;
    let tally = pods::measure_name(client, NAME, PORT, connections)?;
    let servers = view.endpoints().iter().map(|endpoint| {
        let address = SocketAddr::new(endpoint.address().ip(), PORT).to_string();
        EndpointHits {
            node: endpoint.node().to_owned(),
            zone: endpoint.zone().to_owned(),
            level: endpoint.level().map(str::to_owned),
            weight: None,
            wanted: view.wanted(endpoint),
            hits: tally.hits(&address),
            address,
        }
    });
    Ok(Distribution {
        client: client.node.to_owned(),
        service: view.service().to_owned(),
        address: NAME.to_owned(),
        policy: view.policy().to_owned(),
        load: LoadSummary::from(&tally),
        servers: servers.collect(),
    })
}

/// Runs `ipvs-topo explain` for clients of the node.
fn explain(client: &DnsClient, folder: &Path) -> anyhow::Result<AnswerView> {
    let words = [
        "explain",
        SERVICE,
        "--dns",
        "-o",
        "json",
        "--node",
        client.node,
        "--cluster",
    ];
    let mut views = AnswerView::all(&ipvs_topo(&words, folder)?)
        .context("`ipvs-topo explain --dns -o json` changed")?;
    views.pop().context("the Service has no endpoint")
}
