//! Dumps, complete and interrupted.

use netlink_packet_core::NLM_F_DUMP_INTR;

use super::kernel::{Kernel, done, error, reply};
use crate::{Conversation, Dump, Error, Next, Request, Sequence};

const MULTI: u16 = 2;

fn part(number: u8) -> Vec<u8> {
    reply(0x22, MULTI, 0, &[number, 0, 0, 0])
}

fn interrupted(number: u8) -> Vec<u8> {
    reply(0x22, MULTI | NLM_F_DUMP_INTR, 0, &[number, 0, 0, 0])
}

/// Dumps the simulated kernel's tables, one per attempt, until a dump is complete.
fn read(tables: Vec<Vec<Vec<u8>>>, capacity: usize) -> Result<Vec<u8>, Error> {
    let mut kernel = Kernel::new(capacity);
    kernel.dumps = tables.into();
    let mut dump = Dump::new(
        Request::new(0x22, 0),
        |_| (),
        3,
        |message| Ok(Some(message.payload[0])),
    )
    .unwrap();
    kernel.converse(&mut dump)?;
    assert!(kernel.dumps.is_empty(), "a table was not asked for");
    Ok(dump.into_items())
}

#[test]
fn a_dump_is_read_to_its_end() {
    let table = vec![part(1), part(2), part(3), done(MULTI, 0)];
    assert_eq!(read(vec![table], 100).unwrap(), [1, 2, 3]);
}

#[test]
fn several_messages_in_one_datagram_are_several_items() {
    let both = [part(1), part(2)].concat();
    let mut kernel = Kernel::new(100);
    // The simulated kernel numbers only the first message of a datagram.
    let mut both = both;
    let first = part(1).len();
    both[first + 8..first + 12].copy_from_slice(&1_u32.to_ne_bytes());
    kernel.dumps = vec![vec![both, done(MULTI, 0)]].into();
    let mut dump = Dump::new(
        Request::new(0x22, 0),
        |_| (),
        1,
        |message| Ok(Some(message.payload[0])),
    )
    .unwrap();
    kernel.converse(&mut dump).unwrap();
    assert_eq!(dump.into_items(), [1, 2]);
}

#[test]
fn a_disturbed_dump_is_thrown_away_and_read_again() {
    let disturbed = vec![part(1), interrupted(9), done(MULTI, 0)];
    let disturbed_at_the_end = vec![part(8), done(MULTI | NLM_F_DUMP_INTR, 0)];
    let whole = vec![part(1), part(2), done(MULTI, 0)];
    let tables = vec![disturbed, disturbed_at_the_end, whole];
    assert_eq!(read(tables, 100).unwrap(), [1, 2]);
}

#[test]
fn a_dump_that_is_always_disturbed_is_given_up() {
    let disturbed = || vec![interrupted(1), done(MULTI, 0)];
    let error = read(vec![disturbed(), disturbed(), disturbed()], 100);
    assert!(matches!(error, Err(Error::Interrupted { attempts: 3 })));
}

#[test]
fn a_dump_of_which_a_part_was_lost_is_read_again() {
    let large = || vec![part(1), part(2), part(3), done(MULTI, 0)];
    let small = || vec![part(1), done(MULTI, 0)];
    assert_eq!(read(vec![large(), small()], 3).unwrap(), [1]);
    let lost = read(vec![large(), large(), large()], 3);
    assert!(matches!(lost, Err(Error::Overrun)));
}

#[test]
fn a_refused_dump_says_why() {
    let refused = read(vec![vec![error(2, 1)]], 100);
    assert!(matches!(refused, Err(Error::Refused(nack)) if nack.errno == 2));
    let failed_late = read(vec![vec![part(1), done(MULTI, -12)]], 100);
    assert!(matches!(failed_late, Err(Error::Refused(nack)) if nack.errno == 12));
}

#[test]
fn a_dump_that_never_ends_is_reported() {
    let endless = read(vec![vec![part(1)]], 100);
    assert!(matches!(endless, Err(Error::TimedOut)));
}

#[test]
fn answers_to_another_conversation_are_left_alone() {
    let mut stale = part(9);
    stale[8..12].copy_from_slice(&77_u32.to_ne_bytes());
    let mut dump = Dump::new(
        Request::new(0x22, 0),
        |_| (),
        1,
        |message| Ok(Some(message.payload[0])),
    )
    .unwrap();
    assert!(matches!(dump.next(&mut Sequence::new()), Next::Send(_)));
    dump.received(&stale).unwrap();
    assert_eq!(dump.into_items(), Vec::<u8>::new());
}
