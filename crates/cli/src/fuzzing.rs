//! The parser of `--config`, for the target in `crates/cli/fuzz`.

use std::path::Path;

use clap::Parser as _;

use crate::args::{Cli, Command};

/// Returns the resulting arguments, or the error.
pub fn proxy_config(file: &Path) -> String {
    let mut words = ["ipvs-topo", "agent", "--node-name=n1", "--config"]
        .map(std::ffi::OsStr::new)
        .to_vec();
    words.push(file.as_os_str());
    let Ok(Command::Agent(mut args)) = Cli::try_parse_from(words).map(|cli| cli.command) else {
        return String::new();
    };
    let unfollowed = args.configure();
    format!("{unfollowed:?} {args:?}")
}
