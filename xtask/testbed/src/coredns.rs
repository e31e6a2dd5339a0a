//! `CoreDNS`, with which the DNS server is compared and which the lab's tests of DNS run, from a Go module of its own.

use std::path::{Path, PathBuf};

use crate::e2e::DNS_IMAGE;
use crate::go::program::{GoProgram, Output};
use crate::image;

/// Returns the path of the program, and builds it if its sources have changed.
pub fn build() -> anyhow::Result<PathBuf> {
    PROGRAM.build()
}

/// Writes it as the image [`DNS_IMAGE`] into `folder`, and returns the archive.
pub(crate) fn write_image(folder: &Path) -> anyhow::Result<PathBuf> {
    image::write_program(PROGRAM.name, &build()?, DNS_IMAGE.to_owned(), folder)
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
