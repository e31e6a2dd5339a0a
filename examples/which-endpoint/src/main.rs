//! Answers which endpoints of a Service a client on a node gets, from a description in TOML.

mod answer;
mod convert;
mod description;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;

/// Answers which endpoints of a Service a client on a node gets.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The description: nodes, a Service and its endpoints. See cart.toml.
    file: PathBuf,

    /// The node that the client runs on.
    #[arg(long, value_name = "NAME")]
    node: String,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args.file, &args.node) {
        Ok(text) => write(&text),
        Err(error) => {
            drop(writeln!(std::io::stderr(), "which-endpoint: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Writes the answer; a reader that closed the pipe early is no error.
fn write(text: &str) -> ExitCode {
    drop(std::io::stdout().write_all(text.as_bytes()));
    ExitCode::SUCCESS
}

fn run(file: &Path, node: &str) -> anyhow::Result<String> {
    let name = file.display();
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("{name}: cannot be read; name a file such as cart.toml"))?;
    answer(&text, node).with_context(|| name.to_string())
}

/// The answer for a client on `node` in the cluster that `text` describes.
fn answer(text: &str, node: &str) -> anyhow::Result<String> {
    let description = description::parse(text)?;
    let cluster = convert::convert(&description, node)?;
    Ok(answer::answer(&cluster, node))
}
