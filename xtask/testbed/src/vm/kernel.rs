//! Finds the kernels for guests: the newest cloud kernels of three Debian suites.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::archive::{Archive, DebianPackage};
use super::store::{PackageSet, Store, Unpacked};

/// The metapackage that depends on a suite's newest cloud kernel.
const METAPACKAGE: &str = "linux-image-cloud-amd64";

/// Prefixes of the packages with kernel and modules: one package up to 6.12, separate packages since.
const PARTS: [&str; 3] = ["linux-image-", "linux-binary-", "linux-modules-"];

/// A supported kernel line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Line {
    /// Debian bookworm's.
    #[value(name = "6.1")]
    V6_1,
    /// Debian bookworm-backports'.
    #[value(name = "6.12")]
    V6_12,
    /// Debian's newest.
    Sid,
}

impl Line {
    /// Every line, oldest first.
    pub(crate) const ALL: [Self; 3] = [Self::V6_1, Self::V6_12, Self::Sid];

    /// Its Debian suite.
    fn suite(self) -> &'static str {
        match self {
            Self::V6_1 => "bookworm",
            Self::V6_12 => "bookworm-backports",
            Self::Sid => "sid",
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::Sid => "sid",
        })
    }
}

#[derive(Debug, Clone)]
pub struct Kernel {
    pub line: Line,
    /// Its release as `uname -r` prints it.
    pub release: String,
    pub image: PathBuf,
    /// The folder `kernel/` with its modules.
    pub modules: PathBuf,
    /// Changes with the version of the package.
    pub identity: String,
}

impl Kernel {
    /// Returns the newest kernel of `line`, and downloads it if it is missing.
    pub(crate) fn find(store: &Store, line: Line) -> anyhow::Result<Self> {
        let suite = line.suite();
        let unpacked = store.ensure(&PackageSet {
            name: &format!("kernel-{line}"),
            resolve: &|archive| {
                let packages = parts(archive, suite)?;
                Ok(packages.iter().map(DebianPackage::to_string).collect())
            },
            fetch: &|archive| archive.download(&parts(archive, suite)?),
        })?;
        Self::locate(line, &unpacked).with_context(|| {
            format!(
                "the packages of kernel {line} are not laid out as expected: {}",
                unpacked.root.display()
            )
        })
    }

    /// Finds image and modules in the unpacked packages.
    fn locate(line: Line, unpacked: &Unpacked) -> anyhow::Result<Self> {
        let root = &unpacked.root;
        let modules = [root.join("usr/lib/modules"), root.join("lib/modules")]
            .into_iter()
            .find(|folder| folder.is_dir())
            .context("no folder lib/modules")?;
        let home = only_entry(&modules)?;
        let release = home
            .file_name()
            .context("a module folder without a name")?
            .to_string_lossy()
            .into_owned();
        let image = [
            home.join("vmlinuz"),
            root.join("boot").join(format!("vmlinuz-{release}")),
        ]
        .into_iter()
        .find(|image| image.is_file())
        .context("no vmlinuz")?;
        Ok(Self {
            line,
            release,
            image,
            modules: home.join("kernel"),
            identity: unpacked.identity.clone(),
        })
    }
}

/// Returns the packages with the newest kernel of `suite` and its modules.
fn parts(archive: &Archive, suite: &str) -> anyhow::Result<Vec<DebianPackage>> {
    let mut names = archive.show(suite, METAPACKAGE)?.depends;
    let mut found: Vec<DebianPackage> = Vec::new();
    while let Some(name) = names.pop() {
        let wanted = PARTS.iter().any(|part| name.starts_with(part));
        if !wanted || found.iter().any(|package| package.name == name) {
            continue;
        }
        let package = archive.show(suite, &name)?;
        names.extend(package.depends.iter().cloned());
        found.push(package);
    }
    if found.is_empty() {
        bail!("{METAPACKAGE} of {suite} names no kernel");
    }
    Ok(found)
}

fn only_entry(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut entries = fs::read_dir(folder)?;
    let first = entries.next().context("an empty module folder")??;
    if entries.next().is_some() {
        bail!("more than one kernel in {}", folder.display());
    }
    Ok(first.path())
}
