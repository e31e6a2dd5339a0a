//! Installs a browser for the test that opens the page of `ipvs-topo simulate`.

use std::process::{Command, Stdio};

use super::run::{CommandResult, run};
use super::step_result::StepResult;

/// The names of suitable browsers.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

const ADVICE: &str =
    "no browser: install the Debian package chromium; root may do it by running this again";

/// Installs a browser if none is installed.
pub(super) fn ensure() -> StepResult {
    let mut said = String::new();
    for arguments in [
        &["update"][..],
        &["install", "--yes", "--no-install-recommends", "chromium"],
    ] {
        if is_there() {
            break;
        }
        anstream::println!("test:   no browser here: apt-get {}", arguments.join(" "));
        let mut command = Command::new("apt-get");
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        let CommandResult { output, .. } = run(command);
        said.push_str(&output);
    }
    if is_there() {
        StepResult::gate(true, said)
    } else {
        StepResult::gate(false, format!("{said}\n{ADVICE}"))
    }
}

fn is_there() -> bool {
    let starts = |name: &&str| {
        let mut command = Command::new(name);
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        quiet
            .arg("--version")
            .status()
            .is_ok_and(|status| status.success())
    };
    NAMES.iter().any(starts)
}
