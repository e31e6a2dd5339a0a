//! The program `ipvs-topo-controller`.

use std::process::ExitCode;

use clap::Parser as _;
use controller::cli::Args;
use controller::{log, run};

fn main() -> ExitCode {
    let args = Args::parse();
    log::start(args.log_format);
    match run::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
