//! The lines of `ipvsadm-save -n` as a table.

use std::collections::{BTreeMap, BTreeSet};

/// Virtual servers by the option that names them, such as `-t 10.96.0.10:80`.
pub(crate) type Table = BTreeMap<String, Entry>;

/// A virtual server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) scheduler: String,
    /// Its other options, such as `-p 360`.
    pub(crate) options: String,
    /// The options of each real server.
    pub(crate) reals: BTreeMap<String, String>,
}

impl Entry {
    /// The addresses and ports of the real servers.
    pub(crate) fn addresses(&self) -> BTreeSet<String> {
        self.reals.keys().cloned().collect()
    }
}

pub(crate) fn parse(lines: impl IntoIterator<Item = impl AsRef<str>>) -> Table {
    let mut table = Table::new();
    for line in lines {
        let line = line.as_ref();
        if let Some(server) = line.strip_prefix("-A ") {
            let (key, rest) = server.split_once(" -s ").unwrap();
            let (scheduler, options) = rest.split_once(' ').unwrap_or((rest, ""));
            let entry = table.entry(key.to_owned()).or_default();
            scheduler.clone_into(&mut entry.scheduler);
            options.clone_into(&mut entry.options);
        } else if let Some(real) = line.strip_prefix("-a ") {
            let (key, rest) = real.split_once(" -r ").unwrap();
            let (address, options) = rest.split_once(' ').unwrap();
            let entry = table.entry(key.to_owned()).or_default();
            entry.reals.insert(address.to_owned(), options.to_owned());
        }
    }
    table
}
