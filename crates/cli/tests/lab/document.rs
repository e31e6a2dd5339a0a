//! Runs the commands of `docs/install.md` and `docs/migrate.md` as they stand there.

use std::path::{Path, PathBuf};

use crate::cluster::{NODES, on_node, outside, program, text};

/// For administrators.
const DOCUMENT: &str = concat!(
    include_str!("../../../../docs/install.md"),
    include_str!("../../../../docs/migrate.md")
);

/// What a block of commands begins with that is for nodes.
const FOR_NODES: &str = "# on every node\n";

/// A folder with the programs that an administrator has at hand.
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

    /// Does what the document says below a heading: what that prints, but for what it does on nodes.
    pub(crate) fn follow(&self, heading: &str) -> String {
        let mut told = String::new();
        for block in blocks(heading) {
            if block.starts_with(FOR_NODES) {
                on_every_node(block);
            } else {
                told += &self.run(block);
            }
        }
        told
    }

    /// Does what a block says: what that prints.
    pub(crate) fn run(&self, block: &str) -> String {
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", self.0.path().display());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut shell = outside("sh");
        shell.args(["-euc", block]).env("PATH", path);
        let done = shell.current_dir(root).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let told = text(&done);
        assert!(done.status.success(), "{block}{told}{said}");
        told
    }
}

/// The commands below a heading.
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

/// Does what a block for nodes says.
pub(crate) fn on_every_node(block: &str) {
    for node in NODES {
        on_node(node, &format!("set -eu\n{block}"));
    }
}
