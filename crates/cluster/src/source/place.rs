//! Where the YAML is: standard input, a file or a folder, and which files that means right now.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::warning::Warning;

/// How many folders deep files are looked for.
const MAX_FOLDERS: usize = 32;

/// What `--cluster` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SourcePath {
    /// `-`, read once.
    Stdin,
    /// A pipe without a name of its own, as a shell makes one for `<(...)`; read once. One with a name may have no writer,
    /// and is refused like a device.
    Pipe(PathBuf),
    /// A file or a folder, which may not exist yet and may turn from one into the other.
    Path(PathBuf),
}

/// The files that a place means at one moment.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The files by the name that the user would give them, in the order in which they count.
    pub(crate) files: BTreeMap<Arc<str>, Stamp>,
    /// The folders whose entries decide which files there are.
    pub(crate) folders: BTreeSet<PathBuf>,
    /// What could not be looked at.
    pub(crate) warnings: Vec<Warning>,
}

/// What shows that a file is still the one that was read: a hash of its device, inode, size, and
/// the instants of its last change of content and of anything about it.
///
/// 20,000 of them are kept, and all that is asked of them is whether they are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl SourcePath {
    /// The place that a command line names: `-` is standard input.
    pub(crate) fn new(path: &Path) -> Self {
        if path == Path::new("-") {
            Self::Stdin
        } else if is_unnamed_pipe(path) {
            Self::Pipe(path.to_owned())
        } else {
            Self::Path(path.to_owned())
        }
    }
}

/// Whether a path leads to a pipe that is in no folder: `/dev/fd/63` leads to `pipe:[1234]`.
fn is_unnamed_pipe(path: &Path) -> bool {
    let is_pipe = fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo());
    is_pipe && fs::canonicalize(path).is_err()
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let mut hasher = DefaultHasher::new();
        (metadata.dev(), metadata.ino(), metadata.size()).hash(&mut hasher);
        (metadata.mtime(), metadata.mtime_nsec()).hash(&mut hasher);
        (metadata.ctime(), metadata.ctime_nsec()).hash(&mut hasher);
        Self(hasher.finish())
    }

    /// The stamp of the file at `path`, symbolic links followed; `None` when there is no file.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        metadata.is_file().then(|| Self::of(&metadata))
    }
}

/// Refuses what is neither a file nor a folder: a read of a pipe may wait for ever, that of a device may never end.
pub(crate) fn refuse_special(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    let what = if kind.is_file() || kind.is_dir() {
        return Ok(());
    } else if kind.is_fifo() {
        "a pipe (FIFO)"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    let message = format!("this is {what} and is not read");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Opens a file. The open does not wait for the writer of a pipe that has taken the file's place; see
/// [`refuse_special`].
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    options.read(true).custom_flags(flags).open(path)
}

/// Lists the files of `root`: itself, or every YAML and JSON file below it.
///
/// Names that begin with a dot are left out: editors' and version control's own files, and the
/// folders behind a mounted `ConfigMap`, whose files show up under their plain names too.
/// Fails only when `root` itself cannot be looked at.
pub(crate) fn list(root: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    let metadata = fs::metadata(root)?;
    refuse_special(&metadata)?;
    if metadata.is_dir() {
        let mut above = Vec::new();
        listing.folder(root, &metadata, &mut above)?;
    } else {
        listing.file(root, &metadata);
    }
    Ok(listing)
}

impl Listing {
    /// Adds the files below a folder. `above` holds the folders around it, which a symbolic link
    /// could lead back to.
    fn folder(
        &mut self,
        folder: &Path,
        metadata: &Metadata,
        above: &mut Vec<(u64, u64)>,
    ) -> io::Result<()> {
        let identity = (metadata.dev(), metadata.ino());
        if above.contains(&identity) || above.len() >= MAX_FOLDERS {
            return Ok(());
        }
        self.folders.insert(folder.to_owned());
        above.push(identity);
        for entry in fs::read_dir(folder)? {
            self.entry(&entry?.path(), above);
        }
        above.pop();
        Ok(())
    }

    fn entry(&mut self, path: &Path, above: &mut Vec<(u64, u64)>) {
        if is_hidden(path) {
            return;
        }
        // What has gone since the folder was read is simply not there.
        let Ok(metadata) = fs::metadata(path) else {
            return;
        };
        if metadata.is_dir() {
            if let Err(error) = self.folder(path, &metadata, above) {
                let name: Arc<str> = path.to_string_lossy().into();
                let message = format!("the folder cannot be read: {error}");
                self.warnings
                    .push(Warning::of_file(&name, 0, message, "check its permissions"));
            }
        } else if is_yaml(path) {
            match refuse_special(&metadata) {
                Ok(()) => self.file(path, &metadata),
                Err(error) => {
                    let name: Arc<str> = path.to_string_lossy().into();
                    let remedy = "replace it by a file, or rename it";
                    self.warnings
                        .push(Warning::of_file(&name, 0, error.to_string(), remedy));
                }
            }
        }
    }

    fn file(&mut self, path: &Path, metadata: &Metadata) {
        let Some(name) = path.to_str() else {
            let name: Arc<str> = path.to_string_lossy().into();
            let message = "the file's name is not UTF-8; it is not read";
            self.warnings
                .push(Warning::of_file(&name, 0, message, "rename it"));
            return;
        };
        if let Some(target) = target_folder(path) {
            self.folders.insert(target);
        }
        self.files.insert(name.into(), Stamp::of(metadata));
    }
}

/// The folder that holds what a symbolic link leads to.
fn target_folder(path: &Path) -> Option<PathBuf> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_symlink() {
        return None;
    }
    fs::canonicalize(path).ok()?.parent().map(Path::to_owned)
}

/// Whether the last part of the path begins with a dot.
pub(crate) fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether a file in a folder is read.
pub(crate) fn is_yaml(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(root: &Path) -> Vec<String> {
        let listing = list(root).unwrap();
        let names = listing.files.keys().map(|name| {
            Path::new(&**name)
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        });
        names.collect()
    }

    #[test]
    fn a_folder_is_listed_in_depth_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("b/c")).unwrap();
        for name in [
            "z.yaml",
            "a.yml",
            "b/c/m.json",
            "b/readme.md",
            ".hidden.yaml",
            "b/.x.swp",
        ] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(names(dir.path()), ["a.yml", "b/c/m.json", "z.yaml"]);
    }

    #[test]
    fn a_mounted_config_map_is_listed_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("..2025_05_05")).unwrap();
        fs::write(dir.path().join("..2025_05_05/shop.yaml"), "").unwrap();
        symlink("..2025_05_05", dir.path().join("..data")).unwrap();
        symlink("..data/shop.yaml", dir.path().join("shop.yaml")).unwrap();
        assert_eq!(names(dir.path()), ["shop.yaml"]);
        let target = fs::canonicalize(dir.path().join("..2025_05_05")).unwrap();
        assert!(list(dir.path()).unwrap().folders.contains(&target));
    }

    #[test]
    fn links_in_a_circle_end() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/x.yaml"), "").unwrap();
        symlink("..", dir.path().join("a/up")).unwrap();
        assert_eq!(names(dir.path()), ["a/x.yaml"]);
    }

    #[test]
    fn a_file_is_read_whatever_it_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cluster.txt");
        fs::write(&path, "").unwrap();
        assert_eq!(list(&path).unwrap().files.len(), 1);
        assert!(list(&dir.path().join("missing")).is_err());
    }
}
