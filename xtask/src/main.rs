//! `cargo xtask <command>`: the developer commands of ipvs-topo.
//!
//! Each command is a module with `Args` (clap) and `run(&Args)`; its parts are in the folder of the same name.

mod bench;
mod book;
mod cluster;
mod codegen;
mod conformance;
mod demo;
mod picture;
mod test;
mod thousands;
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
    command: XtaskCommand,
}

/// The commands, in the order in which a newcomer needs them.
#[derive(Subcommand)]
enum XtaskCommand {
    /// Show weighted network affinity in a real kernel with real connections.
    Demo(demo::Args),
    /// Measure what the agent costs on a real kernel, and compare it with targets.
    Bench(bench::Args),
    /// Run format, lints, tidy and every test; ends with `N passed, N failed`.
    Test(test::Args),
    /// Run a real Kubernetes control plane on this machine: etcd, API server, controllers, kubectl.
    Controlplane(controlplane::Args),
    /// Write the container images as OCI archives.
    Image(image::Args),
    /// Run a real Kubernetes cluster on this machine: a control plane and three nodes in three zones.
    Lab(lab::Args),
    /// Run Kubernetes' own end-to-end tests of the network in the lab, with the agents or with kube-proxy.
    Conformance(conformance::Args),
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
        XtaskCommand::Demo(args) => demo::run(&args),
        XtaskCommand::Bench(args) => bench::run(&args),
        XtaskCommand::Test(args) => test::run(&args),
        XtaskCommand::Controlplane(args) => controlplane::run(&args),
        XtaskCommand::Image(args) => image::run(&args),
        XtaskCommand::Lab(args) => lab::run(&args),
        XtaskCommand::Conformance(args) => conformance::run(&args),
        XtaskCommand::Book(args) => book::run(&args),
        XtaskCommand::Picture(args) => picture::run(&args),
        XtaskCommand::Codegen(args) => codegen::run(&args),
        XtaskCommand::Tidy(args) => tidy::run(&args),
        XtaskCommand::Vm(args) => vm::run(&args),
    };
    result.unwrap_or_else(|error| {
        anstream::eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
