//! A text file of lines that is only appended to, and rewritten when it is mostly history.
//!
//! Its first line names the format and the boot: what it says is about the kernel's table, which dies with that boot.
//! Nothing is synced to disk for the same reason.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::crash_point::CrashPoint;

/// Lines of history that are tolerated beyond twice those that counted when the file was last rewritten.
const SLACK: usize = 4096;

/// The open file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    header: String,
    lines: usize,
    limit: usize,
}

impl Journal {
    /// The text of the file; empty if there is none.
    pub fn read(path: &Path) -> io::Result<String> {
        match fs::read(path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    /// Opens the file that holds `text`, of which `live` lines count. It is replaced by one with the lines of `fresh` if it
    /// holds anything else or nothing.
    pub fn open(
        path: &Path,
        header: &str,
        text: &str,
        live: usize,
        fresh: impl FnOnce() -> String,
    ) -> io::Result<Self> {
        let is_clean = live > 0 && text.lines().count() == live + 1 && text.ends_with('\n');
        if !is_clean {
            return Self::create(path, header, &fresh());
        }
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(Self::over(path, file, header, live))
    }

    /// Replaces the file by one with these lines.
    pub fn create(path: &Path, header: &str, text: &str) -> io::Result<Self> {
        let file = write_aside(path, header, text)?;
        Ok(Self::over(path, file, header, text.lines().count()))
    }

    fn over(path: &Path, file: File, header: &str, lines: usize) -> Self {
        Self {
            path: path.to_owned(),
            file,
            header: header.to_owned(),
            lines,
            limit: 2 * lines + SLACK,
        }
    }

    /// Appends whole lines, or nothing.
    pub fn append(&mut self, text: &str, crash_point: &CrashPoint) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let whole = self.file.metadata()?.len();
        let written = self.file.write_all(text.as_bytes());
        if written.is_err() {
            // Half a line would spoil the next one, or say something else.
            self.file.set_len(whole)?;
        }
        written?;
        self.lines += text.lines().count();
        crash_point.record_writes(1);
        Ok(())
    }

    /// Whether the file has grown so much that most of it is history. Rewriting it then costs no more, line by line,
    /// than appending did.
    pub fn wants_rewrite(&self) -> bool {
        self.lines > self.limit
    }

    /// Replaces the lines of the file.
    pub fn rewrite(&mut self, text: &str) -> io::Result<()> {
        *self = Self::create(&self.path, &self.header, text)?;
        Ok(())
    }
}

/// Writes a new file beside `path` and renames it over it; returns it opened for appending.
fn write_aside(path: &Path, header: &str, text: &str) -> io::Result<File> {
    let aside = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&aside)?;
    file.write_all(format!("{header}\n{text}").as_bytes())?;
    fs::rename(&aside, path)?;
    OpenOptions::new().append(true).open(path)
}
