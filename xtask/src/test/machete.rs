//! Runs cargo-machete, which finds dependencies that a manifest names and no source line uses.

use std::process::Command;

use super::run::{CommandResult, run};
use crate::tools::{self, Tool};
use testbed::paths;

const MACHETE: Tool = Tool {
    name: "cargo-machete",
    version: "^0.9",
    arguments: &[],
};

/// Checks every manifest of the tree, those of the fuzz crates included.
pub(super) fn check() -> CommandResult {
    match tools::program(&MACHETE) {
        Ok(program) => {
            let mut command = Command::new(program);
            // Without the metadata it does not see unused dev-dependencies.
            // Paths in the output are relative to the folder that the program is given.
            command
                .current_dir(paths::root())
                .args(["--with-metadata", "--skip-target-dir", "."]);
            run(command)
        }
        Err(error) => CommandResult {
            success: false,
            output: format!("{error:#}\n"),
        },
    }
}
