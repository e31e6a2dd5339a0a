//! Runs the commands of `docs/install.md` and `docs/migrate.md` unchanged.

use std::path::{Path, PathBuf};

use crate::cluster::{NODES, on_node, outside, program, text};

/// The documents for administrators.
const DOCUMENT: &str = concat!(
    include_str!("../../../../docs/install.md"),
    include_str!("../../../../docs/migrate.md")
);

/// The first line of a block of commands for nodes.
const FOR_NODES: &str = "# on every node\n";

/// A folder with an administrator's programs.
pub(crate) struct Desk(tempfile::TempDir);

impl Desk {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let programs = [
            ("kubectl", program()),
            ("ipvs-topo", PathBuf::from(env!("CARGO_BIN_EXE_ipvs-topo"))),
        ];
        for (name, program) in programs {
            std::os::unix::fs::symlink(program, folder.path().join(name)).unwrap();
        }
        Self(folder)
    }

    /// Runs the commands below a heading. Returns the output of those that do not run on nodes.
    pub(crate) fn follow(&self, heading: &str) -> String {
        let mut printed = String::new();
        for block in blocks(heading) {
            if block.starts_with(FOR_NODES) {
                on_every_node(block);
            } else {
                printed += &self.run(block);
            }
        }
        printed
    }

    /// Runs the commands of a block; returns their output.
    pub(crate) fn run(&self, block: &str) -> String {
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", self.0.path().display());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut shell = outside("sh");
        shell.args(["-euc", block]).env("PATH", path);
        let done = shell.current_dir(root).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let printed = text(&done);
        assert!(done.status.success(), "{block}{printed}{said}");
        printed
    }
}

pub(crate) fn blocks(heading: &str) -> Vec<&'static str> {
    let (_, section) = DOCUMENT.split_once(&format!("# {heading}\n")).unwrap();
    let section = section.split("\n##").next().unwrap();
    let parts = section.split("```sh\n").skip(1);
    let blocks: Vec<_> = parts
        .map(|part| part.split("```").next().unwrap())
        .collect();
    assert!(!blocks.is_empty(), "no commands below {heading}");
    blocks
}

/// Runs the commands of a block on every node.
pub(crate) fn on_every_node(block: &str) {
    for node in NODES {
        on_node(node, &format!("set -eu\n{block}"));
    }
}
