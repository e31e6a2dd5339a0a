//! `guest demo`: the main job of the project, end to end in one kernel.
//!
//! The guest is node n1. Other nodes and all pods are network namespaces; the agent is the real
//! one, fed with a copy of an example. A client pod on n1 sends real connections, first at rest,
//! then while endpoints leave and come back. What happened goes to the host, which draws and
//! judges it.

mod agent;
mod kernel;
mod pods;
mod shop;
mod world;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use guest_wire::{Change, Endpoint, Load, Picture, Record, View};

use agent::Agent;
use pods::{Background, Pods};
use shop::Shop;

use crate::output::print_record;

/// How long the agent may take from a change of a file to the kernel.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the load goes on before a change, and after the kernel has followed it.
const AROUND: Duration = Duration::from_millis(400);

/// Options of `guest demo`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The example to run.
    #[arg(long, default_value = "/examples/shop")]
    cluster: PathBuf,
    /// Connections behind each picture.
    #[arg(long, default_value_t = 1000)]
    connections: u64,
}

/// Runs the demo.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut demo = Demo::prepare(args)?;
    let result = demo.play();
    if result.is_err() {
        demo.agent.show_log();
    }
    result.map(|()| ExitCode::SUCCESS)
}

/// The running demo.
struct Demo {
    shop: Shop,
    view: View,
    /// Every endpoint of the whole example.
    all: Vec<Endpoint>,
    pods: Pods,
    agent: Agent,
    connections: u64,
}

impl Demo {
    /// Makes the world, and starts the agent in it.
    fn prepare(args: &Args) -> anyhow::Result<Self> {
        let shop = Shop::copy(&args.cluster)?;
        let view = render(&shop.folder())?;
        progress(&format!(
            "making {} pods in three zones",
            view.endpoints().count()
        ))?;
        world::build(&view)?;
        let mut pods = Pods::default();
        for endpoint in view.endpoints() {
            pods.start(endpoint.address())?;
        }
        progress("starting the agent")?;
        let agent = Agent::start(&shop.folder())?;
        kernel::wait_for(&view, PATIENCE).inspect_err(|_error| agent.show_log())?;
        Ok(Self {
            shop,
            all: view.endpoints().cloned().collect(),
            view,
            pods,
            agent,
            connections: args.connections,
        })
    }

    /// The four acts.
    fn play(&mut self) -> anyhow::Result<()> {
        self.picture()?;
        let here = self.view.on(world::HERE);
        self.leave("The pod on the client's node leaves", &here)?;
        let zone = self.view.in_zone(world::ZONE_HERE);
        self.leave("The client's whole zone leaves", &zone)?;
        self.come_back("Both come back")?;
        Self::proof()
    }

    /// Takes `leaving` out of the cluster under load; their processes end once they are drained.
    fn leave(&mut self, what: &str, leaving: &[SocketAddr]) -> anyhow::Result<()> {
        if leaving.is_empty() {
            bail!("{what}: the example has no such endpoint");
        }
        progress("changing the cluster under load")?;
        let next = self.shop.without(leaving)?;
        self.change(what, &next, |pods| {
            kernel::wait_for_drained(leaving, PATIENCE)?;
            pods.stop(leaving)
        })
    }

    /// Brings everything back under load: the processes first, as a kubelet would.
    fn come_back(&mut self, what: &str) -> anyhow::Result<()> {
        progress("changing the cluster under load")?;
        let next = self.shop.whole()?;
        for endpoint in render(&next)?.endpoints() {
            self.pods.start(endpoint.address())?;
        }
        self.change(what, &next, |_pods| Ok(()))
    }

    /// Puts the cluster of the folder `next` in place under load, waits for the kernel, does
    /// `afterwards`, and tells what the client noticed.
    fn change(
        &mut self,
        what: &str,
        next: &Path,
        afterwards: impl FnOnce(&mut Pods) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let view = render(next)?;
        let client = Background::start(self.view.target())?;
        std::thread::sleep(AROUND);
        let began = Instant::now();
        self.shop.install(next)?;
        kernel::wait_for(&view, PATIENCE)?;
        let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
        afterwards(&mut self.pods)?;
        std::thread::sleep(AROUND);
        let load = Load::from(&client.stop()?);
        self.view = view;
        print_record(&Record::Change(Change {
            what: what.to_owned(),
            milliseconds,
            load,
        }))?;
        self.picture()
    }

    /// Sends the connections and tells who answered.
    fn picture(&self) -> anyhow::Result<()> {
        progress(&format!("sending {} connections", self.connections))?;
        let tally = pods::measure(self.view.target(), self.connections)?;
        let table = kernel::read(self.view.target())?;
        let there: Vec<SocketAddr> = self.view.endpoints().map(Endpoint::address).collect();
        let gone = |endpoint: &&Endpoint| !there.contains(&endpoint.address());
        let absent: Vec<&Endpoint> = self.all.iter().filter(gone).collect();
        let picture = Picture::new(world::HERE, &self.view, &table, &tally, &absent);
        print_record(&Record::Picture(picture))
    }

    /// What `ipvsadm`, which knows nothing of us, says the kernel holds.
    fn proof() -> anyhow::Result<()> {
        print_record(&Record::Proof {
            command: "ipvsadm -Ln".to_owned(),
            text: world::shell("ipvsadm -Ln")?,
        })
    }
}

/// What the agent's program, without a kernel, asks of this node for the cluster in `folder`.
fn render(folder: &Path) -> anyhow::Result<View> {
    let done = Command::new("ipvs-topo")
        .args(["render", "--node", world::HERE, "-o", "json", "--cluster"])
        .arg(folder)
        .output()
        .context("cannot start `ipvs-topo render`")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("`ipvs-topo render`: {said}");
    }
    let views = View::all(&done.stdout).context("`ipvs-topo render -o json` changed")?;
    let mut views = views.into_iter();
    match (views.next(), views.next()) {
        (Some(view), None) => Ok(view),
        _ => bail!("the demo needs an example with exactly one virtual server"),
    }
}

fn progress(text: &str) -> anyhow::Result<()> {
    print_record(&Record::Progress {
        text: text.to_owned(),
    })
}
