//! Watches folders, and finds out what each message of the operating system is about.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::signal::Signal;
use crate::source::ReadError;
use crate::source::place::{is_hidden, is_yaml};
use crate::warning::Warning;

/// Watches folders one by one. A folder is watched before it is listed, so that no change is missed
/// between the two.
pub(super) struct FolderWatcher {
    watcher: RecommendedWatcher,
    /// The path as the user gave it.
    given: PathBuf,
    /// The same path as an absolute path, with symbolic links.
    root: PathBuf,
    watched: BTreeSet<PathBuf>,
}

/// The subject of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The content of this file, by the name that the user would give.
    File(Arc<str>),
    /// The list of files.
    Listing,
    /// A file that is not read.
    Nothing,
}

impl FolderWatcher {
    /// Prepares to watch `given`; watches no folder yet.
    pub(super) fn new(given: &Path, signals: Sender<Signal>) -> Result<Self, ReadError> {
        let fail = |message: String| ReadError::Watch {
            path: given.to_owned(),
            message,
        };
        let root = std::path::absolute(given).map_err(|error| fail(error.to_string()))?;
        let handler = move |event| {
            // If the receiver is gone, the watcher is dropped soon.
            if let Some(signal) = Signal::of(event) {
                drop(signals.send(signal));
            }
        };
        let watcher =
            notify::recommended_watcher(handler).map_err(|error| fail(level_name(&error)))?;
        Ok(Self {
            watcher,
            given: given.to_owned(),
            root,
            watched: BTreeSet::new(),
        })
    }

    /// Watches the folders that affect the root even if it does not exist: its nearest parent that
    /// exists, and each folder with a symbolic link on the way to it.
    pub(super) fn watch_surroundings(&mut self) -> Vec<Warning> {
        let exists = |path: &&Path| path.is_dir();
        let mut folders: BTreeSet<PathBuf> = self
            .root
            .ancestors()
            .skip(1)
            .find(exists)
            .map(Path::to_owned)
            .into_iter()
            .collect();
        for path in self.root.ancestors() {
            if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
                folders.extend(path.parent().map(Path::to_owned));
            }
        }
        self.watch(&folders).1
    }

    /// Watches folders. Returns whether one of them was not watched before.
    ///
    /// Watches known folders again, because another folder may have replaced them.
    pub(super) fn watch(&mut self, folders: &BTreeSet<PathBuf>) -> (bool, Vec<Warning>) {
        let mut any_new = false;
        let mut warnings = Vec::new();
        for folder in folders {
            let path = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
            match self.watcher.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => any_new |= self.watched.insert(path),
                // The folder was deleted after it was listed; a message about that follows.
                Err(error) if matches!(error.kind, ErrorKind::PathNotFound) => {}
                Err(error) => warnings.push(not_watched(folder, &error)),
            }
        }
        (any_new, warnings)
    }

    /// The meaning of a message about `path`. `is_known` returns whether a file was read.
    pub(super) fn meaning(&self, path: &Path, is_known: impl Fn(&str) -> bool) -> Meaning {
        if self.root.starts_with(path) && path != self.root {
            return Meaning::Listing;
        }
        let found = fs::symlink_metadata(path);
        let Some(name) = self.name(path) else {
            // Next to the root, only symbolic links can be on the way to a file that is read.
            // Every other watched folder holds the target of a link.
            let beside_root = path.parent() == self.root.parent();
            let is_link = found.is_ok_and(|metadata| metadata.is_symlink());
            return if beside_root && !is_link {
                Meaning::Nothing
            } else {
                Meaning::Listing
            };
        };
        match found {
            Ok(metadata) if metadata.is_file() => {
                let is_read = path == self.root || is_yaml(path) && !is_hidden(path);
                if is_read {
                    Meaning::File(name)
                } else {
                    Meaning::Nothing
                }
            }
            Ok(_) => Meaning::Listing,
            Err(_) if path == self.root || self.watched.contains(path) => Meaning::Listing,
            Err(_) if is_known(&name) => Meaning::File(name),
            Err(_) => Meaning::Nothing,
        }
    }

    /// The name that the user would give to `path`, if it is at or below the root.
    fn name(&self, path: &Path) -> Option<Arc<str>> {
        let below = path.strip_prefix(&self.root).ok()?;
        let name = if below.as_os_str().is_empty() {
            self.given.clone()
        } else {
            self.given.join(below)
        };
        Some(name.to_str()?.into())
    }
}

fn not_watched(folder: &Path, error: &notify::Error) -> Warning {
    let name: Arc<str> = folder.to_string_lossy().into();
    let message = format!(
        "this folder is checked for changes only every few seconds: {}",
        level_name(error)
    );
    Warning::of_file(&name, 0, message, "")
}

fn level_name(error: &notify::Error) -> String {
    match &error.kind {
        ErrorKind::MaxFilesWatch => {
            "the limit of watched folders is reached; raise the sysctl fs.inotify.max_user_watches"
                .to_owned()
        }
        ErrorKind::Io(io) if io.raw_os_error() == Some(24) => {
            "the limit of watchers is reached; raise the sysctl fs.inotify.max_user_instances"
                .to_owned()
        }
        _ => error.to_string(),
    }
}
