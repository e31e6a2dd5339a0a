//! The kernel's table into the mirror before the first pass, a slice at a time; then what our nftables tables hold.
//!
//! Reading them needs nothing of the cluster, so it is done while the cluster's first list is on its
//! way. What others change meanwhile is found as always: a step that fails reads its key again, and
//! the first periodic comparison comes a period after this reading.

use std::time::Duration;

use tokio::time::Instant;

use super::counts::Counts;
use super::{Reconciler, SLICE};
use crate::host::Host;
use crate::kernel::{Kernel, KernelError, Listed};

/// How far the table is read.
#[derive(Debug, Default)]
pub(super) struct Table {
    stage: Stage,
    /// What the reading took so far.
    pub(super) took: Duration,
}

#[derive(Debug, Default)]
enum Stage {
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

impl Table {
    /// Whether there is more to read.
    pub(super) fn is_partly_read(&self) -> bool {
        matches!(self.stage, Stage::Unread | Stage::Listed(_))
    }
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Reads what is left of the table; from its beginning if it could not be read before.
    pub(super) async fn read_table(&mut self) -> Result<(), KernelError> {
        if let Stage::Failed(_) = self.table.stage {
            self.table = Table::default();
        }
        while self.table.is_partly_read() {
            self.read_on().await;
        }
        match &self.table.stage {
            Stage::Failed(error) => Err(error.clone()),
            Stage::Unread | Stage::Listed(_) | Stage::Read => Ok(()),
        }
    }

    /// Reads the next slice.
    pub(super) async fn read_on(&mut self) {
        let began = Instant::now();
        let stage = std::mem::take(&mut self.table.stage);
        self.table.stage = match self.read_slice(stage).await {
            Ok(stage) => stage,
            Err(error) => Stage::Failed(error),
        };
        self.table.took += began.elapsed();
    }

    async fn read_slice(&mut self, stage: Stage) -> Result<Stage, KernelError> {
        let Stage::Listed(mut left) = stage else {
            return Ok(Stage::Listed(self.kernel.list().await?.into_iter()));
        };
        for listed in left.by_ref().take(SLICE) {
            let key = listed.key;
            if let Some(reading) = self.kernel.fill(listed).await? {
                self.observe(key, Some(reading));
            }
        }
        if left.len() > 0 {
            return Ok(Stage::Listed(left));
        }
        let keys: Vec<_> = self.mirror.keys().copied().collect();
        self.counts = Counts::of(&self.mirror, &keys);
        self.begin_look().await;
        self.next_check = Instant::now() + self.config.check_period;
        Ok(Stage::Read)
    }
}
