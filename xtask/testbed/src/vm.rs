//! `cargo xtask vm`: real kernels on any machine, under QEMU without KVM.
//!
//! Nothing is installed and no root is needed: kernels, QEMU and the guests' programs are Debian
//! packages, found through the package index and unpacked into the cache folder.

pub(crate) mod archive;
pub mod build;
pub mod command;
pub mod image;
pub(crate) mod initramfs;
pub mod kernel;
pub mod machine;
pub(crate) mod modules;
pub mod progress;
pub(crate) mod shell;
pub(crate) mod store;
pub mod suite;
pub(crate) mod tools;

use std::process::{ExitCode, ExitStatus};

use clap::Subcommand;

use image::Addition;
use kernel::{Kernel, Line};
use machine::{Machine, Spec};
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
    /// Run every package's kernel tests on real kernels.
    Test(suite::Args),
    /// A shell in a guest with the agent, ipvsadm, nft, ip, curl and the examples.
    Shell(shell::Guest),
    /// Run one command in a guest: `cargo xtask vm run -- ipvsadm -Ln`.
    Run(shell::RunArgs),
    /// Ask the package index again, and fetch the newest kernels and tools.
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

/// Everything that is needed to boot guests.
pub struct Machines {
    /// Where packages and images are kept.
    pub store: Store,
    /// The programs of this machine's side, and those that guests hold.
    pub tools: Tools,
}

impl Machines {
    /// Finds the tools, and fetches them the first time.
    pub fn open() -> anyhow::Result<Self> {
        let store = Store::open(false)?;
        let tools = Tools::find(&store)?;
        Ok(Self { store, tools })
    }

    /// The newest kernel of a line, fetched the first time.
    pub fn kernel(&self, line: Line) -> anyhow::Result<Kernel> {
        Kernel::find(&self.store, line)
    }

    /// A program of the tools that not every guest needs, under these names, with its libraries.
    pub fn tool(&self, program: &str, names: &[&str]) -> anyhow::Result<Vec<Addition>> {
        let file = self.tools.program(program)?;
        let mut additions = Vec::new();
        for library in self.tools.libraries(&file)? {
            let name = library.file_name().unwrap_or_default().to_string_lossy();
            additions.push(Addition::Program {
                path: format!("usr/lib/{name}"),
                from: library.clone(),
            });
        }
        additions.extend(names.iter().map(|name| Addition::Program {
            path: format!("usr/bin/{name}"),
            from: file.clone(),
        }));
        Ok(additions)
    }

    /// A folder of the tools' packages.
    pub fn tree(&self, from: &str, path: &str) -> Addition {
        Addition::Tree {
            path: path.to_owned(),
            from: self.tools.file(from),
        }
    }

    /// Boots a guest whose job is read line by line.
    pub fn start(&self, spec: &Spec<'_>) -> anyhow::Result<Machine> {
        Machine::start(&self.store, &self.tools, spec)
    }

    /// Boots a guest on the person's terminal.
    pub(crate) fn interact(&self, spec: &Spec<'_>) -> anyhow::Result<ExitStatus> {
        machine::interact(&self.store, &self.tools, spec)
    }
}
