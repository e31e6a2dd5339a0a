//! Deadlines of draining real servers on disk, so that a restart does not change them.

use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use topology_core::mirror::StepOutcome;
use topology_core::plan::{Deadline, Step};

use super::reconciler::Reconciler;
use crate::node_warning::Topic;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Writes deadlines that have begun or ended. Call it before the steps of their plan: a weight of 0 then always has
    /// its deadline on disk. If the write fails, they drain all the same.
    pub(super) fn write_deadlines(&mut self) {
        let unsaved = std::mem::take(&mut self.unsaved_deadlines);
        if unsaved.is_empty() {
            return;
        }
        let result = (self.host).save_deadlines(&unsaved, &mut self.mirror.deadlines());
        let words = result.err().map(|error| {
            format!(
                "the deadlines of draining real servers cannot be written: {error}; after a restart of the agent each \
                 has the whole --drain-timeout again; make room in, or write access to, {}",
                self.config.state_dir.display()
            )
        });
        self.warnings
            .set(Topic::Deadlines, words.into_iter().collect());
    }

    /// Records that deadlines end by a step. Call it before the mirror commits the step.
    pub(super) fn record_ended(&mut self, step: &Step, outcome: StepOutcome) {
        let (key, real) = match step {
            Step::DeleteReal { key, address, port } => (key, Some((*address, *port))),
            Step::EditReal { key, real } | Step::AddReal { key, real } => {
                (key, Some((real.address, real.port)))
            }
            Step::DeleteServer { key } => (key, None),
            Step::AddServer { .. }
            | Step::EditServer { .. }
            | Step::DrainReal { .. }
            | Step::DeleteFlows { .. } => return,
        };
        match outcome {
            StepOutcome::Done | StepOutcome::Missing => {}
            StepOutcome::AlreadyExists | StepOutcome::Failed | StepOutcome::Unknown => return,
        }
        let ended = self.mirror.deadlines_of(key);
        let ended = ended.filter(|one| real.is_none_or(|real| real == (one.address, one.port)));
        self.unsaved_deadlines
            .extend(ended.map(|one| Deadline { until: None, ..one }));
    }
}
