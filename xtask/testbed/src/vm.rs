//! `cargo xtask vm`: boots real kernels on any machine, in QEMU without KVM.
//!
//! It installs nothing and needs no root: kernels, QEMU and the guests' programs are Debian packages, which it finds
//! through the package index and unpacks into the cache folder.

pub(crate) mod archive;
pub mod build;
pub mod command;
pub mod image;
pub(crate) mod initramfs;
pub mod kernel;
pub mod machine;
mod machines;
pub(crate) mod modules;
pub mod progress;
pub(crate) mod shell;
pub(crate) mod store;
pub mod suite;
pub(crate) mod tools;

use std::process::ExitCode;

use clap::Subcommand;

use kernel::{Kernel, Line};
pub use machines::Machines;
use store::Store;
use tools::Tools;

/// Options of `cargo xtask vm`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Test(suite::Args),
    /// Open a shell in a guest with the agent, ipvsadm, nft, ip, curl and the examples.
    Shell(shell::Guest),
    /// Run one command in a guest: `cargo xtask vm run -- ipvsadm -Ln`.
    Run(shell::RunArgs),
    /// Update the package index and download the newest kernels and tools.
    Update,
}

/// Runs `cargo xtask vm`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Test(args) => suite::run(args),
        Action::Shell(guest) => shell::shell(guest),
        Action::Run(args) => shell::run(args),
        Action::Update => update(),
    }
}

fn update() -> anyhow::Result<ExitCode> {
    let store = Store::open(true)?;
    Tools::find(&store)?;
    for line in Line::ALL {
        let kernel = Kernel::find(&store, line)?;
        anstream::println!("{line}: {}", kernel.release);
    }
    Ok(ExitCode::SUCCESS)
}
