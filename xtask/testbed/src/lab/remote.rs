//! Runs shells and commands on a node over the lab's network.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::folder::Folder;
use super::network::Network;
use super::node;
use crate::vm::Machines;

/// The port on which a node serves shells; `init.sh` has the same number.
const SHELL_PORT: &str = "24";

/// Marks the exit status behind a command's output.
const STATUS: &str = "lab-exit-status:";

/// Returns the command for an interactive shell on the node `name`.
pub(super) fn shell(folder: &Folder, name: &str) -> anyhow::Result<Command> {
    busybox(folder, &["telnet", &node::address_of(name)?])
}

/// Returns a command that runs the shell lines of its standard input on the node `name`.
pub(super) fn session(folder: &Folder, name: &str) -> anyhow::Result<Command> {
    busybox(folder, &["nc", &node::address_of(name)?, SHELL_PORT])
}

/// Runs a shell line on the node `name` and returns its output and exit status.
pub(super) fn run(folder: &Folder, name: &str, line: &str) -> anyhow::Result<(String, u8)> {
    let mut child = session(folder, name)?
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start `nsenter`: install the package util-linux")?;
    let mut input = child.stdin.take().context("no input")?;
    write!(input, "({line}) </dev/null 2>&1\necho {STATUS}$?\nexit\n")?;
    let done = child.wait_with_output()?;
    drop(input);
    let text = String::from_utf8_lossy(&done.stdout);
    let parts = text.rsplit_once(STATUS);
    let (text, status) = parts.with_context(|| format!("node {name} does not answer: {text}"))?;
    Ok((text.to_owned(), status.trim().parse()?))
}

/// Runs a shell line that must succeed, and returns its output.
pub(super) fn output(folder: &Folder, name: &str, line: &str) -> anyhow::Result<String> {
    let (text, status) = run(folder, name, line)?;
    ensure!(status == 0, "`{line}` on {name} failed ({status}):\n{text}");
    Ok(text)
}

fn busybox(folder: &Folder, words: &[&str]) -> anyhow::Result<Command> {
    let program = Machines::open()?.tools.program("busybox")?;
    let mut command = Network::of(&folder.state()?.holder).command(program);
    command.args(words);
    Ok(command)
}
