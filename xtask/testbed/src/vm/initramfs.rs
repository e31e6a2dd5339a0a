//! Writes the archives that a guest boots (`cpio`, format newc). The kernel accepts concatenated archives, so each run
//! appends its files to the base.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail};
use cpio::newc::{Builder, ModeFileType, trailer};

/// Permissions of programs and folders.
const EXECUTABLE: u32 = 0o755;

/// Permissions of other files.
const PLAIN: u32 = 0o644;

pub(crate) struct Initramfs {
    out: BufWriter<File>,
    /// Number of written entries, and the inode number of the last one.
    entries: u32,
    folders: BTreeSet<String>,
}

impl Initramfs {
    /// Begins an archive in `file`.
    pub(crate) fn create(file: &Path) -> anyhow::Result<Self> {
        let out = File::create(file)
            .with_context(|| format!("cannot write the image {}", file.display()))?;
        Ok(Self::append(out))
    }

    /// Begins an archive at the end of `file`.
    pub(crate) fn append(file: File) -> Self {
        Self {
            out: BufWriter::with_capacity(1 << 20, file),
            entries: 0,
            folders: BTreeSet::new(),
        }
    }

    /// Adds the folder `path` and its parents.
    pub(crate) fn folder(&mut self, path: &str) -> io::Result<()> {
        let mut at = 0;
        while at < path.len() {
            let rest = path.get(at..).unwrap_or_default();
            at = rest.find('/').map_or(path.len(), |slash| at + slash);
            let part = path.get(..at).unwrap_or(path);
            if !part.is_empty() && self.folders.insert(part.to_owned()) {
                self.entry(part, ModeFileType::Directory, EXECUTABLE, &[])?;
            }
            at += 1;
        }
        Ok(())
    }

    pub(crate) fn program(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        self.file(path, EXECUTABLE, content)
    }

    /// Adds a file that is not executable.
    pub(crate) fn text(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        self.file(path, PLAIN, content)
    }

    pub(crate) fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.parents(path)?;
        self.entry(path, ModeFileType::Symlink, 0o777, target.as_bytes())
    }

    /// Adds everything below the folder `from` as `to`.
    pub(crate) fn tree(&mut self, to: &str, from: &Path) -> anyhow::Result<()> {
        self.folder(to)?;
        let mut entries = fs::read_dir(from)
            .with_context(|| format!("cannot read {}", from.display()))?
            .collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = format!("{to}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.tree(&path, &entry.path())?;
            } else {
                self.text(&path, &fs::read(entry.path())?)?;
            }
        }
        Ok(())
    }

    /// Ends the archive and returns its number of entries.
    pub(crate) fn finish(self) -> anyhow::Result<u32> {
        let mut out = trailer(self.out)?;
        out.flush()?;
        if self.entries == 0 {
            bail!("an archive without entries");
        }
        Ok(self.entries)
    }

    fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        self.parents(path)?;
        self.entry(path, ModeFileType::Regular, mode, content)
    }

    fn parents(&mut self, path: &str) -> io::Result<()> {
        match path.rsplit_once('/') {
            Some((parents, _)) => self.folder(parents),
            None => Ok(()),
        }
    }

    fn entry(
        &mut self,
        path: &str,
        kind: ModeFileType,
        mode: u32,
        content: &[u8],
    ) -> io::Result<()> {
        self.entries += 1;
        let size = u32::try_from(content.len()).map_err(io::Error::other)?;
        let mut writer = Builder::new(path)
            .ino(self.entries)
            .mode(mode)
            .set_mode_file_type(kind)
            .write(&mut self.out, size);
        writer.write_all(content)?;
        writer.finish().map(drop)
    }
}
