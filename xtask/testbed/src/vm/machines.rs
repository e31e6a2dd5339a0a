//! Boots guests from the packages in the store.

use std::process::ExitStatus;

use super::image::Addition;
use super::kernel::{Kernel, Line};
use super::machine::{self, Machine, Spec};
use super::store::Store;
use super::tools::Tools;

/// Everything that is needed to boot guests.
pub struct Machines {
    /// Where packages and images are kept.
    pub store: Store,
    /// The programs of this machine's side, and those that guests hold.
    pub tools: Tools,
}

impl Machines {
    /// Finds the tools, and fetches them the first time.
    pub fn open() -> anyhow::Result<Self> {
        let store = Store::open(false)?;
        let tools = Tools::find(&store)?;
        Ok(Self { store, tools })
    }

    /// The newest kernel of a line, fetched the first time.
    pub fn kernel(&self, line: Line) -> anyhow::Result<Kernel> {
        Kernel::find(&self.store, line)
    }

    /// A program of the tools that not every guest needs, under these names, with its libraries.
    pub fn tool(&self, program: &str, names: &[&str]) -> anyhow::Result<Vec<Addition>> {
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

    /// A folder of the tools' packages.
    pub fn tree(&self, from: &str, path: &str) -> Addition {
        Addition::Tree {
            path: path.to_owned(),
            from: self.tools.file(from),
        }
    }

    /// Boots a guest whose job is read line by line.
    pub fn start(&self, spec: &Spec<'_>) -> anyhow::Result<Machine> {
        Machine::start(&self.store, &self.tools, spec)
    }

    /// Boots a guest on the person's terminal.
    pub(crate) fn interact(&self, spec: &Spec<'_>) -> anyhow::Result<ExitStatus> {
        machine::interact(&self.store, &self.tools, spec)
    }
}
