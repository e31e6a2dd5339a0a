//! `guest demo`: runs the agent end to end in one kernel.
//!
//! The guest is node n1. Other nodes and all pods are network namespaces. The real agent reads a copy of an example. A
//! client pod on n1 opens connections, first without changes, then while endpoints leave and come back. At the end
//! clients on two nodes ask for the name of a headless Service. The guest reports to the host, which prints and verifies
//! the results.

mod agent;
mod command;
mod example_cluster;
mod headless;
mod kernel;
mod network;
mod pods;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use guest_wire::{ClusterChange, Distribution, Endpoint, LoadSummary, Record, View};

use agent::Agent;
use command::ipvs_topo;
use example_cluster::ExampleCluster;
use pods::{Background, Pods};

use crate::output::print_record;

/// Limit for the agent from a changed file to the changed kernel.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long the client sends before a change, and after the kernel has followed it.
const LOAD_MARGIN: Duration = Duration::from_millis(400);

/// Options of `guest demo`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The example to run.
    #[arg(long, default_value = "/examples/shop")]
    cluster: PathBuf,
    /// Connections for each measurement.
    #[arg(long, default_value_t = 1000)]
    connections: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut demo = Demo::prepare(args)?;
    let result = demo.run();
    if result.is_err() {
        demo.agent.show_log();
    }
    result.map(|()| ExitCode::SUCCESS)
}

struct Demo {
    example: ExampleCluster,
    view: View,
    /// Every endpoint of the whole example.
    all: Vec<Endpoint>,
    pods: Pods,
    agent: Agent,
    connections: u64,
}

impl Demo {
    /// Creates nodes and pods, and starts the agent.
    fn prepare(args: &Args) -> anyhow::Result<Self> {
        let example = ExampleCluster::copy(&args.cluster)?;
        let view = render(&example.folder())?;
        progress(&format!(
            "making {} pods in three zones",
            view.endpoints().count()
        ))?;
        network::build(&view)?;
        let mut pods = Pods::default();
        for endpoint in view.endpoints() {
            pods.start(endpoint.address())?;
        }
        progress("starting the agent")?;
        let agent = Agent::start(&example.folder())?;
        kernel::wait_for(&view, TIMEOUT).inspect_err(|_error| agent.show_log())?;
        Ok(Self {
            example,
            all: view.endpoints().cloned().collect(),
            view,
            pods,
            agent,
            connections: args.connections,
        })
    }

    /// Measures, removes the near pod and then its zone, and restores both.
    fn run(&mut self) -> anyhow::Result<()> {
        self.measure()?;
        let here = self.view.on(network::NODE);
        self.remove("The pod on the client's node leaves", &here)?;
        let zone = self.view.in_zone(network::ZONE);
        self.remove("The client's whole zone leaves", &zone)?;
        self.come_back("Both come back")?;
        Self::show_ipvsadm()?;
        self.ask_for_a_name()
    }

    /// Reports which endpoints of a headless Service answer clients on two nodes.
    fn ask_for_a_name(&self) -> anyhow::Result<()> {
        progress("asking DNS on two nodes")?;
        let answers = headless::ask(&self.example.folder(), self.connections)?;
        print_record(&Record::NameAnswers { answers })
    }

    /// Removes the endpoints `leaving` under load, and stops their processes once they are drained.
    fn remove(&mut self, what: &str, leaving: &[SocketAddr]) -> anyhow::Result<()> {
        if leaving.is_empty() {
            bail!("{what}: the example has no such endpoint");
        }
        progress("changing the cluster under load")?;
        let next = self.example.without(leaving)?;
        self.change(what, &next, |pods| {
            kernel::wait_for_drained(leaving, TIMEOUT)?;
            pods.stop(leaving);
            Ok(())
        })
    }

    /// Restores everything under load: the processes first, as a kubelet does.
    fn come_back(&mut self, what: &str) -> anyhow::Result<()> {
        progress("changing the cluster under load")?;
        let next = self.example.whole()?;
        for endpoint in render(&next)?.endpoints() {
            self.pods.start(endpoint.address())?;
        }
        self.change(what, &next, |_pods| Ok(()))
    }

    /// Installs the cluster of the folder `next` under load, waits for the kernel, calls `afterwards`, and reports the
    /// client's requests.
    fn change(
        &mut self,
        what: &str,
        next: &Path,
        afterwards: impl FnOnce(&mut Pods) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let view = render(next)?;
        let client = Background::start(self.view.target())?;
        std::thread::sleep(LOAD_MARGIN);
        let began = Instant::now();
        self.example.install(next)?;
        kernel::wait_for(&view, TIMEOUT)?;
        let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
        afterwards(&mut self.pods)?;
        std::thread::sleep(LOAD_MARGIN);
        let load = LoadSummary::from(&client.stop()?);
        self.view = view;
        print_record(&Record::Change(ClusterChange {
            what: what.to_owned(),
            milliseconds,
            load,
        }))?;
        self.measure()
    }

    /// Opens the connections and reports which endpoints answered.
    fn measure(&self) -> anyhow::Result<()> {
        progress(&format!("sending {} connections", self.connections))?;
        let tally = pods::measure(self.view.target(), self.connections)?;
        let table = kernel::read(self.view.target())?;
        let there: Vec<SocketAddr> = self.view.endpoints().map(Endpoint::address).collect();
        let gone = |endpoint: &&Endpoint| !there.contains(&endpoint.address());
        let absent: Vec<&Endpoint> = self.all.iter().filter(gone).collect();
        let distribution = Distribution::new(network::NODE, &self.view, &table, &tally, &absent);
        print_record(&Record::Distribution(distribution))
    }

    /// Reports what `ipvsadm`, an independent program, prints.
    fn show_ipvsadm() -> anyhow::Result<()> {
        print_record(&Record::CommandOutput {
            command: "ipvsadm -Ln".to_owned(),
            text: network::shell("ipvsadm -Ln")?,
        })
    }
}

/// Runs `ipvs-topo render` for this node on the cluster in `folder`.
fn render(folder: &Path) -> anyhow::Result<View> {
    let words = ["render", "--node", network::NODE, "-o", "json", "--cluster"];
    let output = ipvs_topo(&words, folder)?;
    let views = View::all(&output).context("`ipvs-topo render -o json` changed")?;
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
