//! The parsers of what comes from outside, for the targets in `crates/agent/fuzz`. Nothing else is built with `cfg(fuzzing)`.

use std::path::Path;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::{conntrack, draining, nftables, ownership, routes};

/// An entry of connection tracking, as the kernel lists it.
pub fn conntrack(bytes: &[u8]) {
    conntrack::fuzz(bytes);
}

/// A message of `NETLINK_ROUTE`, its kind in the first two bytes.
pub fn route(bytes: &[u8]) {
    routes::fuzz(bytes);
}

/// What `nft -j list table` prints.
pub fn nft(text: &str) {
    nftables::fuzz(text);
}

/// The ownership record.
pub fn owned(text: &str) {
    ownership::fuzz(text);
}

/// The record of deadlines; lines without a checksum get theirs.
pub fn draining(text: &str) {
    draining::fuzz(text);
}

/// The file of `--config`. Returns what became of the arguments, or what is wrong.
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
