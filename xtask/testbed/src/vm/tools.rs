//! Finds programs from Debian's archive: QEMU and others for the host, and the guests' programs.
//!
//! They are unpacked with all dependencies down to the C library, and started through their own dynamic loader. Nothing
//! is installed, no root is needed, and the machine's own `/usr` is not used.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::command;
use super::store::{PackageSet, Store, fingerprint};

/// The suite of QEMU 10 and the other programs: QEMU 7.2 of bookworm crashes 6.12 at random.
pub(crate) const SUITE: &str = "bookworm-backports";

/// Packages of programs that run on the host.
const HOST_PACKAGES: [&str; 5] = ["qemu-system-x86", "kmod", "xz-utils", "zstd", "util-linux"];

/// Packages of the guests' programs.
const GUEST_PACKAGES: [&str; 16] = [
    "busybox-static",
    "coreutils",
    "findutils",
    "dash",
    "bash",
    "ipset",
    "iptables",
    "ipvsadm",
    "nftables",
    "iproute2",
    "curl",
    "conntrack",
    "strace",
    "tcpdump",
    "ncurses-base",
    "netbase",
];

/// Folders of programs.
const PROGRAM_FOLDERS: [&str; 4] = ["usr/bin", "usr/sbin", "bin", "sbin"];

/// Folders of libraries.
const LIBRARY_FOLDERS: [&str; 4] = [
    "usr/lib/x86_64-linux-gnu",
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/systemd",
    "lib/x86_64-linux-gnu/systemd",
];

pub struct Tools {
    root: PathBuf,
    /// Changes with the version of any package.
    pub(crate) identity: String,
}

impl Tools {
    /// Returns the programs, and downloads them if they are missing.
    pub(crate) fn find(store: &Store) -> anyhow::Result<Self> {
        let packages: Vec<&str> = HOST_PACKAGES.into_iter().chain(GUEST_PACKAGES).collect();
        // Work trees with different packages do not replace each other's.
        let name = format!("tools-{}", fingerprint(&packages));
        Self::of(store, &name, SUITE, &packages)
    }

    /// Returns `packages` of `suite` with all dependencies, stored as `name`.
    pub(crate) fn of(
        store: &Store,
        name: &str,
        suite: &str,
        packages: &[&str],
    ) -> anyhow::Result<Self> {
        let unpacked = store.ensure(&PackageSet {
            name,
            resolve: &|archive| archive.closure_names(suite, packages),
            fetch: &|archive| archive.closure(suite, packages),
        })?;
        Ok(Self {
            root: unpacked.root,
            identity: unpacked.identity,
        })
    }

    /// Returns a command that runs `program` on the host.
    pub(crate) fn host(&self, program: &str) -> anyhow::Result<Command> {
        let mut words = self.invocation(program)?.into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        Ok(command)
    }

    /// Returns the command line that runs `program` on the host: loader, library path, program.
    pub(crate) fn invocation(&self, program: &str) -> anyhow::Result<Vec<OsString>> {
        let libraries = std::env::join_paths(LIBRARY_FOLDERS.map(|folder| self.root.join(folder)))?;
        Ok(vec![
            self.loader()?.into_os_string(),
            // A program with several names (kmod) reads this.
            "--argv0".into(),
            program.into(),
            "--library-path".into(),
            libraries,
            self.program(program)?.into_os_string(),
        ])
    }

    pub(crate) fn program(&self, program: &str) -> anyhow::Result<PathBuf> {
        self.first(&PROGRAM_FOLDERS, program)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(crate) fn loader(&self) -> anyhow::Result<PathBuf> {
        self.first(&LIBRARY_FOLDERS, "ld-linux-x86-64.so.2")
    }

    /// Returns the libraries that `program` is linked with, directly or indirectly.
    pub(crate) fn libraries(&self, program: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let libraries = std::env::join_paths(LIBRARY_FOLDERS.map(|folder| self.root.join(folder)))?;
        let listed = command::output(
            Command::new(self.loader()?)
                .arg("--library-path")
                .arg(libraries)
                .arg("--list")
                .arg(program),
        )?;
        parse_libraries(&listed)
            .with_context(|| format!("`{}` cannot be started", program.display()))
    }

    fn first(&self, folders: &[&str], name: &str) -> anyhow::Result<PathBuf> {
        folders
            .iter()
            .map(|folder| self.inside(&self.root.join(folder).join(name)))
            .find(|path| path.exists())
            .with_context(|| format!("no {name} below {}", self.root.display()))
    }

    /// Resolves `path`: an absolute link in the packages refers to a file of the packages.
    fn inside(&self, path: &Path) -> PathBuf {
        match std::fs::read_link(path) {
            Ok(target) if target.is_absolute() => {
                self.root.join(target.strip_prefix("/").unwrap_or(&target))
            }
            _ => path.to_owned(),
        }
    }
}

/// The paths in what the loader lists: `NAME => PATH (ADDRESS)`.
fn parse_libraries(listed: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for (name, rest) in listed
        .lines()
        .filter_map(|line| line.trim().split_once(" => "))
    {
        if rest.starts_with("not found") {
            bail!("its library {name} is missing");
        }
        if let Some((path, _address)) = rest.rsplit_once(" (") {
            found.push(PathBuf::from(path));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named() {
        let error = parse_libraries("\tliba.so.1 => not found\n").unwrap_err();
        assert!(error.to_string().contains("liba.so.1"));
    }

    #[test]
    fn the_loader_itself_and_the_kernels_library_are_not_files_to_copy() {
        let listed =
            "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /r/libc.so.6 (0x2)\n\t/r/ld.so (0x3)\n";
        assert_eq!(
            parse_libraries(listed).unwrap(),
            [PathBuf::from("/r/libc.so.6")]
        );
    }
}
