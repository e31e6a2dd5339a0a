//! Runs cargo-semver-checks, which compares the public items of the libraries with those of the last release.

use std::path::Path;
use std::process::Command;

use super::run::{CommandResult, run_tool};
use crate::tools::Tool;
use testbed::paths;

const SEMVER_CHECKS: Tool = Tool {
    name: "cargo-semver-checks",
    version: "^0.51",
    arguments: &[],
};

/// The packages that others depend on.
const LIBRARIES: [&str; 3] = ["netlink-pipeline", "ipvs-netlink", "topology-core"];

/// Compares the libraries with the newest tag `v*` before this commit. `None` if there is no such tag.
pub(super) fn check() -> Option<CommandResult> {
    let tag = last_release(paths::root())?;
    let check = ["semver-checks", "check-release", "--baseline-rev", &tag];
    let packages = LIBRARIES.map(|library| ["--package", library]);
    let arguments = [&check[..], &packages.concat()].concat();
    Some(run_tool(&SEMVER_CHECKS, &arguments))
}

fn last_release(root: &Path) -> Option<String> {
    let mut git = Command::new("git");
    git.arg("-C")
        .arg(root)
        .args(["describe", "--tags", "--abbrev=0", "--match", "v*"]);
    let output = git.output().ok().filter(|output| output.status.success())?;
    let tag = String::from_utf8(output.stdout).ok()?;
    Some(tag.trim().to_owned()).filter(|tag| !tag.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(root: &Path, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.arg("-C")
            .arg(root)
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        assert!(git.args(arguments).output().unwrap().status.success());
    }

    #[test]
    fn the_newest_release_before_this_commit_is_the_baseline() {
        let folder = std::env::temp_dir().join(format!("semver-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let root = folder.as_path();
        git(root, &["init", "--quiet"]);
        let commit = ["commit", "--quiet", "--allow-empty", "--message", "one"];
        git(root, &commit);
        assert_eq!(last_release(root), None);
        git(root, &["tag", "v0.1.0"]);
        git(root, &commit);
        git(root, &["tag", "other"]);
        assert_eq!(last_release(root).as_deref(), Some("v0.1.0"));
        std::fs::remove_dir_all(root).unwrap();
    }
}
