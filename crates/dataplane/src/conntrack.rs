//! Deletes the connection tracking entries of deleted UDP real servers.
//!
//! A client that keeps its source port would send to the old pod while the entry exists (PAIN-01),
//! so the entry is deleted directly after the real server. Reading the kernel's table takes time in
//! proportion to its size. So a thread does it, once for each family and batch, for any number of
//! Services. No process is started.

mod batch;
mod wire;
mod worker;

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use netlink_pipeline::{Connection, NetlinkProtocol, Options};

pub use batch::{DeletedFlows, DeletionCounts, Flow, FlowDeletion, FlowDeletionError};

/// Parses arbitrary bytes as an entry.
#[cfg(fuzzing)]
pub fn fuzz(bytes: &[u8]) {
    wire::fuzz(bytes);
}

/// The thread that deletes entries. It works on one batch at a time.
#[derive(Debug)]
pub struct Conntrack {
    batches: SyncSender<BTreeSet<Flow>>,
    results: Receiver<FlowDeletion>,
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

    /// Starts a batch. The previous batch must have ended.
    pub fn begin(&mut self, flows: BTreeSet<Flow>) {
        // `result` reports a thread that has exited.
        drop(self.batches.try_send(flows));
    }

    /// The result of the batch; `None` while it runs. Never waits.
    pub fn result(&mut self) -> Option<FlowDeletion> {
        match self.results.try_recv() {
            Ok(cleaned) => Some(cleaned),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(FlowDeletionError::ThreadLost)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pain_16_a_lost_thread_and_a_refusal_of_the_kernel_have_different_errors() {
        let (batches, received) = sync_channel(1);
        let (answers, results) = sync_channel(1);
        let mut conntrack = Conntrack { batches, results };
        conntrack.begin(BTreeSet::new());
        assert_eq!(conntrack.result(), None);
        drop((received, answers));
        conntrack.begin(BTreeSet::new());
        assert_eq!(conntrack.result(), Some(Err(FlowDeletionError::ThreadLost)));
    }
}
