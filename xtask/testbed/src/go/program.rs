//! Builds a static Go program from a module of this project into the cache, once for each version and source.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::paths;
use crate::vm::command::output;
use crate::vm::progress::ProgressLine;
use crate::vm::store::{fingerprint, remove_old};

/// Interval of progress lines during a build.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What Go makes from a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// Its program.
    Program,
    /// A program that runs its tests.
    Tests,
}

/// A program and its sources.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GoProgram {
    pub(crate) name: &'static str,
    /// The folder of the module in the source tree, and of the programs in the cache.
    pub(crate) module: &'static str,
    /// The module file.
    pub(crate) modules: &'static str,
    /// A word in the folder's name for each module file.
    pub(crate) variant: &'static str,
    /// The package, as `go build` reads it.
    pub(crate) package: &'static str,
    /// Its sources in the module, without the module file and its checksums.
    pub(crate) sources: &'static [&'static str],
    pub(crate) output: Output,
    /// The module whose version is the program's release.
    pub(crate) release_of: &'static str,
}

/// The module of Kubernetes' own programs.
pub(crate) const KUBERNETES: &str = "k8s.io/kubernetes";

impl GoProgram {
    /// Returns the path of the program, and builds it if its sources have changed.
    pub(crate) fn build(&self) -> anyhow::Result<PathBuf> {
        let release = self.release()?;
        let home = paths::cache().join(self.module);
        let home = home.join(format!("{}-{}", self.name, self.variant));
        fs::create_dir_all(&home)?;
        let mut parts = Vec::new();
        for file in self.sources.iter().chain([&self.modules]) {
            parts.push(self.read(file)?);
        }
        let program = home.join(format!("{}-{release}-{}", self.name, fingerprint(&parts)));
        // Concurrent commands build it once.
        let lock = File::create(home.with_extension("lock"))?;
        lock.lock()?;
        if !program.exists() {
            self.compile(&release, &program)?;
            remove_old(&home, &program)?;
        }
        Ok(program)
    }

    /// Reads the version of [`Self::release_of`] that the module file requires, such as `v1.36.3`.
    pub(crate) fn release(&self) -> anyhow::Result<String> {
        release(&self.read(self.modules)?, self.release_of)
    }

    /// Returns the folder with the source of `package`, a dependency of the module, and downloads it if need be.
    pub(crate) fn folder_of(&self, package: &str) -> anyhow::Result<PathBuf> {
        let mut go = super::command(&self.read(self.modules)?)?;
        go.current_dir(self.source())
            .arg("list")
            .arg(format!("-modfile={}", self.modules))
            .args(["-f", "{{.Dir}}", package]);
        Ok(output(&mut go)?.trim().into())
    }

    fn compile(&self, release: &str, program: &Path) -> anyhow::Result<()> {
        let step = ProgressLine::begin(format!(
            "building {} {release} from Go modules (once, some minutes)",
            self.name
        ));
        let unfinished = program.with_file_name("unfinished");
        let mut go = super::command(&self.read(self.modules)?)?;
        go.current_dir(self.source()).env("CGO_ENABLED", "0");
        match self.output {
            Output::Program => go.arg("build"),
            // Without `-vet=off`, Go checks every package that the tests link.
            Output::Tests => go.args(["test", "-vet=off", "-c"]),
        };
        go.args(["-trimpath", "-buildvcs=false"])
            .arg(format!("-modfile={}", self.modules))
            .args(["-ldflags", &self.linker_flags(release)])
            .arg("-o")
            .args([unfinished.as_os_str(), self.package.as_ref()]);
        self.wait(start(&mut go)?, &step)?;
        fs::rename(&unfinished, program)?;
        step.done("");
        Ok(())
    }

    /// Strips symbols. Programs of Kubernetes report the release as their version.
    fn linker_flags(&self, release: &str) -> String {
        let strip = "-s -w".to_owned();
        if self.release_of == KUBERNETES {
            strip + &version_flags(release)
        } else {
            strip
        }
    }

    fn wait(&self, mut go: Child, step: &ProgressLine) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut next = HEARTBEAT;
        loop {
            if let Some(status) = go.try_wait()? {
                if !status.success() {
                    bail!("Go cannot build {} ({status})", self.name);
                }
                return Ok(());
            }
            if began.elapsed() > next {
                step.report(&format!("{} s", next.as_secs()));
                next += HEARTBEAT;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn read(&self, file: &str) -> anyhow::Result<String> {
        let path = self.source().join(file);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    fn source(&self) -> PathBuf {
        paths::root().join("xtask").join(self.module)
    }
}

fn start(go: &mut Command) -> anyhow::Result<Child> {
    go.spawn().context("cannot start Go")
}

/// Sets the version that a program of Kubernetes reports.
fn version_flags(release: &str) -> String {
    let package = "k8s.io/component-base/version";
    let minor: Vec<&str> = release.trim_start_matches('v').split('.').collect();
    let [major, minor, ..] = minor.as_slice() else {
        return String::new();
    };
    format!(
        " -X {package}.gitVersion={release} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
}

/// Returns the version of the module `wanted` that the module file requires.
fn release(modules: &str, wanted: &str) -> anyhow::Result<String> {
    let version = modules.lines().find_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("require ").unwrap_or(line);
        let mut words = line.strip_prefix(wanted)?.strip_prefix(' ')?.split(' ');
        words.next()
    });
    let version = version.with_context(|| format!("the module file names no version of {wanted}"));
    Ok(version?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_the_required_one_not_a_replacement() {
        let modules = "require (\n\tk8s.io/client-go v0.36.3\n\tk8s.io/kubernetes v1.36.3\n)\n\
                       replace k8s.io/api => k8s.io/api v0.36.3\n";
        assert_eq!(release(modules, KUBERNETES).unwrap(), "v1.36.3");
        let one = "require k8s.io/kubernetes v1.37.2\n";
        assert_eq!(release(one, KUBERNETES).unwrap(), "v1.37.2");
        let indirect = "require (\n\tgo.universe.tf/metallb v0.15.2 // indirect\n)\n";
        assert_eq!(
            release(indirect, "go.universe.tf/metallb").unwrap(),
            "v0.15.2"
        );
        assert!(release("module x\n", KUBERNETES).is_err());
        assert!(version_flags("v1.36.3").ends_with("gitMinor=36"));
    }
}
