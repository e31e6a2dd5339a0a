//! Reads the source tree as paths and text, so that a test can construct one.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

/// Every file that git would commit, by its path from the root.
#[derive(Default)]
pub(super) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads files that git tracks or would track; skips ignored files.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let listing = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()
            .context("running git ls-files; install git")?;
        ensure!(
            listing.status.success(),
            "git ls-files failed in {}: {}; run tidy in a git clone",
            root.display(),
            String::from_utf8_lossy(&listing.stderr).trim()
        );
        let names = String::from_utf8_lossy(&listing.stdout).into_owned();
        let mut files = BTreeMap::new();
        for name in names.split('\0').filter(|name| !name.is_empty()) {
            // git still lists a deleted file until the deletion is committed.
            if let Ok(bytes) = std::fs::read(root.join(name)) {
                files.insert(
                    name.to_owned(),
                    String::from_utf8_lossy(&bytes).into_owned(),
                );
            }
        }
        Ok(Self { files })
    }

    /// Returns the text of a file, if it is in the tree.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns whether a file or a folder of this name is in the tree.
    pub(super) fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        self.files.contains_key(path) || self.under(&folder).next().is_some()
    }

    /// Returns the files whose path begins with `prefix`, in order.
    pub(super) fn under<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.files
            .range(prefix.to_owned()..)
            .take_while(move |(path, _)| path.starts_with(prefix))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the files with this extension, in order.
    pub(super) fn with_extension<'a>(
        &'a self,
        extension: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        let wanted = std::ffi::OsStr::new(extension);
        self.under("")
            .filter(move |(path, _)| Path::new(path).extension() == Some(wanted))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Tree {
    fn from(files: [(&str, &str); N]) -> Self {
        let own = |(path, text): (&str, &str)| (path.to_owned(), text.to_owned());
        Self {
            files: files.into_iter().map(own).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_exists_when_a_file_is_in_it() {
        let tree = Tree::from([("docs/kernel.md", "")]);
        assert!(tree.exists("docs"));
        assert!(tree.exists("docs/"));
        assert!(tree.exists("docs/kernel.md"));
        assert!(!tree.exists("doc"));
    }
}
