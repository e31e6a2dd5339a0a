//! Finds the YAML files of a path: standard input, a file or a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::warning::Warning;

/// The largest depth of nested folders.
const MAX_FOLDERS: usize = 32;

/// The path that `--cluster` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SourcePath {
    /// `-`, read once.
    Stdin,
    /// A pipe without a name, which a shell creates for `<(...)`; read once. A named pipe may have
    /// no writer, and is refused like a device.
    Pipe(PathBuf),
    /// A file or a folder. It may not exist yet, and a folder may replace a file.
    Path(PathBuf),
}

/// The files of a path at one moment.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// By the name that the user would give. The last file that defines an object is used.
    pub(crate) files: BTreeMap<Arc<str>, Stamp>,
    /// The folders to watch for new and deleted files.
    pub(crate) folders: BTreeSet<PathBuf>,
    /// About files and folders that cannot be read.
    pub(crate) warnings: Vec<Warning>,
}

/// A hash of a file's device, inode, size, `mtime` and `ctime`, to detect changes.
///
/// It is a hash because up to 20,000 stamps are kept, and only compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl SourcePath {
    /// `-` is standard input.
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

/// Whether a path leads to a pipe without a name: `/dev/fd/63` leads to `pipe:[1234]`.
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

    /// Follows symbolic links. `None` if there is no file at `path`.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        metadata.is_file().then(|| Self::of(&metadata))
    }
}

/// Refuses everything except files and folders: a read of a pipe or a device may never end.
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

/// Opens a file. If a pipe has replaced the file, does not wait for its writer; see
/// [`refuse_special`].
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    options.read(true).custom_flags(flags).open(path)
}

/// Lists the files of `root`: itself, or every YAML and JSON file below it.
///
/// Skips names that begin with a dot: files of editors and version control, and the folders behind
/// a mounted `ConfigMap`, whose files are also listed under their plain names.
/// Fails only if `root` itself cannot be accessed.
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
    /// Adds the files below a folder. `above` holds its parent folders, because a symbolic link can
    /// lead back to them.
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
        // The entry was deleted after the folder was read.
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
                    let remedy = "replace it with a file, or rename it";
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

/// The folder of the target of a symbolic link.
fn target_folder(path: &Path) -> Option<PathBuf> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_symlink() {
        return None;
    }
    fs::canonicalize(path).ok()?.parent().map(Path::to_owned)
}

pub(crate) fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether a file with this name is read in a folder.
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
    fn a_cycle_of_links_ends() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/x.yaml"), "").unwrap();
        symlink("..", dir.path().join("a/up")).unwrap();
        assert_eq!(names(dir.path()), ["a/x.yaml"]);
    }

    #[test]
    fn a_file_that_is_named_directly_needs_no_extension() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cluster.txt");
        fs::write(&path, "").unwrap();
        assert_eq!(list(&path).unwrap().files.len(), 1);
        assert!(list(&dir.path().join("missing")).is_err());
    }
}
