//! Finds the Go that builds Kubernetes: the machine's own, or Debian's if that is missing or too old.

pub(crate) mod program;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::vm::command::output;
use crate::vm::store::Store;
use crate::vm::tools::Tools;

/// The Debian suite whose Go is new enough.
const SUITE: &str = "sid";

/// A release of Go: `1.26`. The patch release is not compared, since modules require the first of a minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Release {
    major: u32,
    minor: u32,
}

/// Returns a command that runs the Go release that the module file `modules` requires, or a newer one.
fn command(modules: &str) -> anyhow::Result<Command> {
    let wanted = modules.lines().find_map(|line| line.strip_prefix("go "));
    let wanted = wanted.and_then(parse);
    let wanted = wanted.context("the module file names no release of Go")?;
    if of_machine().is_some_and(|found| found >= wanted) {
        return Ok(Command::new("go"));
    }
    let home = fetched(wanted)?;
    let mut go = Command::new(home.join("bin/go"));
    go.env("GOROOT", home).env("GOTOOLCHAIN", "local");
    Ok(go)
}

/// Returns the release on the `PATH`, not one that Go would download.
fn of_machine() -> Option<Release> {
    let mut go = Command::new("go");
    let version = output(go.args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local"));
    parse(version.ok()?.trim().strip_prefix("go")?)
}

/// Returns the folder of Debian's Go. Its programs are static, so they need none of the machine's libraries.
fn fetched(Release { major, minor }: Release) -> anyhow::Result<PathBuf> {
    let name = format!("go-{major}.{minor}");
    let package = format!("golang-{major}.{minor}-go");
    let found = Tools::of(&Store::open(false)?, &name, SUITE, &[&package]);
    let tools = found.with_context(|| {
        format!("no Go {major}.{minor} on the PATH, and none in Debian's archive: install one (https://go.dev/dl)")
    })?;
    let home = tools.file(&format!("usr/lib/{name}"));
    if !home.join("bin/go").exists() {
        bail!("Debian's package {package} holds no {}", home.display());
    }
    Ok(home)
}

fn parse(text: &str) -> Option<Release> {
    let mut parts = text.split('.');
    Some(Release {
        major: parts.next()?.parse().ok()?,
        minor: parts.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minors_are_compared_as_numbers() {
        let [old, new] = ["1.9.4", "1.26.0"].map(|text| parse(text).unwrap());
        assert!(old < new);
        assert_eq!(parse("1.26.10"), Some(new));
        assert_eq!(parse("devel"), None);
    }

    #[test]
    fn a_module_file_without_a_release_is_named() {
        let error = command("module x\n").unwrap_err();
        assert!(error.to_string().contains("no release of Go"), "{error}");
    }
}
