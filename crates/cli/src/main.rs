//! The `ipvs-topo` command: parses the command line, runs a command, and exits with its code.

use std::process::ExitCode;

use clap::Parser as _;
use cli::args::{Cli, Command, words_for_clap};
use cli::exit::{ExitStatus, Failure};
use cli::output::print;
use cli::{diff, dns, explain, locate, render, simulate, start, status};

fn main() -> ExitCode {
    let cli = Cli::parse_from(words_for_clap(std::env::args_os()));
    print::choose(cli.colour);
    run(&cli.command).map_or_else(|failure| report(&failure), ExitCode::from)
}

fn run(command: &Command) -> Result<ExitStatus, Failure> {
    match command {
        Command::Render(args) => render::run(args),
        Command::Status(args) => status::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Agent(args) => start::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Dns(args) => dns::run(args),
        Command::Locate(args) => locate::run(args),
    }
}

fn report(failure: &Failure) -> ExitCode {
    print::aside(&format!("ipvs-topo: {}", failure.message()));
    ExitCode::from(failure.code())
}
