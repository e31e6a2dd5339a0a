//! The binary `ipvs-topo-controller`.

use std::process::ExitCode;

use clap::Parser as _;
use controller::cli::Args;
use controller::run;
use telemetry::log::{self, Verbosity};

fn main() -> ExitCode {
    let args = Args::parse();
    let verbosity = Verbosity {
        level: 0,
        crates: &["controller"],
    };
    log::start(args.log_format, verbosity);
    match run::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
