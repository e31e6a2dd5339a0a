//! Reads the kernel's table into the mirror before the first pass, slice by slice, and then our nftables tables.
//!
//! This does not need the cluster, so it is done while the cluster's first list is loading. Changes by other programs
//! meanwhile are detected as always: a failed step reads its key again, and the first periodic comparison comes one
//! period later.

use std::time::Duration;

use dataplane::ipvs::{KernelError, ListedServer};

/// The progress of the read.
#[derive(Debug, Default)]
pub(super) struct InitialRead {
    progress: Progress,
    /// The time so far.
    took: Duration,
}

#[derive(Debug, Default)]
pub(super) enum Progress {
    /// Not started.
    #[default]
    Unread,
    /// The virtual servers are listed; these lack their real servers.
    ListedServer(std::vec::IntoIter<ListedServer>),
    /// Everything is in the mirror.
    Read,
    Failed(KernelError),
}

impl InitialRead {
    /// Whether there is more to read.
    pub(super) fn is_partly_read(&self) -> bool {
        matches!(self.progress, Progress::Unread | Progress::ListedServer(_))
    }

    /// Starts again if the read failed.
    pub(super) fn retry(&mut self) {
        if let Progress::Failed(_) = self.progress {
            *self = Self::default();
        }
    }

    /// Takes the progress to continue reading; return it with [`Self::advance`].
    pub(super) fn take_progress(&mut self) -> Progress {
        std::mem::take(&mut self.progress)
    }

    /// Stores the progress after so much more time.
    pub(super) fn advance(&mut self, read: Result<Progress, KernelError>, took: Duration) {
        self.progress = read.unwrap_or_else(Progress::Failed);
        self.took += took;
    }

    /// The error that ended the read, if any.
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
