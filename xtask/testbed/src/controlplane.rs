//! `cargo xtask controlplane`: a real Kubernetes control plane on the loopback of this machine, without containers.

pub(crate) mod folder;
mod go;
mod own;
pub(crate) mod parts;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod record;
pub(crate) mod site;
pub(crate) mod suite;

use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

use anyhow::ensure;

use folder::Folder;
pub use own::Own;
use process::Ending;
pub use program::Version;
pub use site::FROM_GUEST;
use site::{Part, Site};

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
    /// Build it if need be, start it, and return when it is ready.
    Up,
    /// End it and remove what it kept.
    Down,
    /// Print the path of the administrator's kubeconfig.
    Kubeconfig,
    /// Run kubectl as its administrator.
    Kubectl {
        /// kubectl's own arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// End one part, and keep what it stored.
    Stop {
        /// Which.
        part: Part,
        /// As a crash would: at once, without a word.
        #[arg(long)]
        kill: bool,
    },
    /// Start one part again, and return when it is ready.
    Start {
        /// Which.
        part: Part,
    },
    /// Run the integration tests of every package against one that is started for them and ended after them.
    Test(suite::Args),
}

/// Does what was asked.
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
            let how = if *kill { Ending::Killed } else { Ending::Asked };
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
    folder.create(Site::loopback()?, &program, None)?;
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
