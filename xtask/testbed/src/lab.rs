//! `cargo xtask lab`: a real Kubernetes cluster on this machine: a control plane and three nodes in QEMU guests.
//!
//! Everything runs inside a network namespace of its own, as nobody but the caller: no root, no
//! address and no port of this machine. Node n1 is in zone z1, and so on.

mod disk;
mod folder;
mod import;
mod network;
mod node;
mod nodes;
mod payload;
mod remote;
mod root;
mod up;

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::bail;

use crate::controlplane::Version;
use crate::controlplane::folder::VARIABLE as CONTROLPLANE_FOLDER;
use crate::controlplane::suite::{self, Suite};
use crate::vm::build::Profile;
use crate::vm::kernel::Line;
use folder::Folder;
use network::Network;
pub use node::NODES;

/// The `ConfigMap` that tells agents where the API server is; the tests in the lab read it too.
pub const API_SERVER: &str = include_str!("lab/api-server.yaml");

/// Options of `cargo xtask lab`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Start it, and return when every node is ready.
    Up {
        /// The kernel of every node; without it each has another.
        #[arg(long)]
        kernel: Option<Line>,
        /// The Kubernetes minor, nodes included: the newest, or the oldest that we support.
        #[arg(long, value_enum, default_value = "newest")]
        version: Version,
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
    /// Run one line of shell on a node, print what it prints, and end with its exit status.
    Run {
        /// The node's name.
        node: String,
        /// The line.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        line: Vec<String>,
    },
    /// Turn a node off, as when its plug is pulled.
    Stop {
        /// The node's name.
        node: String,
    },
    /// Turn a node on again, and return when it is ready.
    Start {
        /// The node's name.
        node: String,
    },
}

/// Does what was asked.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = Folder::here();
    match &args.what {
        What::Up {
            kernel,
            version,
            profile,
        } => up::up(&folder, *version, *kernel, *profile)?,
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
    }
    Ok(ExitCode::SUCCESS)
}

/// A lab that runs.
pub struct Running {
    folder: Folder,
}

impl Running {
    /// The one of this work tree, if there is one.
    pub fn find() -> Option<Self> {
        let folder = Folder::here();
        folder.is_running().then_some(Self { folder })
    }

    /// A new one, which is nobody's once this process is gone.
    pub fn start() -> anyhow::Result<Self> {
        let folder = Folder::of_test()?;
        up::up(&folder, Version::Newest, None, Profile::Guest)?;
        Ok(Self { folder })
    }

    /// kubectl as its administrator.
    pub fn kubectl(&self) -> anyhow::Result<Command> {
        self.folder.controlplane().kubectl()
    }

    /// What a line of shell prints on a node.
    pub fn output(&self, node: &str, line: &str) -> anyhow::Result<String> {
        remote::output(&self.folder, node, line)
    }

    /// What takes lines of shell for a node, and prints what they print.
    pub fn session(&self, node: &str) -> anyhow::Result<Command> {
        remote::session(&self.folder, node)
    }

    /// Lets it run on when this process is gone.
    pub fn keep(&self) -> anyhow::Result<()> {
        self.folder.disown()
    }

    /// Ends it.
    pub fn end(&self) -> anyhow::Result<()> {
        self.folder.end()
    }
}

fn test(folder: &Folder, version: Version, args: &suite::Args) -> anyhow::Result<ExitCode> {
    let suite = Suite::build("lab-tests", args)?;
    up::up(folder, version, None, Profile::Guest)?;
    let controlplane = folder.controlplane();
    let launch = Network::of(&folder.record()?.holder).launch().join(" ");
    let environment = [
        ("KUBECONFIG", controlplane.kubeconfig().into()),
        (
            "CONTROLPLANE_PROGRAM",
            controlplane.record()?.program.into(),
        ),
        (CONTROLPLANE_FOLDER, controlplane.path().into()),
        ("LAB_LAUNCH", launch.into()),
        ("LAB_XTASK", std::env::current_exe()?.into()),
    ];
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
