//! `guest`: what runs inside the QEMU guests beside the agent; `bench roll` alone runs on the host. One subcommand, one
//! file.

mod bench;
mod demo;
mod ending;
mod load;
mod output;
mod sctp;
mod serve;
mod source;
mod suite;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The command line of `guest`.
#[derive(Parser)]
#[command(
    name = "guest",
    about = "Programs that stand for pods, clients and load inside the QEMU guests"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The main job, end to end: what `cargo xtask demo` shows.
    Demo(demo::Args),
    /// A pod: answer every connection with a name.
    Serve(serve::Args),
    /// A pod that does nothing.
    Pause,
    /// A client: connect again and again, and count who answered.
    Load(load::Args),
    /// Measure what the agent costs on this kernel.
    Bench(bench::Args),
    /// Run test binaries, one test per process, each in namespaces of its own.
    Suite(suite::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Pause => pause(),
        Command::Load(args) => load::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Suite(args) => suite::run(&args),
    };
    result.unwrap_or_else(|error| {
        output::log(&format!("guest: error: {error:#}"));
        ExitCode::FAILURE
    })
}

fn pause() -> anyhow::Result<ExitCode> {
    ending::Ending::listen()?.wait()?;
    Ok(ExitCode::SUCCESS)
}
