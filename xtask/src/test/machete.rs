//! Runs cargo-machete, which finds dependencies that a manifest names and no source line uses.

use super::run::{CommandResult, run_tool};
use crate::tools::Tool;

const MACHETE: Tool = Tool {
    name: "cargo-machete",
    version: "^0.9",
    arguments: &[],
};

/// Checks every manifest of the tree, those of the fuzz crates included.
pub(super) fn check() -> CommandResult {
    // Without the metadata it does not see unused dev-dependencies.
    // Paths in the output are relative to the folder that the program is given.
    run_tool(&MACHETE, &["--with-metadata", "--skip-target-dir", "."])
}
