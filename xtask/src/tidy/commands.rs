//! Reads the commands and flags that exist from `--help`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::tools;

/// A command: its flags, and its subcommands.
#[derive(Debug, Default)]
pub(super) struct CommandHelp {
    /// `--long` and `-s`.
    pub(super) flags: BTreeSet<String>,
    pub(super) under: BTreeMap<String, CommandHelp>,
}

/// The programs in documents, by the first words of their command lines.
#[derive(Debug, Default)]
pub(super) struct Commands {
    pub(super) programs: BTreeMap<String, CommandHelp>,
}

impl Commands {
    /// Runs this program and the built agent with `--help`.
    pub(super) fn gather(agent: &Path) -> anyhow::Result<Self> {
        let xtask = from_help(&tools::own_program(), &[])?;
        let agent = from_help(agent, &[])?;
        let programs = [("cargo xtask", xtask), ("ipvs-topo", agent)];
        Ok(Self {
            programs: programs.map(|(name, node)| (name.to_owned(), node)).into(),
        })
    }
}

/// Reads `program words... --help`, and the help of every command it lists.
fn from_help(program: &Path, words: &[&str]) -> anyhow::Result<CommandHelp> {
    let output = Command::new(program)
        .args(words)
        .arg("--help")
        .output()
        .with_context(|| format!("running {} {} --help", program.display(), words.join(" ")))?;
    ensure!(
        output.status.success(),
        "{} {} --help failed",
        program.display(),
        words.join(" ")
    );
    let help = String::from_utf8_lossy(&output.stdout);
    let mut under = BTreeMap::new();
    for name in listed_commands(&help) {
        let path: Vec<&str> = words.iter().copied().chain([name]).collect();
        under.insert(name.to_owned(), from_help(program, &path)?);
    }
    let flags = listed_flags(&help);
    Ok(CommandHelp { flags, under })
}

/// Returns the names under `Commands:`, without `help`.
pub(crate) fn listed_commands(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with(' ') || line.is_empty())
        // Two spaces and a name; further lines of a description are indented deeper.
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}

/// Returns every `--flag` and `-f` in the text, with aliases.
fn listed_flags(help: &str) -> BTreeSet<String> {
    help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .filter(|word| word.starts_with('-') && !word.trim_matches('-').is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
Node proxy.

Usage: ipvs-topo [OPTIONS] <COMMAND>

Commands:
  agent   The daemon
  render  What this node would program
  help    Print this message

Options:
  -o, --output <FORMAT>  One of
      --node <NAME>      The node [aliases: --node-name]
  -h, --help             Print help
";

    #[test]
    fn commands_and_flags_are_read_from_help() {
        assert_eq!(listed_commands(HELP), ["agent", "render"]);
        let flags: Vec<String> = listed_flags(HELP).into_iter().collect();
        assert_eq!(
            flags,
            ["--help", "--node", "--node-name", "--output", "-h", "-o"]
        );
    }
}
