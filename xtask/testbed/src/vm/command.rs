//! Runs programs of the host and turns their failures into error messages.

use std::io;
use std::process::Command;

use anyhow::{anyhow, bail};

/// The Debian packages of programs that must be installed on the machine.
const PACKAGES: [(&str, &str); 4] = [
    ("apt-get", "apt"),
    ("apt-cache", "apt"),
    ("apt-config", "apt"),
    ("dpkg-deb", "dpkg"),
];

/// Runs `command` and returns its standard output, or an error with its standard error.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|error| explain(&program, error))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("`{program}` failed ({}):\n{}", done.status, said.trim_end());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

fn explain(program: &str, error: io::Error) -> anyhow::Error {
    let package = PACKAGES.iter().find(|(name, _)| *name == program);
    match (error.kind(), package) {
        (io::ErrorKind::NotFound, Some((_, package))) => {
            anyhow!("the program `{program}` is missing: install the package {package}")
        }
        _ => anyhow!(error).context(format!("cannot start `{program}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_named_with_its_package() {
        let error = output(Command::new("dpkg-deb").env("PATH", "/nowhere")).unwrap_err();
        let words = "the program `dpkg-deb` is missing: install the package dpkg";
        assert_eq!(format!("{error:#}"), words);
    }
}
