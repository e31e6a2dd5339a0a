//! Downloads packages of Debian's archive with a private apt, whose sources, lists, cache and package database are in
//! the cache folder. It neither reads nor changes the machine's own apt.
//!
//! Packages are resolved against an *empty* package database. The download includes every dependency down to the C
//! library, and runs from its folder independently of the installed packages.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::command;

/// The variable that names a mirror for machines without Debian in their apt sources.
const MIRROR_VARIABLE: &str = "IPVS_TOPO_DEBIAN_MIRROR";

/// The suites of the guests' kernels and tools.
const SUITES: [&str; 3] = ["bookworm", "bookworm-backports", "sid"];

/// Packages of sid are used only if the suite is named, even if no older suite has a newer version.
const PREFERENCES: &str = "Package: *\nPin: release n=sid\nPin-Priority: 50\n";

/// The keyring of the package `debian-archive-keyring`.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

pub(crate) struct Archive {
    folder: PathBuf,
}

impl Archive {
    /// Configures the private apt in `folder` and downloads the package lists.
    pub(crate) fn update(folder: &Path) -> anyhow::Result<Self> {
        ensure!(
            Path::new(KEYRING).exists(),
            "{KEYRING} is missing, and without it Debian's packages cannot be trusted: install the package \
             debian-archive-keyring"
        );
        let folder = std::path::absolute(folder)?;
        for part in [
            "state/lists/partial",
            "cache/archives/partial",
            "etc/preferences.d",
        ] {
            fs::create_dir_all(folder.join(part))?;
        }
        fs::write(folder.join("state/status"), "")?;
        fs::write(folder.join("etc/sources.list"), sources()?)?;
        fs::write(folder.join("etc/preferences"), PREFERENCES)?;
        fs::write(folder.join("apt.conf"), configuration(&folder)?)?;
        let archive = Self { folder };
        // apt does not list files that an interrupted run has downloaded.
        archive.clean()?;
        command::output(archive.apt("apt-get").args(["-q", "update"]))
            .context("cannot read Debian's package lists")?;
        Ok(archive)
    }

    /// Downloads `packages` with all dependencies, and returns the package files.
    pub(crate) fn closure(&self, suite: &str, packages: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
        let files = self.closure_names(suite, packages)?;
        command::output(
            self.install(suite)
                .args(["--download-only", "install"])
                .args(packages),
        )?;
        let archives = self.folder.join("cache/archives");
        Ok(files.iter().map(|file| archives.join(file)).collect())
    }

    /// Returns the file names, with versions, of `packages` and all dependencies.
    pub(crate) fn closure_names(
        &self,
        suite: &str,
        packages: &[&str],
    ) -> anyhow::Result<Vec<String>> {
        let listed = command::output(
            self.install(suite)
                .args(["--print-uris", "install"])
                .args(packages),
        )?;
        // Each line: 'URI' FILE SIZE CHECKSUM. apt does not list files that are in its cache.
        let mut files: Vec<String> = listed
            .lines()
            .filter(|line| line.starts_with('\''))
            .filter_map(|line| line.split(' ').nth(1))
            .map(str::to_owned)
            .collect();
        files.sort();
        Ok(files)
    }

    /// Reads version and dependencies of the package `name` in `suite`.
    pub(crate) fn show(&self, suite: &str, name: &str) -> anyhow::Result<DebianPackage> {
        let text = command::output(self.apt("apt-cache").args([
            "-t",
            suite,
            "--no-all-versions",
            "show",
            name,
        ]))?;
        DebianPackage::parse(&text).with_context(|| format!("no package {name} in {suite}"))
    }

    /// Downloads exactly `packages`, without dependencies, and returns the package files.
    pub(crate) fn download(&self, packages: &[DebianPackage]) -> anyhow::Result<Vec<PathBuf>> {
        let folder = self.folder.join("cache/archives");
        command::output(
            self.apt("apt-get")
                .current_dir(&folder)
                .args(["-q", "download"])
                .args(packages.iter().map(DebianPackage::to_string)),
        )?;
        packages
            .iter()
            .map(|package| find_archive(&folder, package))
            .collect()
    }

    /// Removes the downloaded package files, which are unpacked.
    pub(crate) fn clean(&self) -> anyhow::Result<()> {
        command::output(self.apt("apt-get").arg("clean")).map(drop)
    }

    fn install(&self, suite: &str) -> Command {
        let mut command = self.apt("apt-get");
        command.args(["-q", "-y", "--no-install-recommends", "-t", suite]);
        command
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("APT_CONFIG", self.folder.join("apt.conf"))
            .env("LC_ALL", "C");
        command
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DebianPackage {
    pub(crate) name: String,
    pub(crate) version: String,
    /// First alternative of each dependency, names only.
    pub(crate) depends: Vec<String>,
}

impl DebianPackage {
    /// Parses one stanza of `apt-cache show`.
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let first_word = |entry: &str| entry.split_whitespace().next().map(str::to_owned);
        Some(Self {
            name: field("Package")?.to_owned(),
            version: field("Version")?.to_owned(),
            depends: field("Depends")
                .unwrap_or_default()
                .split(',')
                .filter_map(first_word)
                .collect(),
        })
    }
}

impl fmt::Display for DebianPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.version)
    }
}

/// The folder with the file lists of unpacked packages, below the folder into which they were unpacked.
const LISTS: &str = "packages";

/// Unpacks package files into `root`, and stores the list of files of each.
pub(crate) fn unpack(packages: &[PathBuf], root: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(root.join(LISTS))?;
    for package in packages {
        let files = command::output(Command::new("dpkg-deb").arg("-X").arg(package).arg(root))?;
        let name = package.file_stem().context("a package without a name")?;
        fs::write(root.join(LISTS).join(name), files)?;
    }
    Ok(())
}

/// An unpacked package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InstalledPackage {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Paths relative to the folder into which they were unpacked.
    pub(crate) files: BTreeSet<String>,
}

/// Lists the packages below `root`.
pub(crate) fn installed_packages(root: &Path) -> anyhow::Result<Vec<InstalledPackage>> {
    let mut installed_packages = Vec::new();
    for entry in fs::read_dir(root.join(LISTS))? {
        let path = entry?.path();
        let stem = path.file_name().unwrap_or_default().to_string_lossy();
        let (name, rest) = stem
            .split_once('_')
            .context("a package without a version")?;
        let version = rest.rsplit_once('_').map_or(rest, |(version, _)| version);
        let listed = fs::read_to_string(&path)?;
        let files = listed.lines().map(|line| line.trim_start_matches("./"));
        installed_packages.push(InstalledPackage {
            name: name.to_owned(),
            version: version.replace("%3a", ":"),
            files: files.map(str::to_owned).collect(),
        });
    }
    installed_packages.sort();
    Ok(installed_packages)
}

/// Finds the file of a package. apt escapes the `:` of an epoch in file names.
fn find_archive(folder: &Path, package: &DebianPackage) -> anyhow::Result<PathBuf> {
    let start = format!("{}_{}_", package.name, package.version.replace(':', "%3a"));
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&start) {
            return Ok(path);
        }
    }
    bail!("{start}*.deb was not downloaded into {}", folder.display())
}

/// Returns the private `sources.list`: each suite, signed by Debian's keyring.
fn sources() -> anyhow::Result<String> {
    let mirror = mirror()?;
    let lines =
        SUITES.map(|suite| format!("deb [arch=amd64 signed-by={KEYRING}] {mirror} {suite} main\n"));
    Ok(lines.concat())
}

/// Returns the mirror: the variable, else the first of the machine's sources that serves Debian.
fn mirror() -> anyhow::Result<String> {
    if let Ok(mirror) = std::env::var(MIRROR_VARIABLE) {
        return Ok(mirror);
    }
    let targets = command::output(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(COMPONENT) $(REPO_URI)",
        "Created-By: Packages",
    ]))
    .context("the guests' kernels come as Debian packages")?;
    debian_mirror(&targets).with_context(|| {
        format!("none of this machine's apt sources serves Debian: set {MIRROR_VARIABLE} to a mirror's address")
    })
}

/// Returns the first address in `targets` whose path ends in `debian` and whose component is `main`.
fn debian_mirror(targets: &str) -> Option<String> {
    targets
        .lines()
        .filter_map(|line| line.strip_prefix("main "))
        .map(|uri| uri.trim_end_matches('/'))
        .find(|uri| uri.ends_with("/debian"))
        .map(str::to_owned)
}

/// Returns the private `apt.conf`. It keeps the machine's settings for downloads (proxies, certificates), but not its
/// hooks.
fn configuration(folder: &Path) -> anyhow::Result<String> {
    let fetch: String = command::output(Command::new("apt-config").args(["dump", "Acquire"]))?
        .lines()
        .filter(|line| line.starts_with("Acquire::http") || line.starts_with("Acquire::https"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let folder = folder.display();
    Ok(format!(
        r#"{fetch}Dir "{folder}";
Dir::State "{folder}/state";
Dir::State::status "{folder}/state/status";
Dir::Cache "{folder}/cache";
Dir::Etc "{folder}/etc";
Dir::Etc::parts "/dev/null";
APT::Architecture "amd64";
APT::Sandbox::User "";
Acquire::Languages "none";
// Frozen mirrors serve lists past their date; apt still checks the signatures.
Acquire::Check-Valid-Until "false";
"#
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stanza_gives_name_version_and_first_alternatives() {
        let text = "Package: linux-image-7.2\nVersion: 7.2.13-1\n\
                    Depends: dracut | initramfs-tools, linux-binary-7.2 (= 7.2.13-1)\n";
        assert_eq!(
            DebianPackage::parse(text),
            Some(DebianPackage {
                name: "linux-image-7.2".to_owned(),
                version: "7.2.13-1".to_owned(),
                depends: vec!["dracut".to_owned(), "linux-binary-7.2".to_owned()],
            })
        );
        assert_eq!(DebianPackage::parse("N: no packages found"), None);
    }

    #[test]
    fn the_mirror_is_debians_own_archive_not_security_or_a_strangers() {
        let targets = "main http://mirror.test/debian-security/\ncontrib http://a.test/debian\n\
                       main http://stranger.test/apt\nmain http://mirror.test/debian/\n";
        assert_eq!(
            debian_mirror(targets).as_deref(),
            Some("http://mirror.test/debian")
        );
        assert_eq!(debian_mirror("main http://stranger.test/apt\n"), None);
    }
}
