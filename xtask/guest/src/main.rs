//! `guest`: the programs that run beside the agent in QEMU guests, one file for each subcommand. Only `bench roll` runs
//! on the host.

mod bench;
mod child;
mod demo;
mod dns;
mod dns_message;
mod load;
mod lookup;
mod output;
mod sctp;
mod serve;
mod source;
mod suite;
mod termination;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The command line of `guest`.
#[derive(Parser)]
#[command(
    name = "guest",
    about = "Pods, clients, load and measurements for the QEMU guests"
)]
struct CommandLine {
    #[command(subcommand)]
    command: GuestCommand,
}

#[derive(Subcommand)]
enum GuestCommand {
    /// Run the demo that `cargo xtask demo` shows.
    Demo(demo::Args),
    /// Answer every connection with a name, as a pod.
    Serve(serve::Args),
    /// Do nothing, as a pod.
    Pause,
    /// Connect repeatedly and count which servers answer, as a client.
    Load(load::Args),
    /// Ask a DNS server at a constant rate, and report how long answers were missing.
    Dns(dns::Args),
    /// Measure what the agent costs on this kernel.
    Bench(bench::Args),
    /// Run test binaries, each test as a process in its own namespaces.
    Suite(suite::Args),
}

fn main() -> ExitCode {
    let result = match CommandLine::parse().command {
        GuestCommand::Demo(args) => demo::run(&args),
        GuestCommand::Serve(args) => serve::run(&args),
        GuestCommand::Pause => pause(),
        GuestCommand::Load(args) => load::run(&args),
        GuestCommand::Dns(args) => dns::run(&args),
        GuestCommand::Bench(args) => bench::run(&args),
        GuestCommand::Suite(args) => suite::run(&args),
    };
    result.unwrap_or_else(|error| {
        output::log(&format!("guest: error: {error:#}"));
        ExitCode::FAILURE
    })
}

fn pause() -> anyhow::Result<ExitCode> {
    termination::Termination::listen()?.wait()?;
    Ok(ExitCode::SUCCESS)
}
