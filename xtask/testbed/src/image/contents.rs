//! Collects the files of an image in a fixed order.

use std::collections::BTreeMap;

use super::component::Component;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LayerEntry {
    Program(Vec<u8>),
    /// A file that is not executable.
    Text(Vec<u8>),
    /// A symbolic link.
    Link(String),
}

/// The files of one image, and the components that they are built from.
#[derive(Debug, Clone)]
pub(super) struct Contents {
    /// The last part of the image's name.
    pub(super) name: &'static str,
    pub(super) entrypoint: String,
    /// The default arguments of the entry point.
    pub(super) arguments: &'static [&'static str],
    /// Files by their path without the leading slash.
    pub(super) files: BTreeMap<String, LayerEntry>,
    pub(super) components: Vec<Component>,
}

impl Contents {
    pub(super) fn new(
        name: &'static str,
        entrypoint: &str,
        arguments: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            arguments,
            entrypoint: entrypoint.to_owned(),
            files: BTreeMap::new(),
            components: Vec::new(),
        }
    }

    pub(super) fn program(&mut self, path: &str, bytes: Vec<u8>) {
        self.files
            .insert(path.to_owned(), LayerEntry::Program(bytes));
    }

    pub(super) fn text(&mut self, path: &str, bytes: Vec<u8>) {
        self.files.insert(path.to_owned(), LayerEntry::Text(bytes));
    }

    pub(super) fn link(&mut self, path: &str, target: &str) {
        let target = LayerEntry::Link(target.to_owned());
        self.files.insert(path.to_owned(), target);
    }

    /// Returns every folder of a file, parents first.
    pub(super) fn folders(&self) -> Vec<String> {
        let mut folders = std::collections::BTreeSet::from(["tmp".to_owned()]);
        for path in self.files.keys() {
            for (at, _) in path.match_indices('/') {
                folders.extend(path.get(..at).map(str::to_owned));
            }
        }
        folders.into_iter().collect()
    }
}
