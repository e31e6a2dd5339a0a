//! Stores unpacked packages between runs, shared by every work tree.
//!
//! Each set of packages has a folder with a `stamp.json` (the time of the query and the versions) and one folder for
//! each result. The index is queried again after a week, because the archive replaces minor versions every few weeks.
//! Without a network the last result stays valid.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::archive::{self, Archive};
use super::progress::ProgressLine;
use crate::paths;

/// Lifetime of a result of the package index.
const FRESH: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long an outdated folder is kept for machines that still run from it.
const GRACE: Duration = Duration::from_secs(24 * 3600);

/// The result of the package index for one set of packages.
#[derive(Serialize, Deserialize)]
struct Stamp {
    /// Time of the query, in seconds since 1970.
    asked: u64,
    /// Each package with its version, in the order of the index.
    packages: Vec<String>,
}

/// An unpacked set of packages.
#[derive(Debug, Clone)]
pub(crate) struct Unpacked {
    pub(crate) root: PathBuf,
    /// Changes with the version of any package.
    pub(crate) identity: String,
}

/// A set of packages.
pub(crate) struct PackageSet<'a> {
    /// The folder below the store, and the name in progress lines.
    pub(crate) name: &'a str,
    /// Queries the index for the packages with their versions.
    pub(crate) resolve: &'a dyn Fn(&Archive) -> anyhow::Result<Vec<String>>,
    /// Downloads them and returns the package files.
    pub(crate) fetch: &'a dyn Fn(&Archive) -> anyhow::Result<Vec<PathBuf>>,
}

pub struct Store {
    folder: PathBuf,
    archive: OnceLock<Archive>,
    refresh: bool,
}

impl Store {
    /// Opens the store. With `refresh` the package index is always queried.
    pub(crate) fn open(refresh: bool) -> anyhow::Result<Self> {
        let folder = paths::cache().join("vm");
        fs::create_dir_all(&folder)
            .with_context(|| {
                let folder = folder.display();
                format!("cannot create the cache folder {folder}: set XDG_CACHE_HOME to a folder that you may write to")
            })?;
        Ok(Self {
            folder,
            archive: OnceLock::new(),
            refresh,
        })
    }

    /// Returns a folder of the store, and creates it if it is missing.
    pub(crate) fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Locks the store against other processes until the file is dropped.
    pub(crate) fn lock(&self) -> anyhow::Result<File> {
        let path = self.folder.join("lock");
        let file = File::create(&path).with_context(|| {
            let path = path.display();
            format!("cannot write {path}: set XDG_CACHE_HOME to a folder that you may write to")
        })?;
        file.lock()?;
        Ok(file)
    }

    /// Returns the unpacked packages of `wanted`, and downloads them if they are missing or outdated.
    pub(crate) fn ensure(&self, wanted: &PackageSet<'_>) -> anyhow::Result<Unpacked> {
        let _lock = self.lock()?;
        let home = self.folder(wanted.name)?;
        let stamp = read_stamp(&home);
        match stamp {
            Some(stamp) if !self.refresh && is_fresh(&stamp) => Ok(unpacked(&home, &stamp)),
            Some(stamp) => self.fetch(wanted, &home).or_else(|error| {
                anstream::eprintln!("  {} is kept as it was: {error:#}", wanted.name);
                Ok(unpacked(&home, &stamp))
            }),
            None => self.fetch(wanted, &home),
        }
    }

    /// Queries the index, then downloads and unpacks missing packages.
    fn fetch(&self, wanted: &PackageSet<'_>, home: &Path) -> anyhow::Result<Unpacked> {
        let step = ProgressLine::begin(format!("fetching {}", wanted.name));
        let archive = self.archive()?;
        let stamp = Stamp {
            asked: unix_time(),
            packages: (wanted.resolve)(archive)?,
        };
        let answer = unpacked(home, &stamp);
        if !answer.root.exists() {
            step.report("downloading");
            let files = (wanted.fetch)(archive)?;
            step.report("unpacking");
            let half_done = home.join("unpacking");
            if half_done.exists() {
                fs::remove_dir_all(&half_done)?;
            }
            archive::unpack(&files, &half_done)?;
            // Unpacked files have the dates of the packages; this file has the folder's own date.
            fs::write(half_done.join("unpacked"), "")?;
            fs::rename(&half_done, &answer.root)?;
            archive.clean()?;
        }
        fs::write(home.join("stamp.json"), serde_json::to_vec_pretty(&stamp)?)?;
        remove_old(home, &answer.root)?;
        step.done(&format!("({} packages)", stamp.packages.len()));
        Ok(answer)
    }

    fn archive(&self) -> anyhow::Result<&Archive> {
        if let Some(archive) = self.archive.get() {
            return Ok(archive);
        }
        let archive = Archive::update(&self.folder.join("apt"))?;
        Ok(self.archive.get_or_init(|| archive))
    }
}

/// Returns a short name for the contents of `parts`, the same on every run of this program.
pub(crate) fn fingerprint(parts: impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn unpacked(home: &Path, stamp: &Stamp) -> Unpacked {
    let identity = fingerprint(&stamp.packages);
    Unpacked {
        root: home.join(&identity),
        identity,
    }
}

/// Reads the last result, if its folder still exists.
fn read_stamp(home: &Path) -> Option<Stamp> {
    let text = fs::read(home.join("stamp.json")).ok()?;
    let stamp: Stamp = serde_json::from_slice(&text).ok()?;
    unpacked(home, &stamp).root.exists().then_some(stamp)
}

fn is_fresh(stamp: &Stamp) -> bool {
    unix_time().saturating_sub(stamp.asked) < FRESH.as_secs()
}

/// Removes everything that is neither `current` nor so recent that it may be in use.
pub(crate) fn remove_old(home: &Path, current: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(home)? {
        let path = entry?.path();
        if path != current && !path.ends_with("stamp.json") && is_old(&path) {
            remove(&path)?;
        }
    }
    Ok(())
}

fn is_old(path: &Path) -> bool {
    let changed = fs::metadata(path).and_then(|metadata| metadata.modified());
    changed.is_ok_and(|changed| changed.elapsed().unwrap_or_default() > GRACE)
}

/// Removes a file or folder; no error if another process has removed it.
fn remove(path: &Path) -> std::io::Result<()> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    removed.or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

/// Returns the seconds since 1970.
pub(super) fn unix_time() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
