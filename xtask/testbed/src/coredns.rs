//! `CoreDNS`, with which the DNS server is compared, from a Go module of its own.

use std::path::PathBuf;

use crate::go::program::{GoProgram, Output};

/// Returns the path of the program, and builds it if its sources have changed.
pub fn build() -> anyhow::Result<PathBuf> {
    PROGRAM.build()
}

/// Reads its release, such as `v1.15.0`.
pub fn release() -> anyhow::Result<String> {
    PROGRAM.release()
}

const PROGRAM: GoProgram = GoProgram {
    name: "coredns",
    module: "coredns",
    modules: "go.mod",
    variant: "newest",
    package: ".",
    sources: &["main.go"],
    output: Output::Program,
    release_of: "github.com/coredns/coredns",
};
