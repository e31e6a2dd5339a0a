//! UDP connection tracking entries of real servers that are gone.
//!
//! A client that keeps its source port would go on sending to the old pod as long as the entry
//! lives (PAIN-01), so the entry is deleted as soon as the real server is. Reading the kernel's table
//! takes as long as the table is large, so a thread does it: once for each family and batch, however
//! many Services the batch is about. No process is started.

mod batch;
mod wire;
mod worker;

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use netlink_pipeline::{Connection, NetlinkProtocol, Options};

pub use batch::{CleanError, Cleaned, Cleaning, Flow};

/// Reads any bytes as an entry.
#[cfg(fuzzing)]
pub fn fuzz(bytes: &[u8]) {
    wire::fuzz(bytes);
}

/// The thread that deletes entries. It takes one batch at a time.
#[derive(Debug)]
pub struct Conntrack {
    batches: SyncSender<BTreeSet<Flow>>,
    results: Receiver<Cleaned>,
}

impl Conntrack {
    /// Opens a socket in the current network namespace and starts the thread, which exits when this is dropped.
    pub fn open() -> Result<Self, netlink_pipeline::Error> {
        let connection = Connection::open(NetlinkProtocol::NETFILTER, &Options::default())?;
        let (batches, received) = sync_channel(1);
        let (answers, results) = sync_channel(1);
        let thread = thread::Builder::new().name("conntrack".to_owned());
        let work = move || worker::work(connection, &received, &answers);
        let started = thread.spawn(work);
        started.map_err(|source| netlink_pipeline::Error::Socket {
            call: "clone",
            source,
        })?;
        Ok(Self { batches, results })
    }

    /// Hands a batch to the thread. The batch before it must have ended.
    pub fn begin(&mut self, flows: BTreeSet<Flow>) {
        // `result` reports a thread that is gone.
        drop(self.batches.try_send(flows));
    }

    /// How the batch ended; `None` while it goes on. Never waits.
    pub fn result(&mut self) -> Option<Cleaned> {
        match self.results.try_recv() {
            Ok(cleaned) => Some(cleaned),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(CleanError::ThreadLost)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pain_16_a_thread_that_is_gone_is_told_from_a_kernel_that_refuses() {
        let (batches, received) = sync_channel(1);
        let (answers, results) = sync_channel(1);
        let mut conntrack = Conntrack { batches, results };
        conntrack.begin(BTreeSet::new());
        assert_eq!(conntrack.result(), None);
        drop((received, answers));
        conntrack.begin(BTreeSet::new());
        assert_eq!(conntrack.result(), Some(Err(CleanError::ThreadLost)));
    }
}
