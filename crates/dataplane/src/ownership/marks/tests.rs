//! The record of firewall marks: restarts, damaged lines and failures.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::hash::fnv1a;
use crate::ownership::checked_record::{header, lines, parse, parse_line};

const FILE: &str = MarkLine::FILE;

const BOOT: &str = "boot-1";

fn port(service: &str, port_name: &str, protocol: Protocol) -> MarkedPort {
    MarkedPort {
        service: ObjectName::new("shop", service),
        port_name: port_name.into(),
        protocol,
    }
}

fn web(number: u8) -> MarkedPort {
    port(&format!("web-{number}"), "http", Protocol::Tcp)
}

fn reopen(directory: &Path) -> (MarkRecord, SavedMarks) {
    let (record, saved) = MarkRecord::open(directory, BOOT);
    (record, saved.unwrap())
}

fn save(record: &mut MarkRecord, changed: &[(MarkedPort, Option<u32>)]) {
    let mut held = std::iter::empty();
    record
        .save(changed, &mut held, &CrashPoint::new(None))
        .unwrap();
}

fn text(directory: &Path) -> String {
    fs::read_to_string(directory.join(FILE)).unwrap()
}

/// What a file with these lines says.
fn marks_of(lines: &str) -> SavedMarks {
    let header = header::<MarkLine>(BOOT);
    SavedMarks::after(parse::<MarkLine>(&format!("{header}\n{lines}"), &header))
}

fn whole(saved: &SavedMarks) -> Vec<(MarkedPort, u32)> {
    assert_eq!(saved.damaged, 0);
    saved.marks.clone()
}

#[test]
fn every_kind_of_port_survives_its_line() {
    for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Sctp] {
        for port_name in ["http", "", "p-1"] {
            for mark in [None, Some(3), Some(0x2000_1235), Some(u32::MAX)] {
                let change = (port("web", port_name, protocol), mark);
                let line = lines::<MarkLine>(std::slice::from_ref(&change));
                assert_eq!(parse_line::<MarkLine>(&line), Some(change), "{line}");
            }
        }
    }
}

#[test]
fn what_is_no_port_or_no_mark_is_no_line() {
    let parse_line = parse_line::<MarkLine>;
    let with_sum = |words: &str| format!("{words} sum {:08x}\n", fnv1a(words));
    let good = "+ 0x20001235 TCP shop/web http";
    assert!(parse_line(&with_sum(good)).is_some());
    assert_eq!(parse_line(&format!("{good} sum 00000000\n")), None);
    assert_eq!(parse_line(with_sum(good).trim_end()), None, "a torn line");
    for bad in [
        "",
        "+",
        "* 0x20001235 TCP shop/web http",
        "+ 20001235 TCP shop/web http",
        "+ 0x120001235 TCP shop/web http",
        "+ TCP shop/web http",
        "+ 0x20001235 ICMP shop/web http",
        "+ 0x20001235 TCP web http",
        "+ 0x20001235 TCP shop/web",
        "- 0x20001235 TCP shop/web http",
        "- TCP shop/web",
    ] {
        assert_eq!(parse_line(&with_sum(bad)), None, "{bad:?}");
    }
}

#[test]
fn d7_marks_survive_the_process_and_are_released() {
    let directory = tempfile::tempdir().unwrap();
    let (mut record, saved) = reopen(directory.path());
    assert_eq!(whole(&saved), []);
    let unnamed = port("dns", "", Protocol::Udp);
    save(
        &mut record,
        &[
            (web(1), Some(0x2000_0001)),
            (unnamed.clone(), Some(0x2000_1235)),
        ],
    );
    save(&mut record, &[(web(1), None), (web(3), None)]);
    let written = text(directory.path());
    drop(record);
    let (_, saved) = reopen(directory.path());
    assert_eq!(whole(&saved), [(unnamed, 0x2000_1235)]);
    assert!(written.len() > text(directory.path()).len(), "rewritten");
    let words = "+ 0x20001235 UDP shop/dns ";
    assert_eq!(
        text(directory.path()),
        format!(
            "ipvs-topo marks 1 boot boot-1\n{words} sum {:08x}\n",
            fnv1a(words)
        )
    );
}

#[test]
fn marks_of_another_boot_are_void() {
    let directory = tempfile::tempdir().unwrap();
    let (mut record, _) = reopen(directory.path());
    save(&mut record, &[(web(1), Some(0x2000_0001))]);
    let (_, saved) = MarkRecord::open(directory.path(), "boot-2");
    assert_eq!(whole(&saved.unwrap()), []);
    let (_, saved) = reopen(directory.path());
    assert_eq!(whole(&saved), [], "the void record was replaced");
}

#[test]
fn a_mark_has_one_port_even_if_the_line_that_released_it_is_lost() {
    let changes = [
        (web(1), Some(7)),
        (web(2), Some(9)),
        (web(2), Some(7)),
        (web(3), Some(9)),
    ];
    let saved = marks_of(&lines::<MarkLine>(&changes));
    assert_eq!(whole(&saved), [(web(2), 7), (web(3), 9)]);
}

#[test]
fn history_is_dropped_when_it_outgrows_the_marks() {
    let directory = tempfile::tempdir().unwrap();
    let (mut record, _) = reopen(directory.path());
    for mark in 0..3_000 {
        let changes = [(web(1), Some(mark)), (web(1), None)];
        let mut held = std::iter::once((web(9), 9));
        record
            .save(&changes, &mut held, &CrashPoint::new(None))
            .unwrap();
    }
    let left = text(directory.path()).lines().count();
    assert!((2..2_000).contains(&left), "{left}");
    let (_, saved) = reopen(directory.path());
    assert_eq!(whole(&saved), [(web(9), 9)]);
}

#[test]
fn a_failure_keeps_the_earlier_marks_and_the_next_change_writes_all() {
    let directory = tempfile::tempdir().unwrap();
    let (mut record, _) = reopen(directory.path());
    save(&mut record, &[(web(1), Some(1))]);
    record.0.forget_file();
    let aside = directory.path().join(FILE).with_extension("new");
    fs::create_dir(&aside).unwrap();
    let crash_point = CrashPoint::new(None);
    let failed = record.save(
        &[(web(2), Some(2))],
        &mut [(web(1), 1), (web(2), 2)].into_iter(),
        &crash_point,
    );
    assert!(failed.is_err());
    fs::remove_dir(&aside).unwrap();
    let earlier = SavedMarks::read(directory.path(), BOOT).unwrap();
    assert_eq!(whole(&earlier), [(web(1), 1)]);
    let all = [(web(1), 1), (web(2), 2), (web(3), 3)];
    let change = [(web(3), Some(3))];
    record
        .save(&change, &mut all.clone().into_iter(), &crash_point)
        .unwrap();
    let (_, saved) = reopen(directory.path());
    assert_eq!(whole(&saved), all);
}

/// Marks that are allocated and released as an agent does it: no mark has two ports.
fn changes() -> impl Strategy<Value = Vec<(MarkedPort, Option<u32>)>> {
    prop::collection::vec((0..4_u8, 0..3_u32), 0..40).prop_map(|turns| {
        let mut holders = Holders::default();
        let mut changes = Vec::new();
        for (number, shift) in turns {
            let port = web(number);
            let mark = 0x2000_0001 + 2 * (u32::from(number) + shift);
            if holders.by_port.contains_key(&port) {
                holders.take(&port);
                changes.push((port, None));
            } else if !holders.by_mark.contains_key(&mark) {
                holders.give(port.clone(), mark);
                changes.push((port, Some(mark)));
            }
        }
        changes
    })
}

/// The marks after some changes.
fn standing(changes: &[(MarkedPort, Option<u32>)]) -> BTreeMap<MarkedPort, u32> {
    let mut standing = BTreeMap::new();
    for (port, mark) in changes.iter().cloned() {
        match mark {
            Some(mark) => drop(standing.insert(port, mark)),
            None => drop(standing.remove(&port)),
        }
    }
    standing
}

fn read(lines: &str) -> BTreeMap<MarkedPort, u32> {
    marks_of(lines).marks.into_iter().collect()
}

proptest! {
    #[test]
    fn a_kill_inside_a_line_loses_that_line_alone(
        changes in changes(),
        cut in any::<prop::sample::Index>(),
    ) {
        let body = lines::<MarkLine>(&changes);
        let cut = cut.index(body.len() + 1);
        let whole = body[..cut].matches('\n').count();
        prop_assert_eq!(read(&body[..cut]), standing(&changes[..whole]));
    }

    #[test]
    fn a_damaged_line_is_counted_and_gives_no_port_a_mark_that_it_never_had(
        changes in changes(),
        at in any::<prop::sample::Index>(),
        byte in 0..60_usize,
        flip in 1..128_u8,
    ) {
        prop_assume!(!changes.is_empty());
        let at = at.index(changes.len());
        let mut damaged: Vec<Vec<u8>> = lines::<MarkLine>(&changes)
            .split_inclusive('\n')
            .map(|line| line.as_bytes().to_vec())
            .collect();
        let line = &mut damaged[at];
        // A line without its newline also damages the next one.
        let byte = byte % (line.len() - 1);
        line[byte] ^= flip;
        let body = String::from_utf8_lossy(&damaged.concat()).into_owned();
        let saved = marks_of(&body);
        prop_assert!(saved.damaged > 0);
        for (port, mark) in saved.marks {
            prop_assert!(changes.contains(&(port, Some(mark))));
        }
    }

    #[test]
    fn whatever_the_file_holds_it_is_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert_eq!(read(&text), BTreeMap::new());
    }
}
