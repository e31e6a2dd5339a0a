//! Records the settings of the kernel that the agent changes, with their old values.
//!
//! The file is beside the ownership record. A line (`net.ipv4.ip_forward old 0 new 1 sum 5f0c1a2b`) is written before
//! the change. A later line of the same setting changes its new value; the old value is that of the first line. So a
//! setting whose value is still the new one can get its old value back, and another program's change is known. A damaged
//! line is ignored. Settings do not outlive a reboot, and neither does the record.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use crate::crash_point::CrashPoint;
use crate::hash::fnv1a;
use crate::ownership::journal::Journal;

const FILE: &str = "settings";
const HEADER: &str = "ipvs-topo settings 1 boot ";

/// A change of a setting. Values have no spaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// The sysctl, or `ipvs.tcp_timeout` and its like.
    pub name: String,
    pub old: String,
    pub new: String,
}

impl fmt::Display for SettingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, old, new } = self;
        write!(f, "{name}: {old} -> {new}")
    }
}

/// The contents of the record, by the name of the setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedSettings {
    held: BTreeMap<String, (String, String)>,
    /// Lines that could not be parsed (a torn last line, a manual edit).
    pub damaged: usize,
}

impl SavedSettings {
    /// The settings with their first old and their last new value.
    pub fn iter(&self) -> impl Iterator<Item = SettingChange> {
        self.held.iter().map(|(name, (old, new))| SettingChange {
            name: name.clone(),
            old: old.clone(),
            new: new.clone(),
        })
    }

    /// Adds a change; returns whether that is new.
    fn add(&mut self, change: &SettingChange) -> bool {
        let SettingChange { name, old, new } = change;
        if let Some((_, held)) = self.held.get_mut(name) {
            let is_new = held != new;
            held.clone_from(new);
            return is_new;
        }
        self.held.insert(name.clone(), (old.clone(), new.clone()));
        true
    }

    /// Parses the text of the file.
    pub fn parse(text: &str, boot: &str) -> Self {
        let mut saved = Self::default();
        let mut lines = text.split_inclusive('\n');
        let header = lines.next().unwrap_or_default().trim_end();
        if header.strip_prefix(HEADER) != Some(boot) {
            return saved;
        }
        for line in lines {
            match parse_line(line) {
                Some(change) => drop(saved.add(&change)),
                None => saved.damaged += 1,
            }
        }
        saved
    }
}

/// The open record.
#[derive(Debug)]
pub struct SettingsRecord {
    path: PathBuf,
    header: String,
    saved: SavedSettings,
    /// `None` after a failure: the next change writes the whole file.
    journal: Option<Journal>,
}

impl SettingsRecord {
    /// Opens or creates the record in `directory`, which exists; `boot` is the kernel's boot id. After an error the next
    /// change tries again.
    pub fn open(directory: &Path, boot: &str) -> (Self, io::Result<SavedSettings>) {
        let mut record = Self {
            path: directory.join(FILE),
            header: format!("{HEADER}{boot}"),
            saved: SavedSettings::default(),
            journal: None,
        };
        let saved = record.load(boot);
        (record, saved)
    }

    fn load(&mut self, boot: &str) -> io::Result<SavedSettings> {
        let text = Journal::read(&self.path)?;
        self.saved = SavedSettings::parse(&text, boot);
        let saved = self.saved.clone();
        let fresh = || lines(saved.iter());
        let live = saved.held.len();
        self.journal = Some(Journal::open(&self.path, &self.header, &text, live, fresh)?);
        Ok(saved)
    }

    /// Records a change that is about to be made.
    pub fn save(&mut self, change: &SettingChange, crash_point: &CrashPoint) -> io::Result<()> {
        if !self.saved.add(change) && self.journal.is_some() {
            return Ok(());
        }
        let written = match &mut self.journal {
            Some(journal) if !journal.needs_rewrite() => {
                journal.append(&lines(std::iter::once(change.clone())), crash_point)
            }
            Some(_) | None => self.rewrite(),
        };
        if written.is_err() {
            self.journal = None;
        }
        written
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let text = lines(self.saved.iter());
        self.journal = Some(Journal::create(&self.path, &self.header, &text)?);
        Ok(())
    }
}

fn lines(changes: impl Iterator<Item = SettingChange>) -> String {
    changes.fold(String::new(), |mut text, change| {
        let SettingChange { name, old, new } = change;
        let words = format!("{name} old {old} new {new}");
        // Writing to a `String` fails only if `Display` does; `Display` of a number does not.
        let _written = writeln!(text, "{words} sum {:08x}", fnv1a(&words));
        text
    })
}

/// Parses a line, with its newline.
fn parse_line(line: &str) -> Option<SettingChange> {
    let (words, sum) = line.strip_suffix('\n')?.rsplit_once(" sum ")?;
    let same = sum == format!("{:08x}", fnv1a(words));
    let mut parts = words.split(' ');
    let mut next = || parts.next().filter(|part| same && !part.is_empty());
    let change = match [next()?, next()?, next()?, next()?, next()?] {
        [name, "old", old, "new", new] => SettingChange {
            name: name.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
        },
        _ => return None,
    };
    parts.next().is_none().then_some(change)
}

/// Checks that a record of the parsed settings parses to the same. Lines without a checksum get one.
#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    let with_sum = |line: &str| match line.contains(" sum ") {
        true => format!("{line}\n"),
        false => format!("{line} sum {:08x}\n", fnv1a(line)),
    };
    let all: String = text.lines().map(with_sum).collect();
    let SavedSettings { held, .. } = SavedSettings::parse(&format!("{HEADER}b\n{all}"), "b");
    let saved = SavedSettings { held, damaged: 0 };
    let text = format!("{HEADER}b\n{}", lines(saved.iter()));
    assert_eq!(SavedSettings::parse(&text, "b"), saved);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, old: &str, new: &str) -> SettingChange {
        SettingChange {
            name: name.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
        }
    }

    fn open(directory: &Path, boot: &str) -> (SettingsRecord, Vec<SettingChange>) {
        let (record, saved) = SettingsRecord::open(directory, boot);
        (record, saved.unwrap().iter().collect())
    }

    #[test]
    fn the_first_old_value_and_the_last_new_one_survive_the_process_but_not_a_reboot() {
        let directory = tempfile::tempdir().unwrap();
        let never = CrashPoint::new(None);
        let (mut record, saved) = open(directory.path(), "b");
        assert!(saved.is_empty());
        record.save(&change("a", "0", "1"), &never).unwrap();
        record.save(&change("b", "5", "7"), &never).unwrap();
        // Another program set it to 3, and the agent to 2.
        record.save(&change("a", "3", "2"), &never).unwrap();
        let expected = [change("a", "0", "2"), change("b", "5", "7")];
        let (mut record, saved) = open(directory.path(), "b");
        assert_eq!(saved, expected);
        let before = std::fs::read_to_string(directory.path().join(FILE)).unwrap();
        record.save(&change("a", "9", "2"), &never).unwrap();
        let after = std::fs::read_to_string(directory.path().join(FILE)).unwrap();
        assert_eq!(before, after, "a repeated change needs no line");
        assert!(open(directory.path(), "other").1.is_empty());
    }

    #[test]
    fn a_torn_or_edited_line_is_ignored() {
        let whole = lines([change("a", "0", "1"), change("b", "0", "1")].into_iter());
        let torn = whole.trim_end();
        let saved = SavedSettings::parse(&format!("{HEADER}b\n{torn}"), "b");
        assert_eq!(saved.iter().collect::<Vec<_>>(), [change("a", "0", "1")]);
        assert_eq!(saved.damaged, 1);
        let edited = whole.replace("new 1", "new 2");
        assert_eq!(
            SavedSettings::parse(&format!("{HEADER}b\n{edited}"), "b").damaged,
            2
        );
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_and_the_next_change_writes_all() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        let never = CrashPoint::new(None);
        let (mut record, saved) = SettingsRecord::open(&missing, "b");
        assert!(saved.is_err());
        assert!(record.save(&change("a", "0", "1"), &never).is_err());
        std::fs::create_dir(&missing).unwrap();
        record.save(&change("b", "0", "1"), &never).unwrap();
        assert_eq!(open(&missing, "b").1.len(), 2);
    }
}
