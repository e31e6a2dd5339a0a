//! What was downloaded and unpacked, kept between runs and shared by every work tree.
//!
//! Each set of packages has a folder with a `stamp.json` (when the index was asked, what it
//! answered) and one folder per answer. The index is asked again after a week, because the
//! archive replaces minor versions every few weeks; without a network the last answer stays.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::archive::{self, Archive};
use super::progress::Step;
use crate::paths;

/// How long an answer of the package index is trusted.
const FRESH: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long a folder that no stamp names any more is kept for machines that still run from it.
const GRACE: Duration = Duration::from_secs(24 * 3600);

/// The answer of the package index about one set of packages.
#[derive(Serialize, Deserialize)]
struct Stamp {
    /// When it was asked, in seconds since 1970.
    asked: u64,
    /// Each package with its version, in the index's order.
    packages: Vec<String>,
}

/// One set of packages, unpacked.
#[derive(Debug, Clone)]
pub(crate) struct Unpacked {
    /// The folder they were unpacked into.
    pub(crate) root: PathBuf,
    /// Changes when any package does.
    pub(crate) identity: String,
}

/// A set of packages: how to ask for it and how to get it.
pub(crate) struct Wanted<'a> {
    /// Folder below the store; also what a person reads.
    pub(crate) name: &'a str,
    /// The packages with their versions.
    pub(crate) resolve: &'a dyn Fn(&Archive) -> anyhow::Result<Vec<String>>,
    /// Downloads them; the package files.
    pub(crate) fetch: &'a dyn Fn(&Archive) -> anyhow::Result<Vec<PathBuf>>,
}

/// The cache folder of the machines.
pub struct Store {
    folder: PathBuf,
    archive: OnceLock<Archive>,
    refresh: bool,
}

impl Store {
    /// Opens the store; with `refresh` the package index is asked whatever the stamps say.
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

    /// A folder of the store, created when missing.
    pub(crate) fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Keeps other processes from changing the store until the file is dropped.
    pub(crate) fn lock(&self) -> anyhow::Result<File> {
        let path = self.folder.join("lock");
        let file = File::create(&path).with_context(|| {
            let path = path.display();
            format!("cannot write {path}: set XDG_CACHE_HOME to a folder that you may write to")
        })?;
        file.lock()?;
        Ok(file)
    }

    /// The packages of `wanted`, unpacked; fetched first when they are missing or old.
    pub(crate) fn ensure(&self, wanted: &Wanted<'_>) -> anyhow::Result<Unpacked> {
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

    /// Asks the index, and downloads and unpacks what is not here yet.
    fn fetch(&self, wanted: &Wanted<'_>, home: &Path) -> anyhow::Result<Unpacked> {
        let step = Step::begin(format!("fetching {}", wanted.name));
        let archive = self.archive()?;
        let stamp = Stamp {
            asked: now(),
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
            // The packages bring their own dates; this one says when the folder came to be.
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

/// A short name for whatever `parts` hold; the same on every run of this program.
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

/// The last answer, if what it names is still here.
fn read_stamp(home: &Path) -> Option<Stamp> {
    let text = fs::read(home.join("stamp.json")).ok()?;
    let stamp: Stamp = serde_json::from_slice(&text).ok()?;
    unpacked(home, &stamp).root.exists().then_some(stamp)
}

fn is_fresh(stamp: &Stamp) -> bool {
    now().saturating_sub(stamp.asked) < FRESH.as_secs()
}

/// Removes what is neither `current` nor young enough to be in use.
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

/// Removes a file or folder; one that another process removed first is removed all the same.
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

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
