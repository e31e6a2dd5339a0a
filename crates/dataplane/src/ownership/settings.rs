//! Records the settings of the kernel that the agent changes, with their old values.
//!
//! The file is beside the ownership record. A line (`net.ipv4.ip_forward old 0 new 1 sum 5f0c1a2b`) is written before
//! the change. A later line of the same setting changes its new value; the old value is that of the first line. So a
//! setting whose value is still the new one can get its old value back, and another program's change is known. A damaged
//! line is ignored. Settings do not outlive a reboot, and neither does the record.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use crate::crash_point::CrashPoint;
use crate::ownership::checked_record::{CheckedRecord, LineFormat, ParsedLines};

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

    fn after(lines: ParsedLines<SettingChange>) -> Self {
        let mut saved = Self {
            damaged: lines.damaged,
            ..Self::default()
        };
        for change in lines.entries {
            saved.add(&change);
        }
        saved
    }
}

/// The open record.
#[derive(Debug)]
pub struct SettingsRecord {
    saved: SavedSettings,
    file: CheckedRecord<SettingLine>,
}

/// A change of a setting.
#[derive(Debug)]
struct SettingLine;

impl SettingsRecord {
    /// Opens or creates the record in `directory`, which exists; `boot` is the kernel's boot id. After an error the next
    /// change tries again.
    pub fn open(directory: &Path, boot: &str) -> (Self, io::Result<SavedSettings>) {
        let mut file = CheckedRecord::new(directory, boot);
        let saved = file.open(SavedSettings::after, |saved| saved.iter().collect());
        let record = Self {
            saved: saved.as_ref().cloned().unwrap_or_default(),
            file,
        };
        (record, saved)
    }

    /// Records a change that is about to be made.
    pub fn save(&mut self, change: &SettingChange, crash_point: &CrashPoint) -> io::Result<()> {
        if !self.saved.add(change) && self.file.is_complete() {
            return Ok(());
        }
        let all = || self.saved.iter().collect();
        self.file
            .save(std::slice::from_ref(change), all, crash_point)
    }
}

impl LineFormat for SettingLine {
    const FILE: &'static str = "settings";
    type Entry = SettingChange;

    fn print(change: &SettingChange) -> String {
        let SettingChange { name, old, new } = change;
        format!("{name} old {old} new {new}")
    }

    fn parse(words: &str) -> Option<SettingChange> {
        let words: Vec<&str> = words.split(' ').collect();
        let [name, "old", old, "new", new] = words[..] else {
            return None;
        };
        let is_whole = [name, old, new].iter().all(|word| !word.is_empty());
        is_whole.then(|| SettingChange {
            name: name.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
        })
    }
}

/// Checks that a record of the parsed settings parses to the same.
#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    use crate::ownership::checked_record::{parse_fuzzed, reparse};
    let of = |entries| {
        SavedSettings::after(ParsedLines {
            entries,
            damaged: 0,
        })
    };
    let saved = of(parse_fuzzed::<SettingLine>(text));
    let all: Vec<SettingChange> = saved.iter().collect();
    assert_eq!(of(reparse::<SettingLine>(&all)), saved);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ownership::checked_record::{header, lines, parse};

    const FILE: &str = SettingLine::FILE;

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
        let header = header::<SettingLine>("b");
        let saved_of = |lines: &str| {
            let text = format!("{header}\n{lines}");
            SavedSettings::after(parse::<SettingLine>(&text, &header))
        };
        let whole = lines::<SettingLine>(&[change("a", "0", "1"), change("b", "0", "1")]);
        let saved = saved_of(whole.trim_end());
        assert_eq!(saved.iter().collect::<Vec<_>>(), [change("a", "0", "1")]);
        assert_eq!(saved.damaged, 1);
        let edited = whole.replace("new 1", "new 2");
        assert_eq!(saved_of(&edited).damaged, 2);
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

    /// Runs the documented commands. The values of sysctls are in files of `directory`. Returns the calls of `ipvsadm`.
    fn restore(directory: &Path) -> String {
        const DOCUMENT: &str = include_str!("../../../../docs/install.md");
        const PROGRAMS: &str = "set -eu
            sysctl() {
                case $1 in
                -n) cat \"$values/$2\" ;;
                -w) echo \"${2#*=}\" >\"$values/${2%%=*}\" ;;
                esac
            }
            ipvsadm() { echo \"$*\"; }
            values=$1
            ";
        let (_, rest) = DOCUMENT
            .split_once("restore them with these commands")
            .unwrap();
        let commands = rest.split("```").nth(1).unwrap();
        let commands = commands.strip_prefix("sh\n").unwrap();
        let file = directory.join(FILE);
        let commands = commands.replace("/run/ipvs-topo/settings", file.to_str().unwrap());
        let script = format!("{PROGRAMS}{commands}");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script, "sh"]).arg(directory);
        let done = shell.output().unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && errors.is_empty(), "{errors}");
        String::from_utf8(done.stdout).unwrap()
    }

    #[test]
    fn the_documented_commands_restore_what_still_has_the_agents_value() {
        let directory = tempfile::tempdir().unwrap();
        let never = CrashPoint::new(None);
        let (mut record, _) = open(directory.path(), "b");
        for (name, old, new) in [
            ("net.ours", "0", "1"),
            ("net.theirs", "5", "7"),
            ("net.ours", "3", "2"),
            ("ipvs.tcp_timeout", "900", "60"),
            ("ipvs.tcpfin_timeout", "120", "30"),
            ("ipvs.udp_timeout", "300", "20"),
        ] {
            record.save(&change(name, old, new), &never).unwrap();
        }
        let file = directory.path().join(FILE);
        let torn = std::fs::read_to_string(&file).unwrap() + "net.theirs old 5 new 9";
        std::fs::write(file, torn).unwrap();
        let value = |name: &str| directory.path().join(name);
        std::fs::write(value("net.ours"), "2\n").unwrap();
        std::fs::write(value("net.theirs"), "9\n").unwrap();
        let printed = restore(directory.path());
        let mut calls: Vec<&str> = printed.lines().collect();
        calls.sort_unstable();
        assert_eq!(calls, ["--set 0 0 300", "--set 0 120 0", "--set 900 0 0"]);
        let read = |name: &str| std::fs::read_to_string(value(name)).unwrap();
        assert_eq!((&*read("net.ours"), &*read("net.theirs")), ("0\n", "9\n"));
    }
}
