//! An append-only text file of lines, rewritten when most lines are obsolete.
//!
//! The first line names the format and the boot id, because the file describes the kernel's table, which is lost at a
//! reboot. For the same reason nothing is synced to disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::crash_point::CrashPoint;

/// Obsolete lines that are tolerated, beyond twice the valid lines of the last rewrite.
const SLACK: usize = 4096;

/// The open file.
#[derive(Debug)]
pub struct Journal {
    file: File,
    lines: usize,
    limit: usize,
}

impl Journal {
    /// Reads the file; empty if it does not exist.
    pub fn read(path: &Path) -> io::Result<String> {
        match fs::read(path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    /// Opens the file with the contents `text`, of which `live` lines are valid. If the file is empty or has anything
    /// else, it is replaced by one with the lines of `fresh`.
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
        Ok(Self::over(file, live))
    }

    /// Replaces the file by one with these lines.
    pub fn create(path: &Path, header: &str, text: &str) -> io::Result<Self> {
        let file = write_aside(path, header, text)?;
        Ok(Self::over(file, text.lines().count()))
    }

    fn over(file: File, lines: usize) -> Self {
        Self {
            file,
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
            // Half a line would damage the next one, or have another meaning.
            self.file.set_len(whole)?;
        }
        written?;
        self.lines += text.lines().count();
        crash_point.record_writes(1);
        Ok(())
    }

    /// Whether most of the file is obsolete. Per line, rewriting it then costs no more than appending did.
    pub fn needs_rewrite(&self) -> bool {
        self.lines > self.limit
    }

    /// A file that cannot become longer.
    #[cfg(test)]
    pub fn on_full_disk() -> io::Result<Self> {
        let file = OpenOptions::new().append(true).open("/dev/full")?;
        Ok(Self::over(file, 0))
    }
}

/// Writes a new file beside `path` and renames it over `path`; returns it opened for appending.
///
/// A file that an earlier process left beside it is removed, not opened: its name is known, so it may be a link to
/// another file.
fn write_aside(path: &Path, header: &str, text: &str) -> io::Result<File> {
    let aside = path.with_extension("new");
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)?;
    file.write_all(format!("{header}\n{text}").as_bytes())?;
    fs::rename(&aside, path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_link_in_the_place_of_the_new_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [path, aside, other] =
            ["owned", "owned.new", "other"].map(|name| folder.path().join(name));
        fs::write(&other, "valuable").unwrap();
        symlink(&other, &aside).unwrap();
        let mut journal = Journal::create(&path, "header", "a\n").unwrap();
        journal.append("b\n", &CrashPoint::new(None)).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "valuable");
        assert_eq!(fs::read_to_string(&path).unwrap(), "header\na\nb\n");
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert!(metadata.is_file());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
}
