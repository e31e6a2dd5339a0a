//! `cargo xtask lab`: runs a real Kubernetes cluster on this machine: a control plane, and three nodes in QEMU guests.
//!
//! Everything runs in a separate network namespace as the calling user. It needs no root and uses no address and no port
//! of this machine. Node n1 is in zone z1, and so on.

mod disk;
mod folder;
mod import;
mod load_balancer;
mod network;
mod node;
mod nodes;
mod payload;
mod remote;
mod root;
mod up;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::bail;

use crate::controlplane::Version;
use crate::controlplane::folder::VARIABLE as CONTROLPLANE_FOLDER;
use crate::controlplane::suite::{self, Suite};
use crate::vm::Machines;
use crate::vm::build::Profile;
use crate::vm::kernel::Line;
use crate::{coredns, e2e, metallb};
use folder::Folder;
use network::Network;
pub use network::OUTSIDE;
pub use node::NODES;
use up::LabPlan;

/// The `ConfigMap` with the API server's address for agents; the tests in the lab read it too.
pub const API_SERVER: &str = include_str!("lab/api-server.yaml");

/// Options of `cargo xtask lab`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Start it, and wait until every node is ready.
    Up {
        /// The kernel of every node; by default each node has a different one.
        #[arg(long)]
        kernel: Option<Line>,
        /// The Kubernetes minor, nodes included: the newest, or the oldest that we support.
        #[arg(long, value_enum, default_value = "newest")]
        version: Version,
        /// The build profile of our images.
        #[arg(long, value_enum, default_value = "guest")]
        profile: Profile,
    },
    /// Stop it and remove its data.
    Down,
    /// Show the nodes and the pods.
    Status,
    /// Run kubectl as its administrator.
    Kubectl {
        /// kubectl's own arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Start it, run the tests of every package that need it, and stop it.
    Test {
        /// The Kubernetes minor, nodes included: the newest, or the oldest that we support.
        #[arg(long, value_enum, default_value = "newest")]
        version: Version,
        #[command(flatten)]
        suite: suite::Args,
    },
    /// A shell on a node.
    Shell {
        /// The node's name.
        node: String,
    },
    /// Run one shell line on a node, print its output, and exit with its status.
    Run {
        /// The node's name.
        node: String,
        /// The line.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        line: Vec<String>,
    },
    /// Turn a node off, as a power failure does.
    Stop {
        /// The node's name.
        node: String,
    },
    /// Turn a node on again, and wait until it is ready.
    Start {
        /// The node's name.
        node: String,
    },
    /// Give Services of type LoadBalancer an address and a route, until the lab ends.
    LoadBalancer,
}

/// Runs `cargo xtask lab`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = Folder::here();
    match &args.what {
        What::Up {
            kernel,
            version,
            profile,
        } => {
            let plan = LabPlan {
                kernel: *kernel,
                profile: *profile,
                ..LabPlan::of_test(*version)
            };
            up::up(&folder, &plan)?;
        }
        What::Test { version, suite } => return test(&Folder::of_test()?, *version, suite),
        What::Down => folder.end()?,
        What::Status => status(&folder)?,
        What::Kubectl { arguments } => {
            let mut kubectl = running(&folder)?.controlplane().kubectl()?;
            return Err(kubectl.args(arguments).exec().into());
        }
        What::Shell { node } => return Err(remote::shell(running(&folder)?, node)?.exec().into()),
        What::Run { node, line } => {
            let (text, status) = remote::run(running(&folder)?, node, &line.join(" "))?;
            anstream::print!("{text}");
            return Ok(ExitCode::from(status));
        }
        What::Stop { node } => node::turn_off(running(&folder)?, node)?,
        What::Start { node } => nodes::start(running(&folder)?, node)?,
        What::LoadBalancer => load_balancer::run(running(&folder)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A running lab.
pub struct RunningLab {
    folder: Folder,
}

impl RunningLab {
    /// Finds the lab of this work tree.
    pub fn find() -> Option<Self> {
        let folder = Folder::here();
        folder.is_running().then_some(Self { folder })
    }

    /// Starts a lab that the next command removes when this process has exited.
    pub fn start() -> anyhow::Result<Self> {
        Self::start_with(&[])
    }

    /// Starts such a lab with more images on its nodes.
    pub fn start_with(images: &[PathBuf]) -> anyhow::Result<Self> {
        let folder = Folder::of_test()?;
        let plan = LabPlan {
            images,
            ..LabPlan::of_test(Version::Newest)
        };
        up::up(&folder, &plan)?;
        Ok(Self { folder })
    }

    /// Returns kubectl with the administrator's kubeconfig.
    pub fn kubectl(&self) -> anyhow::Result<Command> {
        self.folder.controlplane().kubectl()
    }

    /// Returns the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.controlplane().kubeconfig()
    }

    /// Returns the program that contains every part of Kubernetes, kubectl included.
    pub fn kubernetes(&self) -> anyhow::Result<PathBuf> {
        Ok(self.folder.controlplane().state()?.program)
    }

    /// Runs a shell line on a node and returns its output.
    pub fn output(&self, node: &str, line: &str) -> anyhow::Result<String> {
        remote::output(&self.folder, node, line)
    }

    /// Returns a command that runs the shell lines of its standard input on a node.
    pub fn session(&self, node: &str) -> anyhow::Result<Command> {
        remote::session(&self.folder, node)
    }

    /// Returns a command that runs `program` outside of the cluster, at [`OUTSIDE`].
    pub fn outside(&self, program: impl AsRef<OsStr>) -> anyhow::Result<Command> {
        Ok(Network::of(&self.folder.state()?.holder).command(program))
    }

    /// Routes `address` from outside of the cluster to a node, as a load balancer does.
    pub fn route(&self, address: IpAddr, node: IpAddr) -> anyhow::Result<()> {
        let network = Network::of(&self.folder.state()?.holder);
        let route = (node.to_string(), address.to_string());
        network.route(&Machines::open()?.tools, &[route])
    }

    /// Keeps it running after this process.
    pub fn keep(&self) -> anyhow::Result<()> {
        self.folder.disown()
    }

    pub fn end(&self) -> anyhow::Result<()> {
        self.folder.end()
    }
}

/// The module of the tests that need `MetalLB`, which takes minutes to build.
const ANNOUNCER_TESTS: &str = "announcer";

/// The module of the tests that need `CoreDNS`.
const DNS_TESTS: &str = "cluster_dns";

fn test(folder: &Folder, version: Version, args: &suite::Args) -> anyhow::Result<ExitCode> {
    let suite = Suite::build("lab-tests", args)?;
    let needs_metallb = suite.has_module(ANNOUNCER_TESTS);
    let more_images = folder.more_images();
    let needs_dns = suite.has_module(DNS_TESTS);
    let mut images = Vec::new();
    if needs_metallb {
        images.extend(metallb::write_images(&more_images)?);
    }
    if needs_dns {
        images.push(coredns::write_image(&more_images)?);
    }
    let plan = LabPlan {
        images: &images,
        ..LabPlan::of_test(version)
    };
    up::up(folder, &plan)?;
    let controlplane = folder.controlplane();
    let launch = Network::of(&folder.state()?.holder).launch().join(" ");
    let busybox = Machines::open()?.tools.program("busybox")?;
    let mut environment: Vec<(&str, OsString)> = vec![
        ("KUBECONFIG", controlplane.kubeconfig().into()),
        ("CONTROLPLANE_PROGRAM", controlplane.state()?.program.into()),
        (CONTROLPLANE_FOLDER, controlplane.path().into()),
        ("LAB_LAUNCH", launch.into()),
        ("LAB_XTASK", std::env::current_exe()?.into()),
        ("LAB_BUSYBOX", busybox.into()),
    ];
    if !images.is_empty() {
        // The nodes have them.
        fs::remove_dir_all(more_images)?;
    }
    if needs_metallb {
        environment.push(("LAB_METALLB", metallb::manifest()?.into()));
    }
    if needs_dns {
        environment.push(("LAB_DNS_IMAGE", e2e::DNS_IMAGE.into()));
    }
    // The nodes are emulated.
    let passed = suite.run(2, &environment);
    folder.end()?;
    Ok(ExitCode::from(u8::from(!passed?)))
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
