//! What the operating system says about files, and how long to wait for more of it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use notify::EventKind;
use notify::event::{AccessKind, AccessMode, ModifyKind};

/// Quiet time after every writer has closed its file or put another one in its place.
const SETTLED: Duration = Duration::from_millis(5);
/// Quiet time while somebody may still be writing.
const UNSETTLED: Duration = Duration::from_millis(100);
/// After so long what is there is read, even if changes do not end.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same while a file is open for writing: half a file is not worth hurrying for.
const PATIENCE_WITH_WRITERS: Duration = Duration::from_secs(10);

/// One message to the following thread.
#[derive(Debug)]
pub(super) enum Signal {
    /// Something happened to these paths.
    Touched {
        /// The entries of the watched folders that it happened to.
        paths: Vec<PathBuf>,
        /// Whether whoever did it has finished.
        settled: bool,
    },
    /// Messages were lost; anything may have happened.
    Lost,
    /// Nobody listens any more.
    Stop,
}

/// Everything that happened in one burst.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Burst {
    /// What was touched.
    pub(super) paths: BTreeSet<PathBuf>,
    /// Whether anything else may have been touched too.
    pub(super) lost: bool,
    /// What somebody may still be writing to.
    unsettled: BTreeSet<PathBuf>,
}

impl Signal {
    /// The signal for a message of the operating system; nothing for those that change nothing,
    /// such as a file that was opened.
    pub(super) fn of(event: notify::Result<notify::Event>) -> Option<Self> {
        let Ok(event) = event else {
            return Some(Self::Lost);
        };
        if event.need_rescan() {
            return Some(Self::Lost);
        }
        let settled = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(_)) => true,
            EventKind::Access(_) => return None,
            _ => false,
        };
        Some(Self::Touched {
            paths: event.paths,
            settled,
        })
    }
}

/// Waits for something to happen and then for it to be over. `None` means stop.
///
/// With `poll`, silence of that length counts as something that may have happened.
pub(super) fn burst(signals: &Receiver<Signal>, poll: Option<Duration>) -> Option<Burst> {
    let mut burst = Burst::default();
    burst.add(first(signals, poll)?)?;
    let begin = Instant::now();
    loop {
        let (quiet, patience) = if burst.unsettled.is_empty() {
            (SETTLED, PATIENCE)
        } else {
            (UNSETTLED, PATIENCE_WITH_WRITERS)
        };
        let left = patience.saturating_sub(begin.elapsed());
        match signals.recv_timeout(quiet.min(left)) {
            Ok(signal) => burst.add(signal)?,
            Err(RecvTimeoutError::Timeout) => return Some(burst),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

fn first(signals: &Receiver<Signal>, poll: Option<Duration>) -> Option<Signal> {
    let Some(poll) = poll else {
        return signals.recv().ok();
    };
    match signals.recv_timeout(poll) {
        Ok(signal) => Some(signal),
        Err(RecvTimeoutError::Timeout) => Some(Signal::Lost),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

impl Burst {
    /// Adds a signal; `None` means stop.
    fn add(&mut self, signal: Signal) -> Option<()> {
        match signal {
            Signal::Touched { paths, settled } => {
                for path in paths {
                    if settled {
                        self.unsettled.remove(&path);
                    } else {
                        self.unsettled.insert(path.clone());
                    }
                    self.paths.insert(path);
                }
            }
            Signal::Lost => self.lost = true,
            Signal::Stop => return None,
        }
        Some(())
    }
}
