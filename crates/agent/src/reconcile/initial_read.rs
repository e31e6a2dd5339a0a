//! The kernel's table into the mirror before the first pass, a slice at a time; then what our nftables tables hold.
//!
//! Reading them needs nothing of the cluster, so it is done while the cluster's first list is on its
//! way. What others change meanwhile is found as always: a step that fails reads its key again, and
//! the first periodic comparison comes a period after this reading.

use std::time::Duration;

use dataplane::ipvs::{KernelError, ListedServer};

/// How far the table is read.
#[derive(Debug, Default)]
pub(super) struct InitialRead {
    progress: Progress,
    /// What the reading took so far.
    took: Duration,
}

#[derive(Debug, Default)]
pub(super) enum Progress {
    /// Not at all.
    #[default]
    Unread,
    /// The virtual servers are listed; these lack their real servers.
    ListedServer(std::vec::IntoIter<ListedServer>),
    /// It is in the mirror.
    Read,
    /// It could not be read.
    Failed(KernelError),
}

impl InitialRead {
    /// Whether there is more to read.
    pub(super) fn is_partly_read(&self) -> bool {
        matches!(self.progress, Progress::Unread | Progress::ListedServer(_))
    }

    /// Begins again if the table could not be read.
    pub(super) fn retry(&mut self) {
        if let Progress::Failed(_) = self.progress {
            *self = Self::default();
        }
    }

    /// Hands out the progress to read on from; give it back with [`Self::advance`].
    pub(super) fn take_progress(&mut self) -> Progress {
        std::mem::take(&mut self.progress)
    }

    /// Notes how far the table is read after so much more time.
    pub(super) fn advance(&mut self, read: Result<Progress, KernelError>, took: Duration) {
        self.progress = read.unwrap_or_else(Progress::Failed);
        self.took += took;
    }

    /// The error that ended the reading, if one did.
    pub(super) fn result(&self) -> Result<(), KernelError> {
        match &self.progress {
            Progress::Failed(error) => Err(error.clone()),
            Progress::Unread | Progress::ListedServer(_) | Progress::Read => Ok(()),
        }
    }

    pub(super) fn took(&self) -> Duration {
        self.took
    }
}
