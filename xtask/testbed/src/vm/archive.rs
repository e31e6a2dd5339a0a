//! Debian's archive, read through a private apt: own sources, lists, cache and package database
//! under the cache folder, so that the machine's own apt is neither asked nor changed.
//!
//! Every package is resolved against an *empty* package database: what is downloaded is complete
//! down to the C library and runs from its folder, whatever the machine has installed.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::command;

/// Names a mirror for machines whose own apt sources name none of Debian's.
const MIRROR_VARIABLE: &str = "IPVS_TOPO_DEBIAN_MIRROR";

/// The suites the guests' kernels and tools come from.
const SUITES: [&str; 3] = ["bookworm", "bookworm-backports", "sid"];

/// Nothing comes from sid unless it is asked for there, even what no older suite has newer.
const PREFERENCES: &str = "Package: *\nPin: release n=sid\nPin-Priority: 50\n";

/// The keyring of the package `debian-archive-keyring`.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A private apt with fresh package lists.
pub(crate) struct Archive {
    folder: PathBuf,
}

impl Archive {
    /// Sets the private apt up in `folder` and fetches the package lists.
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
        // A file left by an interrupted run would not be listed by the next one.
        archive.clean()?;
        command::output(archive.apt("apt-get").args(["-q", "update"]))
            .context("cannot read Debian's package lists")?;
        Ok(archive)
    }

    /// Downloads `packages` with everything they depend on; the package files.
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

    /// The file names, versions included, of `packages` and everything they depend on.
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
        // Each line: 'URI' FILE SIZE CHECKSUM. A file that is in the cache already is not listed.
        let mut files: Vec<String> = listed
            .lines()
            .filter(|line| line.starts_with('\''))
            .filter_map(|line| line.split(' ').nth(1))
            .map(str::to_owned)
            .collect();
        files.sort();
        Ok(files)
    }

    /// The package that `name` is in `suite`: version and names of what it depends on.
    pub(crate) fn show(&self, suite: &str, name: &str) -> anyhow::Result<Package> {
        let text = command::output(self.apt("apt-cache").args([
            "-t",
            suite,
            "--no-all-versions",
            "show",
            name,
        ]))?;
        Package::parse(&text).with_context(|| format!("no package {name} in {suite}"))
    }

    /// Downloads exactly `packages`, without what they depend on; the package files.
    pub(crate) fn download(&self, packages: &[Package]) -> anyhow::Result<Vec<PathBuf>> {
        let folder = self.folder.join("cache/archives");
        command::output(
            self.apt("apt-get")
                .current_dir(&folder)
                .args(["-q", "download"])
                .args(packages.iter().map(Package::to_string)),
        )?;
        packages
            .iter()
            .map(|package| find_archive(&folder, package))
            .collect()
    }

    /// Removes the downloaded package files: what was in them is unpacked.
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

/// A package as the index describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// First alternative of each dependency, names only.
    pub(crate) depends: Vec<String>,
}

impl Package {
    /// Reads one stanza of `apt-cache show`.
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

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.version)
    }
}

/// Where the lists of what each package brought are, below the folder they were unpacked into.
const LISTS: &str = "packages";

/// Unpacks package files into `root`, and keeps what each of them brought.
pub(crate) fn unpack(packages: &[PathBuf], root: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(root.join(LISTS))?;
    for package in packages {
        let files = command::output(Command::new("dpkg-deb").arg("-X").arg(package).arg(root))?;
        let name = package.file_stem().context("a package without a name")?;
        fs::write(root.join(LISTS).join(name), files)?;
    }
    Ok(())
}

/// A package that was unpacked, and what it brought.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Paths from the folder they were unpacked into.
    pub(crate) files: BTreeSet<String>,
}

/// Every package below `root`.
pub(crate) fn owners(root: &Path) -> anyhow::Result<Vec<Owner>> {
    let mut owners = Vec::new();
    for entry in fs::read_dir(root.join(LISTS))? {
        let path = entry?.path();
        let stem = path.file_name().unwrap_or_default().to_string_lossy();
        let (name, rest) = stem
            .split_once('_')
            .context("a package without a version")?;
        let version = rest.rsplit_once('_').map_or(rest, |(version, _)| version);
        let listed = fs::read_to_string(&path)?;
        let files = listed.lines().map(|line| line.trim_start_matches("./"));
        owners.push(Owner {
            name: name.to_owned(),
            version: version.replace("%3a", ":"),
            files: files.map(str::to_owned).collect(),
        });
    }
    owners.sort();
    Ok(owners)
}

/// apt escapes `:` of an epoch in file names; kernels have none, so the plain name is enough.
fn find_archive(folder: &Path, package: &Package) -> anyhow::Result<PathBuf> {
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

/// The private `sources.list`: each suite, signed by Debian's keyring.
fn sources() -> anyhow::Result<String> {
    let mirror = mirror()?;
    let lines =
        SUITES.map(|suite| format!("deb [arch=amd64 signed-by={KEYRING}] {mirror} {suite} main\n"));
    Ok(lines.concat())
}

/// The mirror: the variable, else the first of the machine's own sources that serves Debian.
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

/// The first address in `targets` whose path ends in `debian` and whose component is `main`.
fn debian_mirror(targets: &str) -> Option<String> {
    targets
        .lines()
        .filter_map(|line| line.strip_prefix("main "))
        .map(|uri| uri.trim_end_matches('/'))
        .find(|uri| uri.ends_with("/debian"))
        .map(str::to_owned)
}

/// The private `apt.conf`. The machine's own fetch settings (proxies, certificates) are kept,
/// its hooks are not.
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
// Frozen mirrors serve lists past their date; the signatures are checked all the same.
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
            Package::parse(text),
            Some(Package {
                name: "linux-image-7.2".to_owned(),
                version: "7.2.13-1".to_owned(),
                depends: vec!["dracut".to_owned(), "linux-binary-7.2".to_owned()],
            })
        );
        assert_eq!(Package::parse("N: no packages found"), None);
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
