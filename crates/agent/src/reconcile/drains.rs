//! Tracks deadlines that are not on disk yet, and the cost of deletions and additions.

use topology_core::mirror::Mirror;
use topology_core::plan::{Deadline, Step};

use super::trash::Trash;

/// State of leaving real servers in addition to the mirror.
#[derive(Debug)]
pub(super) struct Drains {
    /// Deadlines that have begun or ended since the last write.
    unsaved: Vec<Deadline>,
    trash: Trash,
}

impl Drains {
    pub(super) fn new() -> Self {
        Self {
            unsaved: Vec::new(),
            trash: Trash::new(),
        }
    }

    /// Adds deadlines that began or ended.
    pub(super) fn changed(&mut self, deadlines: impl IntoIterator<Item = Deadline>) {
        self.unsaved.extend(deadlines);
    }

    /// Takes the deadlines to write; they count as written from now on.
    pub(super) fn take_unsaved(&mut self) -> Vec<Deadline> {
        std::mem::take(&mut self.unsaved)
    }

    /// Counts a step that succeeded. Call it before the mirror commits the step.
    pub(super) fn record(&mut self, step: &Step, mirror: &Mirror, now: u64) {
        self.trash.record(step, mirror, now);
    }

    /// Whether deleting real servers now would make additions expensive, with `waiting` ones draining already.
    pub(super) fn puts_off(&self, waiting: u64, now: u64) -> bool {
        self.trash.puts_off(waiting, now)
    }
}
