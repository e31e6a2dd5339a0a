//! Every developer command of ipvs-topo: `cargo xtask <command>`.
//!
//! One command, one file: `main.rs` only names them. Each command's module has `Args` (clap)
//! and `run(Args)`; what it needs beside that lives in the folder of the same name.

mod bench;
mod book;
mod codegen;
mod demo;
mod picture;
mod test;
mod tidy;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use testbed::{controlplane, image, lab, vm};

/// The command line of `cargo xtask`.
#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of ipvs-topo")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// One developer command, in the order a newcomer meets them.
#[derive(Subcommand)]
enum Command {
    /// Weighted network affinity in a real kernel, with real connections, drawn.
    Demo(demo::Args),
    /// Measure what the agent costs on a real kernel, and hold it against the targets.
    Bench(bench::Args),
    /// Everything: format, lints, tidy, every test; ends with `N passed, N failed`.
    Test(test::Args),
    /// A real Kubernetes control plane on this machine: etcd, API server, controllers, kubectl.
    Controlplane(controlplane::Args),
    /// Write the container images as OCI archives.
    Image(image::Args),
    /// A real Kubernetes cluster on this machine: a control plane and three nodes in three zones.
    Lab(lab::Args),
    /// Build the pages of `docs` as a website, and check its links.
    Book(book::Args),
    /// Draw terminal output from standard input as an SVG.
    Picture(picture::Args),
    /// Write the CRDs, the admission policies and the reference pages from the code.
    Codegen(codegen::Args),
    /// Check that the tree, the documents and the dependency edges say the same thing.
    Tidy(tidy::Args),
    /// Boot real kernels under QEMU: run the kernel tests, a shell or one command in them.
    Vm(vm::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Controlplane(args) => controlplane::run(&args),
        Command::Image(args) => image::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Book(args) => book::run(&args),
        Command::Picture(args) => picture::run(&args),
        Command::Codegen(args) => codegen::run(&args),
        Command::Tidy(args) => tidy::run(&args),
        Command::Vm(args) => vm::run(&args),
    };
    result.unwrap_or_else(|error| {
        anstream::eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
