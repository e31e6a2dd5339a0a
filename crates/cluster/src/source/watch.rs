//! Follows a file or folder: every change of it becomes the events that it amounts to.

mod follow;
mod lookout;
mod signal;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use tokio::sync::mpsc as async_mpsc;

use super::ReadError;
use super::place::SourcePath;
use crate::api::SyncStatus;
use crate::clock::Clock;
use crate::convert::Context;
use crate::event::Batch;

use follow::FileFollower;
use lookout::Lookout;
use signal::Signal;

/// How many batches may wait for the consumer before the reading thread waits for it.
const WAITING_BATCHES: usize = 8;

/// A followed place. Dropping it ends the following.
#[derive(Debug)]
pub struct Watch {
    batches: async_mpsc::Receiver<Batch>,
    /// How the following of files is ended; that of an API server ends when nobody takes its batches.
    signals: Option<mpsc::Sender<Signal>>,
    sync_status: Option<SyncStatus>,
}

/// Follows a file or a folder, or reads standard input (`-`) once.
///
/// The first batch begins with [`Event::Begin`](crate::event::Event::Begin); `Complete` follows
/// when every file was read. A path that does not exist yet is waited for, and so is the first file
/// of an empty folder: until then there is one report that says so, and no `Complete`.
///
/// Fails only when the operating system offers no way to notice changes.
///
/// `annotation_keys` are the labels that annotations of Services may use besides those that are always known; any if it
/// is not said.
pub fn watch(path: &Path, annotation_keys: Option<BTreeSet<Arc<str>>>) -> Result<Watch, ReadError> {
    let context = Context::judging(Clock::system(), annotation_keys);
    let (sender, batches) = async_mpsc::channel(WAITING_BATCHES);
    let (signals, received) = mpsc::channel();
    let thread = thread::Builder::new().name("cluster-files".to_owned());
    let spawned = match SourcePath::new(path) {
        SourcePath::Stdin => thread.spawn(move || read_stdin(context, &sender, &received)),
        SourcePath::Pipe(path) => return Err(ReadError::Pipe { path }),
        SourcePath::Path(given) => {
            let lookout = Lookout::new(&given, signals.clone())?;
            thread.spawn(move || FileFollower::new(&given, context, lookout, sender).run(&received))
        }
    };
    spawned.map_err(|source| ReadError::Path {
        path: path.to_owned(),
        source,
    })?;
    Ok(Watch {
        batches,
        signals: Some(signals),
        sync_status: None,
    })
}

/// Reads standard input to its end, tells it, and waits until nobody listens any more.
fn read_stdin(
    context: Context,
    batches: &async_mpsc::Sender<Batch>,
    signals: &mpsc::Receiver<Signal>,
) -> Option<()> {
    // When nobody listens, the signal below says so.
    drop(super::tell_stdin(context, &mut |batch| {
        drop(batches.blocking_send(batch));
    }));
    while !matches!(signals.recv().ok()?, Signal::Stop) {}
    None
}

impl Watch {
    /// Receives the batches of another sender; it ends when the sender is dropped.
    pub fn of(batches: async_mpsc::Receiver<Batch>) -> Self {
        Self {
            batches,
            signals: None,
            sync_status: None,
        }
    }

    /// Receives the batches of a watch on an API server.
    pub(crate) fn of_api(batches: async_mpsc::Receiver<Batch>, sync_status: SyncStatus) -> Self {
        Self {
            batches,
            signals: None,
            sync_status: Some(sync_status),
        }
    }

    /// The status of the resources that are read from an API server; none for files.
    pub fn sync_status(&self) -> Option<&SyncStatus> {
        self.sync_status.as_ref()
    }

    /// The next batch, as soon as there is one. `None` only if following broke down; when standard
    /// input has been told, or nothing changes, the future waits.
    ///
    /// Nothing is lost when the future is dropped before it is ready.
    pub async fn next(&mut self) -> Option<Batch> {
        self.batches.recv().await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The thread may have ended before; then there is nobody to tell.
        if let Some(signals) = &self.signals {
            drop(signals.send(Signal::Stop));
        }
    }
}
