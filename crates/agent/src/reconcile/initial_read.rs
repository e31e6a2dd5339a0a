//! The kernel's table into the mirror before the first pass, a slice at a time; then what our nftables tables hold.
//!
//! Reading them needs nothing of the cluster, so it is done while the cluster's first list is on its
//! way. What others change meanwhile is found as always: a step that fails reads its key again, and
//! the first periodic comparison comes a period after this reading.

use std::time::Duration;

use dataplane::host::Host;
use dataplane::ipvs::{Kernel, KernelError, Listed};
use tokio::time::Instant;

use super::counts::KernelTotals;
use super::{Reconciler, SLICE};

/// How far the table is read.
#[derive(Debug, Default)]
pub(super) struct InitialRead {
    progress: Progress,
    /// What the reading took so far.
    pub(super) took: Duration,
}

#[derive(Debug, Default)]
enum Progress {
    /// Not at all.
    #[default]
    Unread,
    /// The virtual servers are listed; these lack their real servers.
    Listed(std::vec::IntoIter<Listed>),
    /// It is in the mirror.
    Read,
    /// It could not be read.
    Failed(KernelError),
}

impl InitialRead {
    /// Whether there is more to read.
    pub(super) fn is_partly_read(&self) -> bool {
        matches!(self.progress, Progress::Unread | Progress::Listed(_))
    }
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Reads what is left of the table; from its beginning if it could not be read before.
    pub(super) async fn read_kernel(&mut self) -> Result<(), KernelError> {
        if let Progress::Failed(_) = self.initial_read.progress {
            self.initial_read = InitialRead::default();
        }
        while self.initial_read.is_partly_read() {
            self.read_on().await;
        }
        match &self.initial_read.progress {
            Progress::Failed(error) => Err(error.clone()),
            Progress::Unread | Progress::Listed(_) | Progress::Read => Ok(()),
        }
    }

    /// Reads the next slice.
    pub(super) async fn read_on(&mut self) {
        let began = Instant::now();
        let progress = std::mem::take(&mut self.initial_read.progress);
        self.initial_read.progress = match self.read_slice(progress).await {
            Ok(progress) => progress,
            Err(error) => Progress::Failed(error),
        };
        self.initial_read.took += began.elapsed();
    }

    async fn read_slice(&mut self, progress: Progress) -> Result<Progress, KernelError> {
        let Progress::Listed(mut left) = progress else {
            return Ok(Progress::Listed(self.kernel.list().await?.into_iter()));
        };
        for listed in left.by_ref().take(SLICE) {
            let key = listed.key;
            if let Some(reading) = self.kernel.fill(listed).await? {
                self.observe(key, Some(reading));
            }
        }
        if left.len() > 0 {
            return Ok(Progress::Listed(left));
        }
        let keys: Vec<_> = self.mirror.keys().copied().collect();
        self.counts = KernelTotals::of(&self.mirror, &keys);
        self.begin_observe().await;
        self.next_check = Instant::now() + self.config.check_period;
        Ok(Progress::Read)
    }
}
