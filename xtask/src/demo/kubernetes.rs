//! `cargo xtask demo --kubernetes`: the manifests, unchanged, in the lab's cluster, with real pods on three nodes.

mod cluster;

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use guest_wire::table::weights;
use guest_wire::{Change, Load, Picture, Tally, View};

use super::draw;
use super::judge::{Expected, Judge};
use cluster::{Client, Cluster, Table};
use testbed::lab::{API_SERVER, NODES, Running};
use testbed::paths;
use testbed::vm::command::output;
use testbed::vm::progress::Step;

/// What has to be seen: after the second change (a zone's pod gone) and after the fourth (a zone
/// drained) everything is again as after the first. Each change crosses the API server, its
/// controllers and three emulated nodes, which takes 0.8 to 2 s on two idle processors; a minute is
/// for a machine that is busy with other things as well.
const EXPECTED: Expected = Expected {
    connections: 0,
    pictures: 6,
    same: &[(1, 3), (1, 5)],
    slowest_change: 60_000.0,
};

/// How long anything may take that has to happen in the end.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long the load goes on after the kernels have followed a change.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// The Service.
const SERVICE: &str = "shop/cart";

/// Its namespace, and that of the agents.
const SHOP: &str = "--namespace=shop";
const SYSTEM: &str = "--namespace=ipvs-topo-system";

/// Its pods, one in each zone.
const PODS: usize = 3;

/// Runs the demo in the lab that runs, or in a new one; `keep` leaves everything as it is in the end.
pub(super) fn run(connections: u64, keep: bool) -> anyhow::Result<Judge> {
    let (lab, is_ours) = match Running::find() {
        Some(lab) => (lab, false),
        None => (Running::start()?, true),
    };
    let cluster = Cluster { lab };
    let judge = Demo::prepare(&cluster, connections).and_then(Demo::play);
    if keep {
        cluster.lab.keep()?;
    } else if is_ours {
        cluster.lab.end()?;
    } else {
        cluster.kubectl(&["delete", "namespace", "shop", "--wait=false"])?;
    }
    judge
}

/// One node: its client, its agent, and what its kernel held last.
struct Place {
    node: &'static str,
    /// The UID of its client's pod.
    client: String,
    table: Table,
}

/// The running demo.
struct Demo<'a> {
    cluster: &'a Cluster,
    connections: u64,
    target: SocketAddr,
    places: Vec<Place>,
    judge: Judge,
}

impl<'a> Demo<'a> {
    /// Installs everything, and returns when every kernel serves.
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
        let places = NODES.into_iter().map(|node| {
            Ok(Place {
                node,
                client: cluster.pod([SHOP, "app=client"], node, "uid")?,
                table: Table::default(),
            })
        });
        let mut demo = Self {
            cluster,
            connections,
            target,
            places: places.collect::<anyhow::Result<_>>()?,
            judge: Judge::new(Expected {
                connections,
                ..EXPECTED
            }),
        };
        let step = Step::begin("waiting for every node's kernel");
        demo.wait_for_kernels(|_, now| weights(now).len() == PODS)?;
        step.done("");
        Ok(demo)
    }

    /// The acts.
    fn play(mut self) -> anyhow::Result<Judge> {
        self.picture()?;
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
                rollout(cluster, SHOP, "deployment/cart-z2")
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
        self.proofs()?;
        Ok(self.judge)
    }

    /// Does something under load, waits until every node's kernel is as `is_done` says, and tells what the clients noticed.
    fn change(
        &mut self,
        what: &str,
        act: impl FnOnce(&Cluster) -> anyhow::Result<String>,
        is_done: impl Fn(&Table, &Table) -> bool,
    ) -> anyhow::Result<()> {
        let step = Step::begin(format!("under load: {what}"));
        let places = self.places.iter();
        let clients = places.map(|place| {
            self.cluster
                .keep_sending([place.node, &place.client], self.target)
        });
        let clients = clients.collect::<anyhow::Result<Vec<Client>>>()?;
        act(self.cluster)?;
        let began = Instant::now();
        self.wait_for_kernels(is_done)?;
        let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
        std::thread::sleep(AFTERWARDS);
        let mut sum = Tally::default();
        for client in clients {
            let tally = client.finish()?;
            sum.seconds = sum.seconds.max(tally.seconds);
            sum.add(tally);
        }
        step.done("");
        let change = Change {
            what: what.to_owned(),
            milliseconds,
            load: Load::from(&sum),
        };
        anstream::println!("{}", draw::change(&change));
        self.judge.change(change);
        self.picture()
    }

    /// Waits for the kernel of every node, given what it held before and holds now.
    fn wait_for_kernels(&mut self, is_done: impl Fn(&Table, &Table) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        for place in &mut self.places {
            place.table = loop {
                let now = self.cluster.table(place.node, self.target)?;
                if is_done(&place.table, &now) {
                    break now;
                }
                if Instant::now() > deadline {
                    bail!(
                        "after {PATIENCE:?} the kernel of {} holds {now:?}",
                        place.node
                    );
                }
            };
        }
        Ok(())
    }

    /// Sends the connections from every node, and tells who answered.
    fn picture(&mut self) -> anyhow::Result<()> {
        let step = Step::begin(format!(
            "sending {} connections from each node",
            self.connections
        ));
        let views = self.settled_views()?;
        let places = self.places.iter();
        let clients = places.map(|place| {
            self.cluster
                .send([place.node, &place.client], self.target, self.connections)
        });
        let clients = clients.collect::<anyhow::Result<Vec<Client>>>()?;
        let mut columns = Vec::new();
        for ((place, view), client) in self.places.iter().zip(&views).zip(clients) {
            let tally = client.finish()?;
            columns.push(Picture::new(place.node, view, &place.table, &tally, &[]));
        }
        step.done("");
        anstream::println!("{}", draw::picture(&columns));
        self.judge.picture(columns);
        Ok(())
    }

    /// What the agent of each node wants, once its kernel holds it: one that has begun to change
    /// may be read between two of its agent's messages.
    fn settled_views(&mut self) -> anyhow::Result<Vec<View>> {
        let deadline = Instant::now() + PATIENCE;
        let places = self.places.iter_mut();
        let views = places.map(|place| {
            loop {
                let view = self.cluster.view(place.node, SERVICE)?;
                place.table = self.cluster.table(place.node, self.target)?;
                if view.weights() == weights(&place.table) {
                    return Ok(view);
                }
                if Instant::now() > deadline {
                    bail!(
                        "the agent of {} wants {:?}, its kernel holds {:?}",
                        place.node,
                        view.weights(),
                        place.table
                    );
                }
            }
        });
        views.collect()
    }

    /// What the agent of a node answers, and what `ipvsadm`, which knows nothing of it, says.
    fn proofs(&mut self) -> anyhow::Result<()> {
        let place = self.places.first().context("no node")?;
        let agents = [SYSTEM, "app.kubernetes.io/name=ipvs-topo-agent"];
        let agent = self.cluster.pod(agents, place.node, "name")?;
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
            let what = format!("The agent of {} answers", place.node);
            let command = format!("ipvs-topo {word} {SERVICE}");
            anstream::println!("{}", draw::proof(&what, &command, &text));
            self.judge.proof(text);
        }
        let command = format!("ipvsadm -Ln -t {}", self.target);
        let text = self.cluster.lab.output(place.node, &command)?;
        anstream::println!("{}", draw::proof(draw::KERNEL_VIEW, &command, &text));
        self.judge.proof(text);
        Ok(())
    }
}

/// The manifests of this project, then the shop; returns when every pod of both is ready.
fn install(cluster: &Cluster) -> anyhow::Result<()> {
    let step = Step::begin("kubectl apply -k manifests/base");
    let base = paths::root().join("manifests/base");
    let namespace = base.join("namespace.yaml");
    cluster.kubectl(&["apply", "-f", &namespace.to_string_lossy()])?;
    cluster.kubectl_with(API_SERVER, &["apply", "-f", "-"])?;
    cluster.kubectl(&["apply", "-k", &base.to_string_lossy()])?;
    let mut shop = include_str!("kubernetes/shop.yaml").to_owned();
    for zone in ["z1", "z2", "z3"] {
        shop.push_str(&include_str!("kubernetes/cart.yaml").replace("ZONE", zone));
    }
    let shop = shop.replace("VERSION", env!("CARGO_PKG_VERSION"));
    cluster.kubectl_with(&shop, &["apply", "-f", "-"])?;
    step.done("");
    for (namespace, what) in [
        (SYSTEM, "daemonset/ipvs-topo-agent"),
        (SYSTEM, "deployment/ipvs-topo-controller"),
        (SHOP, "daemonset/client"),
        (SHOP, "deployment/cart-z1"),
        (SHOP, "deployment/cart-z2"),
        (SHOP, "deployment/cart-z3"),
    ] {
        let step = Step::begin(format!("waiting for {what}"));
        rollout(cluster, namespace, what)?;
        step.done("");
    }
    Ok(())
}

fn rollout(cluster: &Cluster, namespace: &str, what: &str) -> anyhow::Result<String> {
    cluster.kubectl(&["rollout", "status", namespace, what, "--timeout=600s"])
}

fn scale(cluster: &Cluster, replicas: &str) -> anyhow::Result<String> {
    cluster.kubectl(&["scale", SHOP, "deployment/cart-z2", "--replicas", replicas])
}

/// A time as Kubernetes writes it.
fn in_an_hour() -> anyhow::Result<String> {
    let mut date = Command::new("date");
    let time = output(date.args(["--utc", "--date=+1 hour", "+%FT%TZ"]))?;
    Ok(time.trim().to_owned())
}
