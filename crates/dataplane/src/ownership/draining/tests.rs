//! The record of deadlines: restarts, damaged lines and failures.

use std::collections::BTreeSet;
use std::fs;

use proptest::prelude::*;

use super::*;
use crate::ownership::checked_record::{header, lines, parse, parse_line};

const FILE: &str = DeadlineLine::FILE;

const BOOT: &str = "boot-1";

fn key(text: &str) -> VirtualServerKey {
    parse_key(text).unwrap()
}

/// A deadline of the real server 10.244.0.`number` under the first virtual server; `None` without `until`.
fn deadline(number: u8, until: Option<u64>) -> Deadline {
    Deadline {
        key: key("-t 10.96.0.10:80"),
        address: [10, 244, 0, number].into(),
        port: 8080,
        until,
    }
}

fn reopen(directory: &Path) -> (Draining, Deadlines) {
    let (record, deadlines) = Draining::open(directory, BOOT);
    (record, deadlines.unwrap())
}

fn save(record: &mut Draining, changed: &[Deadline]) {
    let mut held = std::iter::empty();
    record
        .save(changed, &mut held, &CrashPoint::new(None))
        .unwrap();
}

fn text(directory: &Path) -> String {
    fs::read_to_string(directory.join(FILE)).unwrap()
}

fn held(deadlines: &Deadlines) -> Vec<Deadline> {
    assert_eq!(deadlines.damaged, 0);
    deadlines.iter().collect()
}

#[test]
fn every_kind_of_deadline_survives_its_line() {
    for (server, real) in [
        ("-t 10.96.0.1:443", "10.244.0.1:6443"),
        ("-t [fd00::a]:80", "[fd01::1]:8080"),
        ("--sctp-service 10.96.0.1:132", "10.244.0.1:132"),
        ("-f 7", "10.244.0.1:80"),
        ("-f 7 -6", "[fd01::1]:80"),
    ] {
        let real: SocketAddr = real.parse().unwrap();
        for until in [None, Some(0), Some(93_784_210), Some(u64::MAX)] {
            let deadline = Deadline {
                key: key(server),
                address: real.ip(),
                port: real.port(),
                until,
            };
            let line = lines::<DeadlineLine>(&[deadline]);
            assert_eq!(parse_line::<DeadlineLine>(&line), Some(deadline), "{line}");
        }
    }
}

#[test]
fn d9_deadlines_survive_the_process_and_end() {
    let directory = tempfile::tempdir().unwrap();
    let (mut record, deadlines) = reopen(directory.path());
    assert_eq!(held(&deadlines), []);
    save(
        &mut record,
        &[deadline(1, Some(1_000)), deadline(2, Some(2_000))],
    );
    save(&mut record, &[deadline(1, None), deadline(3, None)]);
    let written = text(directory.path());
    drop(record);
    let (_, deadlines) = reopen(directory.path());
    assert_eq!(held(&deadlines), [deadline(2, Some(2_000))]);
    assert!(written.len() > text(directory.path()).len(), "rewritten");
    assert_eq!(
        text(directory.path()),
        "ipvs-topo draining 1 boot boot-1\n\
         + -t 10.96.0.10:80 -r 10.244.0.2:8080 until 2000 sum 485507ea\n"
    );
}

#[test]
fn deadlines_of_another_boot_are_void() {
    let directory = tempfile::tempdir().unwrap();
    let (mut record, _) = reopen(directory.path());
    save(&mut record, &[deadline(1, Some(1_000))]);
    let (_, deadlines) = Draining::open(directory.path(), "boot-2");
    assert_eq!(held(&deadlines.unwrap()), []);
    let (_, deadlines) = reopen(directory.path());
    assert_eq!(held(&deadlines), [], "the void record was replaced");
}

#[test]
fn history_is_dropped_when_it_outgrows_the_deadlines() {
    let directory = tempfile::tempdir().unwrap();
    let (mut record, _) = reopen(directory.path());
    let remaining = deadline(9, Some(9));
    for until in 0..3_000 {
        let changes = [deadline(1, Some(until)), deadline(1, None)];
        let mut held = std::iter::once(remaining);
        record
            .save(&changes, &mut held, &CrashPoint::new(None))
            .unwrap();
    }
    let left = text(directory.path()).lines().count();
    assert!((2..2_000).contains(&left), "{left}");
    let (_, deadlines) = reopen(directory.path());
    assert_eq!(held(&deadlines), [remaining]);
}

#[test]
fn after_a_failure_no_old_deadline_stays_and_the_next_change_writes_all() {
    let directory = tempfile::tempdir().unwrap();
    let (mut record, _) = reopen(directory.path());
    save(&mut record, &[deadline(1, Some(1_000))]);
    record.0.forget_file();
    let aside = directory.path().join(FILE).with_extension("new");
    fs::create_dir(&aside).unwrap();
    let crash_point = CrashPoint::new(None);
    let failed = record.save(
        &[deadline(1, Some(5_000))],
        &mut std::iter::empty(),
        &crash_point,
    );
    assert!(failed.is_err());
    assert!(!directory.path().join(FILE).exists());
    fs::remove_dir(&aside).unwrap();
    let all = [deadline(1, Some(5_000)), deadline(2, Some(6_000))];
    record
        .save(&all[1..], &mut all.into_iter(), &crash_point)
        .unwrap();
    let (_, deadlines) = reopen(directory.path());
    assert_eq!(held(&deadlines), all);
}

/// Drains of four real servers that begin and end in turn; each drain of a real server has a later deadline than its
/// previous one.
fn drains() -> impl Strategy<Value = Vec<Deadline>> {
    prop::collection::vec((0..4_u8, 1..1_000_u64), 0..40).prop_map(|drains| {
        let mut latest = [None; 4];
        let mut now = 0;
        let next = |(number, pause): (u8, u64)| {
            now += pause;
            let slot = latest.get_mut(usize::from(number)).unwrap();
            *slot = match *slot {
                None => Some(now),
                Some(_) => None,
            };
            deadline(number, *slot)
        };
        drains.into_iter().map(next).collect()
    })
}

/// The deadlines after some changes.
fn standing(changes: &[Deadline]) -> BTreeMap<IpAddr, u64> {
    let mut standing = BTreeMap::new();
    for change in changes {
        match change.until {
            Some(until) => drop(standing.insert(change.address, until)),
            None => drop(standing.remove(&change.address)),
        }
    }
    standing
}

/// What a file with these lines says.
fn deadlines_of(lines: &str) -> Deadlines {
    let header = header::<DeadlineLine>(BOOT);
    Deadlines::after(parse::<DeadlineLine>(
        &format!("{header}\n{lines}"),
        &header,
    ))
}

fn read(lines: &str) -> BTreeMap<IpAddr, u64> {
    let deadlines = deadlines_of(lines);
    let until = |one: Deadline| (one.address, one.until.unwrap());
    deadlines.iter().map(until).collect()
}

proptest! {
    #[test]
    fn d9_a_kill_in_the_middle_of_a_line_loses_that_line_only(
        changes in drains(),
        cut in any::<prop::sample::Index>(),
    ) {
        let body = lines::<DeadlineLine>(&changes);
        let cut = cut.index(body.len() + 1);
        let whole = body[..cut].matches('\n').count();
        prop_assert_eq!(read(&body[..cut]), standing(&changes[..whole]));
    }

    /// Every end is a line of its own, so a lost line does not pass the deadline of an earlier drain to a later one.
    #[test]
    fn d9_a_damaged_line_affects_no_other_and_shortens_no_deadline(
        changes in drains(),
        at in any::<prop::sample::Index>(),
        byte in 0..60_usize,
        flip in 1..128_u8,
    ) {
        prop_assume!(!changes.is_empty());
        let at = at.index(changes.len());
        let mut damaged: Vec<Vec<u8>> = lines::<DeadlineLine>(&changes)
            .split_inclusive('\n')
            .map(|line| line.as_bytes().to_vec())
            .collect();
        let line = &mut damaged[at];
        // A line without its newline also damages the next one.
        let byte = byte % (line.len() - 1);
        line[byte] ^= flip;
        let body = String::from_utf8_lossy(&damaged.concat()).into_owned();
        let found = read(&body);
        let (truth, lost) = (standing(&changes), changes[at].address);
        let others = |all: &BTreeMap<IpAddr, u64>| -> BTreeSet<(IpAddr, u64)> {
            all.iter().filter(|(real, _)| **real != lost).map(|(real, until)| (*real, *until)).collect()
        };
        prop_assert_eq!(others(&found), others(&truth));
        if let (Some(found), Some(truth)) = (found.get(&lost), truth.get(&lost)) {
            prop_assert!(found >= truth, "{found} instead of {truth}");
        }
    }

    #[test]
    fn any_file_content_is_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert_eq!(deadlines_of(&text).held, BTreeMap::new());
    }
}
