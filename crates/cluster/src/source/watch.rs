//! Follows a file or folder, and sends every change of it as events.

mod folder_watcher;
mod follow;
mod signal;

use std::path::Path;
use std::sync::mpsc;
use std::thread;

use tokio::sync::mpsc as async_mpsc;

use super::ReadError;
use super::place::SourcePath;
use crate::api::{SyncStatus, WatchOptions};
use crate::clock::Clock;
use crate::convert::Context;
use crate::event::Batch;

use folder_watcher::FolderWatcher;
use follow::FileFollower;
use signal::Signal;

/// The number of batches that may wait for the receiver before the reading thread waits.
const WAITING_BATCHES: usize = 8;

/// A file, folder or API server that is followed until this is dropped.
#[derive(Debug)]
pub struct Watch {
    batches: async_mpsc::Receiver<Batch>,
    /// Stops the thread that follows files. A watch of an API server ends with `batches`.
    signals: Option<mpsc::Sender<Signal>>,
    sync_status: Option<SyncStatus>,
}

/// Follows a file or a folder, or reads standard input (`-`) once.
///
/// The first batch begins with [`Event::Begin`](crate::event::Event::Begin); `Complete` follows
/// after every file was read. If the path does not exist yet, or the folder is empty, sends one
/// report about it, and no `Complete` until there is a file.
///
/// Fails only if the operating system cannot report changes.
///
/// Of `options`, files use what Services may use, and which Services to read.
pub fn watch(path: &Path, options: impl Into<WatchOptions>) -> Result<Watch, ReadError> {
    let WatchOptions {
        allowed, services, ..
    } = options.into();
    let context = Context::new(Clock::system(), allowed, services);
    let (sender, batches) = async_mpsc::channel(WAITING_BATCHES);
    let (signals, received) = mpsc::channel();
    let thread = thread::Builder::new().name("cluster-files".to_owned());
    let spawned = match SourcePath::new(path) {
        SourcePath::Stdin => thread.spawn(move || read_stdin(context, &sender, &received)),
        SourcePath::Pipe(path) => return Err(ReadError::Pipe { path }),
        SourcePath::Path(given) => {
            let folder_watcher = FolderWatcher::new(&given, signals.clone())?;
            thread.spawn(move || {
                FileFollower::new(&given, context, folder_watcher, sender).run(&received)
            })
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

/// Reads standard input to its end, sends it, and waits for [`Signal::Stop`].
fn read_stdin(
    context: Context,
    batches: &async_mpsc::Sender<Batch>,
    signals: &mpsc::Receiver<Signal>,
) -> Option<()> {
    // If the receiver is gone, `Signal::Stop` follows.
    drop(super::send_stdin(context, &mut |batch| {
        drop(batches.blocking_send(batch));
    }));
    while !matches!(signals.recv().ok()?, Signal::Stop) {}
    None
}

impl Watch {
    /// Receives from `batches` until its sender is dropped.
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

    /// The status of each resource of an API server; `None` for files.
    pub fn sync_status(&self) -> Option<&SyncStatus> {
        self.sync_status.as_ref()
    }

    /// Waits for the next batch, forever if nothing changes or standard input has ended. Returns
    /// `None` only if the reading thread has failed.
    ///
    /// Cancel safe: no batch is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Batch> {
        self.batches.recv().await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The thread may have ended before.
        if let Some(signals) = &self.signals {
            drop(signals.send(Signal::Stop));
        }
    }
}
