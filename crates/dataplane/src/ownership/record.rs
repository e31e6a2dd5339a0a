//! Records which virtual servers are ours, so that no other one is ever changed.
//!
//! The record is one text file in the state directory. The first line names the format and the boot id. Each further
//! line claims (`+ -t 10.96.0.10:80`) or releases (`- -t 10.96.0.10:80`) one virtual server in the notation of ipvsadm.
//! A claim is written before the virtual server is created, and a release after it was deleted. So a process that dies
//! in between leaves at most a claim without a virtual server. After a failed write the next one replaces the file. A
//! record of another boot is void, because the kernel's table was lost.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use topology_core::model::{Family, Protocol};
use topology_core::virtual_server::VirtualServerKey;

use crate::crash_point::CrashPoint;
use crate::ownership::journal::Journal;

const FILE: &str = "owned";
const HEADER: &str = "ipvs-topo owned 1 boot ";

/// The open record.
#[derive(Debug)]
pub struct OwnershipRecord {
    path: PathBuf,
    header: String,
    /// `None` after a failure: then the next write replaces the file.
    journal: Option<Journal>,
}

/// The contents of the record when it was opened.
#[derive(Debug, Default)]
pub struct Claims {
    /// The virtual servers that are ours.
    pub keys: BTreeSet<VirtualServerKey>,
    /// Lines that could not be parsed (a torn last line, a manual edit).
    pub damaged: usize,
}

impl Claims {
    /// Reads the record in `directory` without opening it for writing; empty if it does not exist.
    pub fn read(directory: &Path, boot: &str) -> io::Result<Self> {
        let text = Journal::read(&directory.join(FILE))?;
        Ok(Self::parse(&text, boot))
    }

    fn parse(text: &str, boot: &str) -> Self {
        let mut claims = Self::default();
        let mut lines = text.split_inclusive('\n');
        let header = lines.next().unwrap_or_default().trim_end();
        if header.strip_prefix(HEADER) != Some(boot) {
            return claims;
        }
        for line in lines {
            match claim(line) {
                Some(('+', key)) => drop(claims.keys.insert(key)),
                Some((_, key)) => drop(claims.keys.remove(&key)),
                None => claims.damaged += 1,
            }
        }
        claims
    }
}

/// Parses a line, with its newline: the sign and the key.
fn claim(line: &str) -> Option<(char, VirtualServerKey)> {
    let (sign, key) = line.strip_suffix('\n')?.split_at_checked(2)?;
    let sign = match sign {
        "+ " => '+',
        "- " => '-',
        _ => return None,
    };
    Some((sign, parse_key(key)?))
}

/// Parses a key in the notation of ipvsadm.
pub fn parse_key(text: &str) -> Option<VirtualServerKey> {
    let (option, rest) = text.split_once(' ')?;
    let protocol = match option {
        "-t" => Protocol::Tcp,
        "-u" => Protocol::Udp,
        "--sctp-service" => Protocol::Sctp,
        "-f" => return firewall_mark(rest),
        _ => return None,
    };
    let frontend: SocketAddr = rest.parse().ok()?;
    let (address, port) = (frontend.ip(), frontend.port());
    Some(VirtualServerKey::Address {
        protocol,
        address,
        port,
    })
}

fn firewall_mark(text: &str) -> Option<VirtualServerKey> {
    let (mark, family) = match text.strip_suffix(" -6") {
        Some(mark) => (mark, Family::V6),
        None => (text, Family::V4),
    };
    Some(VirtualServerKey::FirewallMark {
        family,
        mark: mark.parse().ok()?,
    })
}

/// Checks that a record of the parsed keys parses to the same.
#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    let Claims { keys, .. } = Claims::parse(text, "b");
    let lines: String = keys.iter().map(|key| format!("+ {key}\n")).collect();
    let again = Claims::parse(&format!("{HEADER}b\n{lines}"), "b");
    assert_eq!((again.keys, again.damaged), (keys, 0));
}

impl OwnershipRecord {
    /// Opens or creates the record in `directory`; `boot` is the kernel's boot id. Missing folders are created with mode
    /// 0777 without the bits of the umask. The record itself has mode 0600.
    pub fn open(directory: &Path, boot: &str) -> io::Result<(Self, Claims)> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join(FILE);
        let header = format!("{HEADER}{boot}");
        let text = Journal::read(&path)?;
        let claims = Claims::parse(&text, boot);
        let fresh = || lines('+', claims.keys.iter().copied());
        let journal = Journal::open(&path, &header, &text, claims.keys.len(), fresh)?;
        let journal = Some(journal);
        let record = Self {
            path,
            header,
            journal,
        };
        Ok((record, claims))
    }

    /// Records that `keys` are about to be created. `held` has all our keys without these, in case the file is replaced.
    pub fn claim(
        &mut self,
        keys: &[VirtualServerKey],
        held: &mut dyn Iterator<Item = VirtualServerKey>,
        crash_point: &CrashPoint,
    ) -> io::Result<()> {
        let mut all = held.chain(keys.iter().copied());
        self.write(&lines('+', keys.iter().copied()), &mut all, crash_point)
    }

    /// Records that `keys` are deleted. `held` has all our remaining keys, in case the file is replaced.
    pub fn release(
        &mut self,
        keys: &[VirtualServerKey],
        held: &mut dyn Iterator<Item = VirtualServerKey>,
        crash_point: &CrashPoint,
    ) -> io::Result<()> {
        self.write(&lines('-', keys.iter().copied()), held, crash_point)
    }

    /// Appends the lines of a change, or replaces the file by one that claims exactly `all`. A file that cannot be
    /// replaced, in a folder that is read-only for example, grows.
    fn write(
        &mut self,
        change: &str,
        all: &mut dyn Iterator<Item = VirtualServerKey>,
        crash_point: &CrashPoint,
    ) -> io::Result<()> {
        let needs_rewrite = self.journal.as_ref().is_some_and(Journal::needs_rewrite);
        if needs_rewrite && self.replace(all).is_ok() {
            return Ok(());
        }
        let Some(journal) = &mut self.journal else {
            return self.replace(all);
        };
        let written = journal.append(change, crash_point);
        if written.is_err() {
            self.journal = None;
        }
        written
    }

    fn replace(&mut self, all: &mut dyn Iterator<Item = VirtualServerKey>) -> io::Result<()> {
        let text = lines('+', all);
        self.journal = Some(Journal::create(&self.path, &self.header, &text)?);
        Ok(())
    }
}

fn lines(sign: char, keys: impl Iterator<Item = VirtualServerKey>) -> String {
    keys.fold(String::new(), |mut text, key| {
        // Writing to a `String` fails only if `Display` does; `Display` of a key does not.
        let _written = writeln!(text, "{sign} {key}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::iter::empty;

    use super::*;

    fn key(text: &str) -> VirtualServerKey {
        claim(&format!("+ {text}\n")).unwrap().1
    }

    fn keys<const N: usize>(texts: [&str; N]) -> [VirtualServerKey; N] {
        texts.map(key)
    }

    fn texts(claims: &Claims) -> Vec<String> {
        claims.keys.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_kind_of_key_survives_its_text() {
        for text in [
            "-t 10.96.0.1:443",
            "-u [fd00::a]:53",
            "--sctp-service 10.96.0.1:132",
            "-f 7",
            "-f 7 -6",
        ] {
            assert_eq!(key(text).to_string(), text);
        }
        for bad in [
            "+ -t 10.96.0.1:443",
            "* -f 7\n",
            "+ -x 7\n",
            "+ -f x\n",
            "+\n",
        ] {
            assert_eq!(claim(bad), None, "{bad:?}");
        }
    }

    fn reopen(directory: &Path) -> (OwnershipRecord, Claims) {
        OwnershipRecord::open(directory, "boot-1").unwrap()
    }

    #[test]
    fn t08_claims_survive_the_process_and_releases_undo_them() {
        let directory = tempfile::tempdir().unwrap();
        let crash_point = CrashPoint::new(None);
        let (mut record, claims) = reopen(directory.path());
        assert!(texts(&claims).is_empty());
        record
            .claim(
                &keys(["-t 10.96.0.1:443", "-u 10.96.0.10:53", "-t [fd00::1]:80"]),
                &mut empty(),
                &crash_point,
            )
            .unwrap();
        record
            .release(&keys(["-u 10.96.0.10:53"]), &mut empty(), &crash_point)
            .unwrap();
        drop(record);
        let (_, claims) = reopen(directory.path());
        assert_eq!(texts(&claims), ["-t 10.96.0.1:443", "-t [fd00::1]:80"]);
    }

    #[test]
    fn a_record_that_cannot_be_replaced_grows_and_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let crash_point = CrashPoint::new(None);
        let (mut record, _) = reopen(directory.path());
        let in_the_way = directory.path().join(FILE).with_extension("new");
        fs::create_dir(&in_the_way).unwrap();
        let web = keys(["-t 10.96.0.1:443"]);
        while !record.journal.as_ref().unwrap().needs_rewrite() {
            record.claim(&web, &mut empty(), &crash_point).unwrap();
        }
        let last = keys(["-t 10.96.0.2:443"]);
        let mut held = web.into_iter();
        record.claim(&last, &mut held, &crash_point).unwrap();
        let claims = Claims::read(directory.path(), "boot-1").unwrap();
        assert_eq!(texts(&claims), ["-t 10.96.0.1:443", "-t 10.96.0.2:443"]);

        fs::remove_dir(&in_the_way).unwrap();
        let mut held = web.into_iter().chain(last);
        record
            .release(&keys(["-f 7"]), &mut held, &crash_point)
            .unwrap();
        let text = fs::read_to_string(directory.path().join(FILE)).unwrap();
        assert_eq!(
            text.lines().count(),
            3,
            "it is replaced as soon as it can be"
        );
    }

    #[test]
    fn a_record_of_another_boot_is_void() {
        let directory = tempfile::tempdir().unwrap();
        let (mut record, _) = reopen(directory.path());
        record
            .claim(
                &keys(["-t 10.96.0.1:443"]),
                &mut empty(),
                &CrashPoint::new(None),
            )
            .unwrap();
        let (_, claims) = OwnershipRecord::open(directory.path(), "boot-2").unwrap();
        assert!(!claims.keys.contains(&key("-t 10.96.0.1:443")));
        let (_, claims) = reopen(directory.path());
        assert!(
            !claims.keys.contains(&key("-t 10.96.0.1:443")),
            "the void record was replaced"
        );
    }

    #[test]
    fn a_torn_last_line_is_ignored_and_does_not_corrupt_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let (mut record, _) = reopen(directory.path());
        record
            .claim(
                &keys(["-t 10.96.0.1:443"]),
                &mut empty(),
                &CrashPoint::new(None),
            )
            .unwrap();
        let journal = record.journal.as_mut().unwrap();
        journal
            .append("+ -t 10.96.0.2:4", &CrashPoint::new(None))
            .unwrap();
        drop(record);
        let (mut record, claims) = reopen(directory.path());
        assert_eq!(claims.damaged, 1);
        record
            .claim(
                &keys(["-t 10.96.0.3:80"]),
                &mut empty(),
                &CrashPoint::new(None),
            )
            .unwrap();
        let (_, claims) = reopen(directory.path());
        assert_eq!(texts(&claims), ["-t 10.96.0.1:443", "-t 10.96.0.3:80"]);
    }

    #[test]
    fn history_is_dropped_when_it_outgrows_the_claims() {
        let directory = tempfile::tempdir().unwrap();
        let crash_point = CrashPoint::new(None);
        let (mut record, _) = reopen(directory.path());
        let path = directory.path().join(FILE);
        let mut longest = 0;
        loop {
            let web = keys(["-t 10.96.0.1:443"]);
            record.claim(&web, &mut empty(), &crash_point).unwrap();
            let mut held = keys(["-t 10.96.0.9:80"]).into_iter();
            record.release(&web, &mut held, &crash_point).unwrap();
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            if lines < longest {
                break;
            }
            longest = lines;
        }
        record
            .claim(&keys(["-t 10.96.0.8:80"]), &mut empty(), &crash_point)
            .unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "ipvs-topo owned 1 boot boot-1\n+ -t 10.96.0.9:80\n+ -t 10.96.0.8:80\n"
        );
    }

    #[test]
    fn a_change_that_could_not_be_written_is_in_the_file_after_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let crash_point = CrashPoint::new(None);
        let (mut record, _) = reopen(directory.path());
        let [web, dns, mail] = keys(["-t 10.96.0.1:443", "-u 10.96.0.10:53", "-t 10.96.0.3:25"]);
        record
            .claim(&[web, dns], &mut empty(), &crash_point)
            .unwrap();
        for releases in [false, true] {
            record.journal = Some(Journal::on_full_disk().unwrap());
            let mut held = [dns].into_iter();
            record.release(&[web], &mut held, &crash_point).unwrap_err();
            let mut held = [dns].into_iter();
            if releases {
                record.release(&[], &mut held, &crash_point).unwrap();
            } else {
                record.claim(&[mail], &mut held, &crash_point).unwrap();
            }
            let (reopened, claims) = reopen(directory.path());
            let expected = if releases { vec![dns] } else { vec![dns, mail] };
            assert_eq!(claims.keys, expected.into_iter().collect());
            record = reopened;
            record.claim(&[web], &mut empty(), &crash_point).unwrap();
        }
    }
}
