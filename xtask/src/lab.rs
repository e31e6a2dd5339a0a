//! `cargo xtask lab`: a real Kubernetes cluster on this machine: a control plane and three nodes in QEMU guests.
//!
//! Everything runs inside a network namespace of its own, as nobody but the caller: no root, no
//! address and no port of this machine. Node n1 is in zone z1, and so on.

mod folder;
mod network;
mod node;
mod payload;
mod root;

use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::controlplane::program::{self, Version};
use crate::controlplane::site::Site;
use crate::controlplane::suite::{self, Suite};
use crate::controlplane::{self, parts};
use crate::vm::Lab as Machines;
use crate::vm::build::Profile;
use crate::vm::kernel::Line;
use crate::vm::progress::Step;
use folder::Folder;
use network::Network;

/// How long the nodes may take to be ready.
const PATIENCE: Duration = Duration::from_secs(600);

/// The nodes' names.
const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// Options of `cargo xtask lab`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Start it, and return when every node is ready.
    Up {
        /// The kernel of the nodes.
        #[arg(long, default_value = "6.12")]
        kernel: Line,
        /// How the images of our own programs are built.
        #[arg(long, value_enum, default_value = "guest")]
        profile: Profile,
    },
    /// End it and remove what it kept.
    Down,
    /// Show the nodes and the pods.
    Status,
    /// Run kubectl as its administrator.
    Kubectl {
        /// kubectl's own arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Start it, run the tests of every package that need it, and end it.
    Test(suite::Args),
    /// A shell on a node.
    Shell {
        /// The node's name.
        node: String,
    },
}

/// Does what was asked.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = Folder::here();
    match &args.what {
        What::Up { kernel, profile } => up(&folder, *kernel, *profile)?,
        What::Test(args) => return test(&Folder::of_test()?, args),
        What::Down => folder.end()?,
        What::Status => status(&folder)?,
        What::Kubectl { arguments } => {
            let mut kubectl = running(&folder)?.controlplane().kubectl()?;
            return Err(kubectl.args(arguments).exec().into());
        }
        What::Shell { node } => {
            let network = Network::of(&running(&folder)?.record()?.holder);
            return Err(node::shell(&network, node)?.exec().into());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts everything; on failure nothing is left but the consoles' last words in the error.
fn up(folder: &Folder, kernel: Line, profile: Profile) -> anyhow::Result<()> {
    if folder.is_running() {
        bail!("it runs already: `cargo xtask lab down` ends it");
    }
    folder.end()?;
    let machines = Machines::open()?;
    let root = root::make(&machines, kernel)?;
    let images = crate::image::write_all(&folder.images()?, profile)?;
    let program = program::build(Version::Newest)?;
    let network = Network::start(folder, &machines.tools, NODES.len())?;
    let started = start(
        folder,
        &network,
        &machines,
        &Guests { root, images },
        &program,
    );
    started.inspect_err(|_| {
        // The error that is told is the first one.
        drop(folder.end_processes());
    })
}

fn test(folder: &Folder, args: &suite::Args) -> anyhow::Result<ExitCode> {
    let suite = Suite::build("lab-tests", args)?;
    up(folder, Line::V6_12, Profile::Guest)?;
    let controlplane = folder.controlplane();
    let launch = Network::of(&folder.record()?.holder).launch().join(" ");
    let passed = suite.run(&[
        ("KUBECONFIG", controlplane.kubeconfig().into()),
        (
            "CONTROLPLANE_PROGRAM",
            controlplane.record()?.program.into(),
        ),
        ("LAB_LAUNCH", launch.into()),
        ("LAB_XTASK", std::env::current_exe()?.into()),
    ]);
    folder.end()?;
    Ok(ExitCode::from(u8::from(!passed?)))
}

/// What every guest boots from.
struct Guests {
    root: root::Root,
    images: Vec<std::path::PathBuf>,
}

fn start(
    folder: &Folder,
    network: &Network,
    machines: &Machines,
    guests: &Guests,
    program: &std::path::Path,
) -> anyhow::Result<()> {
    let names = NODES.map(str::to_owned).to_vec();
    let site = Site::with_nodes(network.launch(), network::OUTSIDE, names);
    let controlplane = folder.controlplane();
    controlplane.create(site, program, None)?;
    parts::start_all(&controlplane)?;
    let payload = payload::write(folder, &guests.images)?;
    for number in 1..=NODES.len() {
        let guest = node::start(folder, network, machines, &guests.root, &payload, number)?;
        folder.remember(&format!("n{number}"), guest)?;
    }
    wait_for_nodes(folder, &controlplane)?;
    network.route_pods(&machines.tools, &pod_ranges(&controlplane)?)
}

fn wait_for_nodes(
    folder: &Folder,
    controlplane: &controlplane::folder::Folder,
) -> anyhow::Result<()> {
    let step = Step::begin("booting the nodes, until each is Ready");
    let deadline = Instant::now() + PATIENCE;
    let mut shown = 0;
    loop {
        let ready = ready_nodes(controlplane)?;
        if ready == NODES.len() {
            step.done("");
            return Ok(());
        }
        if ready > shown {
            step.report(&format!("{ready} of {}", NODES.len()));
            shown = ready;
        }
        if let Some(gone) = folder.gone()? {
            bail!(
                "node {gone} ended by itself:\n{}",
                node::last_words(folder, &gone)
            );
        }
        if Instant::now() > deadline {
            let words = NODES.map(|name| format!("{name}:\n{}", node::last_words(folder, name)));
            bail!("the nodes are not ready:\n{}", words.join("\n"));
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn ready_nodes(controlplane: &controlplane::folder::Folder) -> anyhow::Result<usize> {
    let mut kubectl = controlplane.kubectl()?;
    kubectl.args(["get", "nodes", "--no-headers"]);
    let listed = crate::vm::command::output(&mut kubectl)?;
    let ready = |line: &&str| line.split_whitespace().nth(1) == Some("Ready");
    Ok(listed.lines().filter(ready).count())
}

/// Each node's address, and the range that its pods get their addresses from.
fn pod_ranges(
    controlplane: &controlplane::folder::Folder,
) -> anyhow::Result<Vec<(String, String)>> {
    let mut kubectl = controlplane.kubectl()?;
    kubectl.args(["get", "nodes"]).arg(
        "-o=jsonpath={range .items[*]}{.status.addresses[?(@.type==\"InternalIP\")].address} {.spec.podCIDR}{\"\\n\"}{end}",
    );
    let listed = crate::vm::command::output(&mut kubectl)?;
    listed
        .lines()
        .map(|line| {
            let (node, range) = line
                .split_once(' ')
                .context("a node without a range for pods")?;
            Ok((node.to_owned(), range.to_owned()))
        })
        .collect()
}

fn status(folder: &Folder) -> anyhow::Result<()> {
    let controlplane = running(folder)?.controlplane();
    for what in [
        &[
            "get",
            "nodes",
            "-o=wide",
            "--label-columns=topology.kubernetes.io/zone",
        ][..],
        &["get", "pods", "--all-namespaces", "-o=wide"],
    ] {
        let status = controlplane.kubectl()?.args(what).status()?;
        if !status.success() {
            bail!("kubectl failed ({status})");
        }
    }
    anstream::println!("logs and consoles: {}", folder.path().display());
    Ok(())
}

fn running(folder: &Folder) -> anyhow::Result<&Folder> {
    if !folder.is_running() {
        bail!("no lab runs here: start one with `cargo xtask lab up`");
    }
    Ok(folder)
}
