//! Programs the kernel's IPVS table with the virtual servers that a TOML file names.
//!
//! [`config`] reads the file, [`diff`] compares it with what [`kernel`] observed, [`table`] prints the result.

pub mod config;
pub mod diff;
pub mod kernel;
pub mod table;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use ipvs_netlink::Client;

/// Programs the virtual servers of FILE and prints what the kernel then holds.
#[derive(Debug, clap::Parser)]
#[command(version)]
pub struct Arguments {
    /// The TOML file that names virtual servers and their real servers
    pub file: PathBuf,
    /// Remove the virtual servers that FILE names, with their real servers
    #[arg(long)]
    pub clear: bool,
}

/// Reads the file, applies the difference, prints the kernel's table.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> anyhow::Result<()> {
    let file = arguments.file.display();
    let text = std::fs::read_to_string(&arguments.file)
        .with_context(|| format!("{file}: cannot be read; name a file that exists"))?;
    let desired = config::parse(&text).map_err(|error| anyhow::anyhow!("{file}: {error}"))?;
    let mut ipvs = Client::open()?;
    let observed = kernel::observe(&mut ipvs, desired.keys().copied())?;
    let commands = if arguments.clear {
        diff::removal(&observed)
    } else {
        diff::commands(&desired, &observed)
    };
    let applied = kernel::apply(&mut ipvs, &commands);
    // The table is printed after a failure, too: it shows what was done.
    writeln!(
        out,
        "{} of {} changes applied",
        applied.done,
        commands.len()
    )?;
    write!(out, "{}", table::format(&table::rows(ipvs.dump()?)))?;
    applied.result
}
