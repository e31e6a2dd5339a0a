//! Runs the load balancer once, with the arguments of the command line.

use std::io::stdout;

use clap::Parser as _;
use load_balancer::{Arguments, run};

fn main() -> anyhow::Result<()> {
    run(&Arguments::parse(), &mut stdout().lock())
}
