//! `guest bench`: measures what the agent costs on this kernel and prints the readings as JSON.
//!
//! `all` runs the others, each in a fresh network namespace, so with an empty IPVS table. They start the real agent
//! and observe it from outside.

mod agent;
mod all;
mod bare_socket;
mod cold;
mod messages;
mod namespace;
mod process;
mod proxy;
mod scrape;
mod steady;

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use crate::output;

/// `guest bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(clap::Subcommand)]
enum BenchCommand {
    /// Measure everything at every size.
    All(all::AllArgs),
    /// Measure the agent while it fills an empty kernel.
    Cold(cold::ColdArgs),
    /// Measure the bare loop while it fills an empty kernel.
    Floor(cold::FloorArgs),
    /// Measure changes, restarts and an idle agent on a full kernel.
    Steady(steady::SteadyArgs),
    /// Measure the bare loop while it replaces real servers.
    Replace(proxy::ReplaceArgs),
    /// Measure one node proxy on a real API server.
    Proxy(proxy::ProxyArgs),
    /// Replace endpoints on request; runs on the host.
    Roll(proxy::RollArgs),
    /// Send every byte back, as a pod.
    Echo(proxy::EchoArgs),
    /// Measure how fast an address answers, as a client.
    Path(proxy::PathArgs),
    /// Measure the longest time without an answer, as a client.
    Stall(proxy::StallArgs),
}

/// Runs one command and prints its readings to standard output as JSON.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let done = match &args.command {
        BenchCommand::All(args) => all::all(args),
        BenchCommand::Cold(args) => print_json(&cold::cold(args)?),
        BenchCommand::Floor(args) => print_json(&cold::floor(args)?),
        BenchCommand::Steady(args) => {
            print_json(&steady::steady(args, &all::shape(args.services()))?)
        }
        BenchCommand::Replace(args) => print_json(&args.replace()?),
        BenchCommand::Proxy(args) => proxy::measure(args),
        BenchCommand::Roll(args) => args.run(),
        BenchCommand::Echo(args) => args.run(),
        BenchCommand::Path(args) => print_json(&args.run()?),
        BenchCommand::Stall(args) => print_json(&args.run()?),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn print_json(value: &impl Serialize) -> Result<()> {
    output::print(&serde_json::to_string(value)?)
}
