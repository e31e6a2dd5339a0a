//! What an image holds, in an order that does not depend on how it was gathered.

use std::collections::BTreeMap;

use super::component::Component;

/// One file of the layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// A program.
    Program(Vec<u8>),
    /// A file that is only read.
    Text(Vec<u8>),
    /// A symbolic link.
    Link(String),
}

/// The files of one image, and where they come from.
#[derive(Debug, Clone)]
pub(super) struct Contents {
    /// The last part of the image's name.
    pub(super) name: &'static str,
    /// The program that a container runs.
    pub(super) entrypoint: String,
    /// The arguments it gets when nobody gives it others.
    pub(super) arguments: &'static [&'static str],
    /// Files by their path without the leading slash.
    pub(super) files: BTreeMap<String, Entry>,
    /// What the files were made of.
    pub(super) components: Vec<Component>,
}

impl Contents {
    /// An image without files.
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

    /// Adds a program.
    pub(super) fn program(&mut self, path: &str, bytes: Vec<u8>) {
        self.files.insert(path.to_owned(), Entry::Program(bytes));
    }

    /// Adds a file that is only read.
    pub(super) fn text(&mut self, path: &str, bytes: Vec<u8>) {
        self.files.insert(path.to_owned(), Entry::Text(bytes));
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, path: &str, target: &str) {
        let target = Entry::Link(target.to_owned());
        self.files.insert(path.to_owned(), target);
    }

    /// Every folder above a file, each before what is in it.
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
