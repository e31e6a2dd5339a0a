//! `cargo xtask demo --kubernetes`: applies the unchanged manifests in the lab, with real pods on
//! three nodes.

mod cluster;
mod outside;

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use guest_wire::proc_ip_vs::weights;
use guest_wire::{ClusterChange, Distribution, LoadSummary, RequestCounts, View};

use super::draw;
use super::verify::{Expectations, Verifier};
use cluster::{Cluster, LoadClient, SHOP, TIMEOUT, Table};
use outside::Outsider;
use testbed::lab::{NODES, RunningLab};
use testbed::vm::command::output;
use testbed::vm::progress::ProgressLine;

/// The expected result: the weights after the third and the fifth change equal those after the
/// first. A change passes the API server, its controllers and three emulated nodes, which takes 0.8
/// to 2 s on two idle processors; the limit is for busy machines.
const EXPECTED: Expectations = Expectations {
    connections: 0,
    distributions: 6,
    same: &[(1, 3), (1, 5)],
    slowest_change: 60_000.0,
    dns_clients: 0,
};

/// How long the clients send after the kernels have followed a change.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// The Service.
const SERVICE: &str = "shop/cart";

/// The namespace of the agents.
const SYSTEM: &str = "--namespace=ipvs-topo-system";

/// Its pods, one in each zone.
const PODS: usize = 3;

/// Runs the demo in the running lab or a new one; `keep` leaves everything running.
pub(super) fn run(connections: u64, keep: bool) -> anyhow::Result<Verifier> {
    let (lab, is_ours) = match RunningLab::find() {
        Some(lab) => (lab, false),
        None => (RunningLab::start()?, true),
    };
    let cluster = Cluster { lab };
    let verifier = Demo::prepare(&cluster, connections).and_then(Demo::play);
    if keep {
        cluster.lab.keep()?;
    } else if is_ours {
        cluster.lab.end()?;
    } else {
        cluster.kubectl(&["delete", "namespace", "shop", "--wait=false"])?;
    }
    verifier
}

/// A node of the demo.
struct DemoNode {
    name: &'static str,
    /// The UID of the client pod on it.
    client: String,
    table: Table,
}

struct Demo<'a> {
    cluster: &'a Cluster,
    connections: u64,
    target: SocketAddr,
    nodes: Vec<DemoNode>,
    verifier: Verifier,
}

impl<'a> Demo<'a> {
    /// Installs everything, and waits until every kernel serves.
    fn prepare(cluster: &'a Cluster, connections: u64) -> anyhow::Result<Self> {
        install(cluster)?;
        let address = [
            "get",
            "service",
            "cart",
            SHOP,
            "-o=jsonpath={.spec.clusterIP}",
        ];
        let target = SocketAddr::new(cluster.kubectl(&address)?.parse()?, 80);
        let nodes = NODES.into_iter().map(|node| {
            Ok(DemoNode {
                name: node,
                client: cluster.pod([SHOP, "app=client"], node, "uid")?,
                table: Table::default(),
            })
        });
        let mut demo = Self {
            cluster,
            connections,
            target,
            nodes: nodes.collect::<anyhow::Result<_>>()?,
            verifier: Verifier::new(Expectations {
                connections,
                ..EXPECTED
            }),
        };
        let step = ProgressLine::begin("waiting for every node's kernel");
        demo.wait_for_kernels(|_, now| weights(now).len() == PODS)?;
        step.done("");
        Ok(demo)
    }

    /// Runs the changes.
    fn play(mut self) -> anyhow::Result<Verifier> {
        self.distribution()?;
        let annotate = [
            "annotate",
            "service",
            "cart",
            SHOP,
            "topology.ipvs-topo.io/weights=zone=50,*=50",
            "--overwrite",
        ];
        self.change(
            "kubectl annotate service: half of it may leave the zone",
            |cluster| cluster.kubectl(&annotate),
            |before, now| weights(before) != weights(now) && weights(now).len() == PODS,
        )?;
        self.change(
            "Zone z2 loses its pod",
            |cluster| scale(cluster, "0"),
            |_, now| weights(now).len() == PODS - 1,
        )?;
        self.change(
            "Zone z2 gets a new pod",
            |cluster| {
                scale(cluster, "1")?;
                crate::cluster::roll_out(&cluster.lab, SHOP, "deployment/cart-z2")
            },
            |_, now| weights(now).len() == PODS,
        )?;
        let drain = include_str!("kubernetes/drain.yaml").replace("EXPIRY", &in_an_hour()?);
        self.change(
            "A TopologyDrain empties zone z3",
            |cluster| cluster.kubectl_with(&drain, &["apply", "-f", "-"]),
            |_, now| weights(now).len() == PODS - 1,
        )?;
        self.change(
            "The TopologyDrain is deleted",
            |cluster| cluster.kubectl(&["delete", "topologydrain", "z3"]),
            |_, now| weights(now).len() == PODS,
        )?;
        self.command_outputs()?;
        let visits = Outsider::prepare(self.cluster)?.visit_all()?;
        anstream::println!("{}", draw::visits(&visits));
        self.verifier.visits(visits);
        for node in NODES {
            let parts = self.cluster.kube_proxy_parts(node)?;
            self.verifier.kube_proxy_parts(node, parts);
        }
        anstream::println!("{}", draw::WITHOUT_KUBE_PROXY);
        Ok(self.verifier)
    }

    /// Calls `act` under load, waits until `is_done` holds for every node's kernel, and prints the
    /// clients' requests.
    fn change(
        &mut self,
        what: &str,
        act: impl FnOnce(&Cluster) -> anyhow::Result<String>,
        is_done: impl Fn(&Table, &Table) -> bool,
    ) -> anyhow::Result<()> {
        let step = ProgressLine::begin(format!("under load: {what}"));
        let nodes = self.nodes.iter();
        let clients = nodes.map(|node| {
            self.cluster
                .keep_sending([node.name, &node.client], self.target)
        });
        let clients = clients.collect::<anyhow::Result<Vec<LoadClient>>>()?;
        act(self.cluster)?;
        let began = Instant::now();
        self.wait_for_kernels(is_done)?;
        let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
        std::thread::sleep(AFTERWARDS);
        let mut sum = RequestCounts::default();
        for client in clients {
            let tally = client.finish()?;
            sum.seconds = sum.seconds.max(tally.seconds);
            sum.add(tally);
        }
        step.done("");
        let change = ClusterChange {
            what: what.to_owned(),
            milliseconds,
            load: LoadSummary::from(&sum),
        };
        anstream::println!("{}", draw::change(&change));
        self.verifier.change(change);
        self.distribution()
    }

    /// Waits until `is_done` holds for the tables before and now of every node's kernel.
    fn wait_for_kernels(&mut self, is_done: impl Fn(&Table, &Table) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        for node in &mut self.nodes {
            node.table = loop {
                let now = self.cluster.table(node.name, self.target)?;
                if is_done(&node.table, &now) {
                    break now;
                }
                if Instant::now() > deadline {
                    bail!(
                        "after {TIMEOUT:?} the kernel of {} holds {now:?}",
                        node.name
                    );
                }
            };
        }
        Ok(())
    }

    /// Opens the connections from every node, and prints which pods answered.
    fn distribution(&mut self) -> anyhow::Result<()> {
        let step = ProgressLine::begin(format!(
            "sending {} connections from each node",
            self.connections
        ));
        let views = self.settled_views()?;
        let nodes = self.nodes.iter();
        let clients = nodes.map(|node| {
            self.cluster
                .send([node.name, &node.client], self.target, self.connections)
        });
        let clients = clients.collect::<anyhow::Result<Vec<LoadClient>>>()?;
        let mut columns = Vec::new();
        for ((node, view), client) in self.nodes.iter().zip(&views).zip(clients) {
            let tally = client.finish()?;
            columns.push(Distribution::new(node.name, view, &node.table, &tally, &[]));
        }
        step.done("");
        anstream::println!("{}", draw::distributions(&columns));
        self.verifier.distribution(columns);
        Ok(())
    }

    /// Reads the view of each node's agent, once its kernel has the same weights: a kernel may be
    /// read between two messages of the agent.
    fn settled_views(&mut self) -> anyhow::Result<Vec<View>> {
        let deadline = Instant::now() + TIMEOUT;
        let nodes = self.nodes.iter_mut();
        let views = nodes.map(|node| {
            loop {
                let view = self.cluster.view(node.name, SERVICE)?;
                node.table = self.cluster.table(node.name, self.target)?;
                if view.weights() == weights(&node.table) {
                    return Ok(view);
                }
                if Instant::now() > deadline {
                    bail!(
                        "the agent of {} wants {:?}, its kernel holds {:?}",
                        node.name,
                        view.weights(),
                        node.table
                    );
                }
            }
        });
        views.collect()
    }

    /// Prints the answers of a node's agent, and the output of `ipvsadm`, an independent program.
    fn command_outputs(&mut self) -> anyhow::Result<()> {
        let node = self.nodes.first().context("no node")?;
        let agents = [SYSTEM, "app.kubernetes.io/name=ipvs-topo-agent"];
        let agent = self.cluster.pod(agents, node.name, "name")?;
        for word in ["status", "explain"] {
            let exec = [
                "exec",
                SYSTEM,
                &agent,
                "--",
                "/usr/bin/ipvs-topo",
                word,
                SERVICE,
            ];
            let text = self.cluster.kubectl(&exec)?;
            let what = format!("The agent of {} answers", node.name);
            let command = format!("ipvs-topo {word} {SERVICE}");
            anstream::println!("{}", draw::command_output(&what, &command, &text));
            self.verifier.command_output(text);
        }
        let command = format!("ipvsadm -Ln -t {}", self.target);
        let text = self.cluster.lab.output(node.name, &command)?;
        anstream::println!(
            "{}",
            draw::command_output(draw::KERNEL_VIEW, &command, &text)
        );
        self.verifier.command_output(text);
        Ok(())
    }
}

/// Applies the unchanged manifests of this project, then the shop, and waits until every pod is ready.
fn install(cluster: &Cluster) -> anyhow::Result<()> {
    crate::cluster::install(&cluster.lab, crate::cluster::BASE)?;
    let mut shop = include_str!("kubernetes/shop.yaml").to_owned();
    for zone in ["z1", "z2", "z3"] {
        shop.push_str(&include_str!("kubernetes/cart.yaml").replace("ZONE", zone));
    }
    let shop = shop.replace("VERSION", env!("CARGO_PKG_VERSION"));
    cluster.kubectl_with(&shop, &["apply", "-f", "-"])?;
    crate::cluster::wait_for_agents(&cluster.lab)?;
    for what in [
        "daemonset/client",
        "deployment/cart-z1",
        "deployment/cart-z2",
        "deployment/cart-z3",
    ] {
        crate::cluster::wait_for(&cluster.lab, SHOP, what)?;
    }
    Ok(())
}

fn scale(cluster: &Cluster, replicas: &str) -> anyhow::Result<String> {
    cluster.kubectl(&["scale", SHOP, "deployment/cart-z2", "--replicas", replicas])
}

/// Returns the time in an hour, as Kubernetes formats it.
fn in_an_hour() -> anyhow::Result<String> {
    let mut date = Command::new("date");
    let time = output(date.args(["--utc", "--date=+1 hour", "+%FT%TZ"]))?;
    Ok(time.trim().to_owned())
}
