//! The kernels the guests boot: Debian's cloud kernels of three suites, whatever their version
//! is today.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::archive::{Archive, Package};
use super::store::{Store, Unpacked, Wanted};

/// The metapackage that each suite points at its newest cloud kernel.
const METAPACKAGE: &str = "linux-image-cloud-amd64";

/// Where the kernel proper and its modules are: one package up to 6.12, two of their own since.
const PARTS: [&str; 3] = ["linux-image-", "linux-binary-", "linux-modules-"];

/// A kernel line that the project supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Line {
    /// Debian bookworm's.
    #[value(name = "6.1")]
    V6_1,
    /// Debian bookworm-backports'.
    #[value(name = "6.12")]
    V6_12,
    /// The newest one Debian has.
    Sid,
}

impl Line {
    /// Every line, oldest first.
    pub(crate) const ALL: [Self; 3] = [Self::V6_1, Self::V6_12, Self::Sid];

    /// The Debian suite it comes from.
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

/// A kernel on disk.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The line it is the newest of.
    pub line: Line,
    /// Its release as `uname -r` prints it.
    pub release: String,
    /// The image to boot.
    pub image: PathBuf,
    /// The folder `kernel/` with its modules.
    pub modules: PathBuf,
    /// Changes when the package does.
    pub identity: String,
}

impl Kernel {
    /// The newest kernel of `line`, fetched when needed.
    pub(crate) fn find(store: &Store, line: Line) -> anyhow::Result<Self> {
        let suite = line.suite();
        let unpacked = store.ensure(&Wanted {
            name: &format!("kernel-{line}"),
            resolve: &|archive| {
                let packages = parts(archive, suite)?;
                Ok(packages.iter().map(Package::to_string).collect())
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

    /// Finds image and modules below the folder the packages were unpacked into.
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

/// The packages that hold the newest kernel of `suite` and its modules.
fn parts(archive: &Archive, suite: &str) -> anyhow::Result<Vec<Package>> {
    let mut names = archive.show(suite, METAPACKAGE)?.depends;
    let mut found: Vec<Package> = Vec::new();
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
