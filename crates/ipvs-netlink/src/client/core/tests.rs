//! Dumps of tables that change meanwhile.

use std::collections::VecDeque;

use netlink_pipeline::{
    Conversation, Error as TransportError, Limits, Messages, Next, Options, Sequence, Socket,
};

use super::*;
use crate::DaemonState;

const FAMILY_ID: u16 = 0x1c;
/// `NLMSG_DONE`, and `NLM_F_DUMP_INTR`.
const DONE: u16 = 3;
const INTERRUPTED: u16 = 0x10;

/// What the kernel does in one dump.
#[derive(Clone, Copy, Debug)]
enum Table {
    Whole,
    Interrupted,
    /// The entry is in two datagrams.
    Repeated,
}

/// A connection to a kernel that repeats some dumps.
struct Fake {
    options: Options,
    tables: Vec<Table>,
    dumps: usize,
}

impl Fake {
    fn new(tables: Vec<Table>) -> Self {
        Self {
            options: Options::default(),
            tables,
            dumps: 0,
        }
    }

    fn replies(&mut self, sequence: u32) -> Vec<Vec<u8>> {
        let table = self.tables[self.dumps % self.tables.len()];
        self.dumps += 1;
        let entry = message(FAMILY_ID, 0, sequence, &daemon());
        let done = |flags| message(DONE, flags, sequence, &[0; 4]);
        match table {
            Table::Whole => vec![entry, done(0)],
            Table::Interrupted => vec![entry, done(INTERRUPTED)],
            Table::Repeated => vec![entry.clone(), entry, done(0)],
        }
    }
}

impl NetlinkConnection for Fake {
    async fn converse(
        &mut self,
        conversation: &mut (impl Conversation + Send),
    ) -> Result<(), TransportError> {
        let mut sequence = Sequence::new();
        let mut queue = VecDeque::new();
        loop {
            match conversation.next(&mut sequence) {
                Next::Done => return Ok(()),
                Next::Send(datagram) => {
                    let request = Messages::new(datagram).next().unwrap().unwrap();
                    queue.extend(self.replies(request.sequence));
                }
                Next::Receive => {
                    let datagram = queue.pop_front().expect("a reply");
                    conversation.received(&datagram)?;
                }
            }
        }
    }

    fn options(&self) -> &Options {
        &self.options
    }

    fn socket(&self) -> &Socket {
        panic!("a dump does not need the socket")
    }
}

fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + payload.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend([kind.to_ne_bytes(), flags.to_ne_bytes()].concat());
    bytes.extend([sequence.to_ne_bytes(), [0; 4]].concat());
    bytes.extend_from_slice(payload);
    bytes
}

/// The payload of a reply: the same as of the command that starts the daemon.
fn daemon() -> Vec<u8> {
    let command = Command::NewDaemon(Daemon::new(DaemonState::Primary, "eth0", 1));
    let datagram = codec::encode(&[command], FAMILY_ID, Limits::default(), 1).remove(0);
    let message = Messages::new(&datagram).next().unwrap().unwrap();
    message.payload.to_vec()
}

/// Dumps once; returns the number of entries and of dumps.
async fn dump(tables: Vec<Table>) -> (Result<usize, Cause>, usize) {
    let mut fake = Fake::new(tables);
    let query = Query::Daemons;
    let read = dump_once(&mut fake, FAMILY_ID, &query, &codec::decode_daemon).await;
    (read.map(|entries| entries.len()), fake.dumps)
}

#[tokio::test]
async fn a_dump_is_repeated_until_the_table_was_stable() {
    let tables = vec![Table::Interrupted, Table::Repeated, Table::Whole];
    assert!(matches!(dump(tables).await, (Ok(1), 3)));
}

/// Interrupted dumps and dumps with repeats have one limit together, not the square of it.
#[tokio::test]
async fn a_dump_has_as_many_attempts_as_the_options_say() {
    let mut tables = vec![Table::Interrupted; 7];
    tables.push(Table::Repeated);
    for tables in [tables, vec![Table::Repeated], vec![Table::Interrupted]] {
        let (read, dumps) = dump(tables).await;
        assert_eq!(dumps, 8);
        let is_interrupted = |cause| {
            matches!(
                cause,
                Cause::Transport(TransportError::Interrupted { attempts: 8 })
            )
        };
        assert!(read.is_err_and(is_interrupted));
    }
}
