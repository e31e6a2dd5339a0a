//! Boots guests from the packages in the store.

use std::process::ExitStatus;

use super::image::Addition;
use super::kernel::{Kernel, Line};
use super::machine::{self, GuestSpec, Machine};
use super::store::Store;
use super::tools::Tools;

/// The names of the iptables programs that kube-proxy starts in ipvs mode.
const IPTABLES: [&str; 6] = [
    "iptables",
    "iptables-restore",
    "iptables-save",
    "ip6tables",
    "ip6tables-restore",
    "ip6tables-save",
];

/// The names of the same programs for the legacy backend.
const LEGACY_IPTABLES: [&str; 6] = [
    "iptables-legacy",
    "iptables-legacy-restore",
    "iptables-legacy-save",
    "ip6tables-legacy",
    "ip6tables-legacy-restore",
    "ip6tables-legacy-save",
];

/// Boots guests.
pub struct Machines {
    pub store: Store,
    /// The programs for the host and for guests.
    pub tools: Tools,
}

impl Machines {
    /// Opens the store and downloads the tools if they are missing.
    pub fn open() -> anyhow::Result<Self> {
        let store = Store::open(false)?;
        let tools = Tools::find(&store)?;
        Ok(Self { store, tools })
    }

    /// Returns the newest kernel of a line, and downloads it if it is missing.
    pub fn kernel(&self, line: Line) -> anyhow::Result<Kernel> {
        Kernel::find(&self.store, line)
    }

    /// Returns a program that not every guest has, with its libraries, under these names.
    fn tool(&self, program: &str, names: &[&str]) -> anyhow::Result<Vec<Addition>> {
        let file = self.tools.program(program)?;
        let mut additions = Vec::new();
        for library in self.tools.libraries(&file)? {
            let name = library.file_name().unwrap_or_default().to_string_lossy();
            additions.push(Addition::Program {
                path: format!("usr/lib/{name}"),
                from: library.clone(),
            });
        }
        additions.extend(names.iter().map(|name| Addition::Program {
            path: format!("usr/bin/{name}"),
            from: file.clone(),
        }));
        Ok(additions)
    }

    /// Returns the programs that kube-proxy starts in ipvs mode.
    pub fn kube_proxy_tools(&self) -> anyhow::Result<Vec<Addition>> {
        let mut additions = self.tool("ipset", &["ipset"])?;
        additions.extend(self.iptables()?);
        Ok(additions)
    }

    /// Returns iptables of both backends: kernel tests install other programs' rules with it.
    pub(crate) fn both_iptables(&self) -> anyhow::Result<Vec<Addition>> {
        let mut additions = self.iptables()?;
        additions.extend(self.tool("xtables-legacy-multi", &LEGACY_IPTABLES)?);
        Ok(additions)
    }

    /// Returns iptables of the nft backend.
    fn iptables(&self) -> anyhow::Result<Vec<Addition>> {
        let mut additions = self.tool("xtables-nft-multi", &IPTABLES)?;
        additions.push(self.tree("usr/lib/x86_64-linux-gnu/xtables", "usr/lib/xtables"));
        Ok(additions)
    }

    /// Returns a folder of the tools' packages.
    fn tree(&self, from: &str, path: &str) -> Addition {
        Addition::Tree {
            path: path.to_owned(),
            from: self.tools.file(from),
        }
    }

    /// Boots a guest whose output is read line by line.
    pub fn start(&self, spec: &GuestSpec<'_>) -> anyhow::Result<Machine> {
        Machine::start(&self.store, &self.tools, spec)
    }

    /// Boots a guest on this terminal.
    pub(crate) fn interact(&self, spec: &GuestSpec<'_>) -> anyhow::Result<ExitStatus> {
        machine::interact(&self.store, &self.tools, spec)
    }
}
