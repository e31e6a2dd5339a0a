//! `cargo xtask controlplane`: runs a real Kubernetes control plane on the loopback of this machine, without containers.

pub(crate) mod config;
pub(crate) mod folder;
pub(crate) mod parts;
pub(crate) mod process;
pub(crate) mod program;
mod scoped;
pub(crate) mod state_file;
pub(crate) mod suite;

use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

use anyhow::ensure;

pub use config::FROM_GUEST;
use config::{ControlPlaneConfig, ControlPlanePart};
use folder::Folder;
use process::StopMode;
pub use program::Version;
pub use scoped::ScopedControlPlane;

/// Options of `cargo xtask controlplane`.
#[derive(clap::Args)]
pub struct Args {
    /// The Kubernetes minor: the newest, or the oldest that we support.
    #[arg(long, value_enum, global = true, default_value = "newest")]
    version: Version,
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Build it if necessary, start it, and wait until it is ready.
    Up,
    /// Stop it and remove its data.
    Down,
    /// Print the path of the administrator's kubeconfig.
    Kubeconfig,
    /// Run kubectl as its administrator.
    Kubectl {
        /// kubectl's own arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Stop one part and keep its data.
    Stop {
        /// The part.
        part: ControlPlanePart,
        /// Kill it, as a crash does.
        #[arg(long)]
        kill: bool,
    },
    /// Start one part again, and wait until it is ready.
    Start {
        /// The part.
        part: ControlPlanePart,
    },
    /// Start a control plane, run the integration tests of every package against it, and stop it.
    Test(suite::Args),
}

/// Runs `cargo xtask controlplane`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.what {
        What::Up => up(args.version)?,
        What::Down => Folder::of(args.version).end()?,
        What::Kubeconfig => {
            anstream::println!("{}", running(args.version)?.kubeconfig().display());
        }
        What::Kubectl { arguments } => {
            let mut kubectl = running(args.version)?.kubectl()?;
            return Err(kubectl.args(arguments).exec().into());
        }
        What::Stop { part, kill } => {
            let how = if *kill {
                StopMode::Kill
            } else {
                StopMode::Terminate
            };
            parts::stop(&running(args.version)?, *part, how)?;
        }
        What::Start { part } => parts::start(&Folder::of(args.version), *part)?,
        What::Test(suite) => return suite::run(suite, args.version),
    }
    Ok(ExitCode::SUCCESS)
}

fn up(version: Version) -> anyhow::Result<()> {
    let folder = Folder::of(version);
    if folder.is_running() {
        anstream::eprintln!("  it runs already: {}", folder.kubeconfig().display());
        return Ok(());
    }
    let program = program::build(version)?;
    folder.create(ControlPlaneConfig::loopback()?, &program, None)?;
    parts::start_all(&folder)
}

fn running(version: Version) -> anyhow::Result<Folder> {
    let folder = Folder::of(version);
    ensure!(
        folder.is_running(),
        "no control plane runs here: start one with `cargo xtask controlplane up`"
    );
    Ok(folder)
}
