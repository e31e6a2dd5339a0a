//! Collects the files of an image in a fixed order.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::component::Component;

/// The registry part of the names of our images.
const HOME: &str = "registry.invalid/ipvs-topo";

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
    /// The name of the archive.
    pub(super) name: &'static str,
    /// The names of the image for Pods.
    pub(super) references: Vec<String>,
    /// Labels of the image.
    pub(super) labels: BTreeMap<&'static str, String>,
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
            references: Vec::new(),
            labels: BTreeMap::new(),
            arguments,
            entrypoint: entrypoint.to_owned(),
            files: BTreeMap::new(),
            components: Vec::new(),
        }
    }

    /// Returns an image with the names `references` that contains only the static `program`.
    pub(super) fn of_program(
        name: &'static str,
        program: &Path,
        references: Vec<String>,
    ) -> anyhow::Result<Self> {
        let mut contents = Self::new(name, &format!("/{name}"), &[]);
        contents.references = references;
        contents.program(name, fs::read(program)?);
        Ok(contents)
    }

    /// Names it and labels it as an image of this project.
    pub(super) fn ours(mut self) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        self.references = vec![format!("{HOME}/{}:{version}", self.name)];
        self.labels = BTreeMap::from([
            (
                "org.opencontainers.image.title",
                format!("ipvs-topo {}", self.name),
            ),
            ("org.opencontainers.image.version", version.to_owned()),
            (
                "org.opencontainers.image.licenses",
                env!("CARGO_PKG_LICENSE").to_owned(),
            ),
        ]);
        self
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
