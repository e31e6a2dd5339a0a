//! `guest bench`: what the agent costs on this kernel, told as raw readings.
//!
//! `all` runs the whole; the others are its parts, each for one fresh network namespace, which is
//! an empty IPVS table. The parts drive the real agent and look at it from outside.

mod agent;
mod all;
mod bare;
mod cold;
mod messages;
mod namespace;
mod process;
mod rival;
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
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    /// Measure everything at every size.
    All(all::AllArgs),
    /// Let the agent fill an empty kernel.
    Cold(cold::ColdArgs),
    /// Let the bare loop fill an empty kernel.
    Floor(cold::FloorArgs),
    /// Change, restart and leave alone an agent on a full kernel.
    Steady(steady::SteadyArgs),
    /// Let the bare loop replace real servers.
    Replace(rival::ReplaceArgs),
    /// Drive one node proxy on a real API server.
    Rival(rival::RivalArgs),
    /// Replace endpoints for whoever asks for it: runs on the host.
    Roll(rival::RollArgs),
}

/// Runs one part; its readings go to standard output as JSON.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let done = match &args.part {
        Part::All(args) => all::all(args),
        Part::Cold(args) => print_json(&cold::cold(args)?),
        Part::Floor(args) => print_json(&cold::floor(args)?),
        Part::Steady(args) => print_json(&steady::steady(args, &all::shape(args.services()))?),
        Part::Replace(args) => print_json(&args.replace()?),
        Part::Rival(args) => rival::rival(args),
        Part::Roll(args) => args.run(),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn print_json(value: &impl Serialize) -> Result<()> {
    output::print(&serde_json::to_string(value)?)
}
