//! Builds the program that contains every part of the control plane, once for each version and source.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::go;
use crate::paths;
use crate::vm::progress::ProgressLine;
use crate::vm::store::{fingerprint, remove_old};

/// Interval of progress lines during a build.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A minor of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Version {
    /// The newest released one.
    Newest,
    /// The oldest that we support.
    Oldest,
}

impl Version {
    /// The name in folder names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
        }
    }

    /// Its module file.
    fn modules(self) -> &'static str {
        match self {
            Self::Newest => "go.mod",
            Self::Oldest => "oldest.mod",
        }
    }

    /// Reads its release, such as `v1.36.3`.
    pub fn release(self) -> anyhow::Result<String> {
        let modules = fs::read_to_string(source().join(self.modules()))?;
        release(&modules)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    /// All parts of the control plane in one program.
    ControlPlane,
    Kubelet,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::ControlPlane => "kubernetes",
            Self::Kubelet => "kubelet",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::ControlPlane => ".",
            Self::Kubelet => "./kubelet",
        }
    }

    /// Its sources, without the module file and its checksums.
    fn sources(self) -> &'static [&'static str] {
        match self {
            Self::ControlPlane => &["main.go", "certify.go", "etcd.go", "fill.go", "pki.go"],
            Self::Kubelet => &["kubelet/main.go"],
        }
    }
}

/// Returns the path of the program with every part, and builds it if its sources have changed.
pub(crate) fn build(version: Version) -> anyhow::Result<PathBuf> {
    build_one(Program::ControlPlane, version)
}

/// Returns the path of the kubelet in the same way.
pub(crate) fn build_kubelet(version: Version) -> anyhow::Result<PathBuf> {
    build_one(Program::Kubelet, version)
}

fn build_one(what: Program, version: Version) -> anyhow::Result<PathBuf> {
    let release = version.release()?;
    let home = paths::cache().join("controlplane");
    let home = home.join(format!("{}-{}", what.name(), version.name()));
    fs::create_dir_all(&home)?;
    let mut parts = Vec::new();
    for file in what.sources().iter().chain([&version.modules()]) {
        parts.push(fs::read_to_string(source().join(file))?);
    }
    let name = format!("{}-{release}-{}", what.name(), fingerprint(&parts));
    let program = home.join(name);
    // Concurrent commands build it once.
    let lock = File::create(home.with_extension("lock"))?;
    lock.lock()?;
    if !program.exists() {
        compile(what, version, &program)?;
        remove_old(&home, &program)?;
    }
    Ok(program)
}

fn compile(what: Program, version: Version, program: &Path) -> anyhow::Result<()> {
    let release = version.release()?;
    let step = ProgressLine::begin(format!(
        "building {} {release} from Go modules (once, some minutes)",
        what.name()
    ));
    let unfinished = program.with_file_name("unfinished");
    let mut go = go::command(&fs::read_to_string(source().join(version.modules()))?)?;
    go.current_dir(source())
        .env("CGO_ENABLED", "0")
        .args(["build", "-trimpath", "-buildvcs=false"])
        .arg(format!("-modfile={}", version.modules()))
        .args(["-ldflags", &linker_flags(&release)])
        .arg("-o")
        .args([unfinished.as_os_str(), what.package().as_ref()]);
    wait(go.spawn().context("cannot start Go")?, &step)?;
    fs::rename(&unfinished, program)?;
    step.done("");
    Ok(())
}

/// Strips symbols and sets the version that the program reports.
fn linker_flags(release: &str) -> String {
    let package = "k8s.io/component-base/version";
    let minor: Vec<&str> = release.trim_start_matches('v').split('.').collect();
    let [major, minor, ..] = minor.as_slice() else {
        return "-s -w".to_owned();
    };
    format!(
        "-s -w -X {package}.gitVersion={release} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
}

fn wait(mut go: Child, step: &ProgressLine) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut next = HEARTBEAT;
    loop {
        if let Some(status) = go.try_wait()? {
            if !status.success() {
                bail!("`go build` of the control plane failed ({status})");
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

fn source() -> PathBuf {
    paths::root().join("xtask/controlplane")
}

/// Returns the version of Kubernetes that the module file requires.
fn release(modules: &str) -> anyhow::Result<String> {
    let version = modules
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    Ok(version
        .context("the module file names no version of k8s.io/kubernetes")?
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_the_required_one_not_a_replacement() {
        let modules = "require (\n\tk8s.io/client-go v0.36.3\n\tk8s.io/kubernetes v1.36.3\n)\n\
                       replace k8s.io/api => k8s.io/api v0.36.3\n";
        assert_eq!(release(modules).unwrap(), "v1.36.3");
        assert!(release("module x\n").is_err());
        assert!(linker_flags("v1.36.3").ends_with("gitMinor=36"));
    }
}
