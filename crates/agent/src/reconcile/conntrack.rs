//! Deletes the connection tracking entries of deleted UDP real servers.
//!
//! They are deleted in the background, a batch at a time. Flows that arrive during a batch wait for the next one,
//! without duplicates. A stop waits for both; after a crash an entry stays until its client stops sending.
//!
//! The first batch begins at the end of a pass: before a Service address has its route, packets to it pass IPVS by, and
//! a client that keeps sending would make its entry again.

use std::collections::BTreeMap;
use std::time::Duration;

use dataplane::conntrack::{DeletedFlows, Flow, FlowDeletion, FlowDeletionError};
use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use tokio::time::{Instant, sleep};
use topology_core::mirror::StepOutcome;
use topology_core::plan::Step;

use super::apply::outcome_name;
use super::flow_deletions::FlowDeletions;
use super::reconciler::{Item, Reconciler};
use crate::node_warning::Topic;

/// Interval of polls for the running batch, in milliseconds.
const POLL: u64 = 20;
/// How long a stop waits.
const AT_STOP: Duration = Duration::from_secs(5);
/// How long the retry of a key is delayed while its flows are being deleted, in milliseconds.
const RETRY: u64 = 60_000;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Notes the entries of real servers that are no longer in the kernel, for [`Self::delete_flows`].
    pub(super) fn forget(&mut self, flows: BTreeMap<Flow, Step>) {
        let now = self.now();
        for step in flows.values() {
            let key = Item::Server(*step.key());
            self.agenda.put_off(&key, now, now + RETRY);
        }
        self.flow_deletions.add(flows);
    }

    /// Starts to delete what was noted. What a running batch keeps waiting follows it.
    pub(super) fn delete_flows(&mut self) {
        if !self.flow_deletions.is_running() {
            self.begin_flow_deletion();
        }
    }

    fn begin_flow_deletion(&mut self) {
        let batch = self.flow_deletions.begin();
        let due = (!batch.is_empty()).then(|| self.now() + POLL);
        if due.is_some() {
            self.host.begin_flow_deletion(batch);
        }
        self.agenda.visit(&Item::Flows, due);
    }

    /// Processes the result of the batch and starts the next one. Failures are retried with their keys.
    pub(super) fn poll_flow_deletion(&mut self) {
        let Some(cleaned) = self.host.poll_flow_deletion() else {
            let next = self.now() + POLL;
            return self.agenda.visit(&Item::Flows, Some(next));
        };
        if cleaned == Err(FlowDeletionError::ThreadLost) {
            self.flow_deletions.lose();
            return self.agenda.visit(&Item::Flows, None);
        }
        let ended = self.flow_deletions.end();
        self.forgotten(&ended, cleaned);
        self.begin_flow_deletion();
    }

    fn forgotten(&mut self, flows: &BTreeMap<Flow, Step>, deletion: FlowDeletion) {
        let (deleted, of_all) = match deletion {
            Ok(deleted) => (deleted, None),
            Err(error) => (DeletedFlows::default(), Some(error.to_string())),
        };
        for counts in deleted.counts {
            let entries = u64::try_from(counts.deleted).unwrap_or(u64::MAX);
            self.metrics
                .conntrack_cleaned(counts.family, entries, counts.took);
        }
        let mut warning = None;
        let now = self.now();
        for (flow, step) in flows {
            let error = of_all.as_ref().or_else(|| deleted.refused.get(flow));
            let outcome = match error {
                None => StepOutcome::Done,
                Some(_) => StepOutcome::Failed,
            };
            self.metrics
                .kernel_writes(step.as_str(), outcome_name(outcome), 1);
            self.mirror.commit(step, outcome);
            match error {
                None => self.agenda.resume(&Item::Server(*step.key()), now),
                Some(error) => {
                    let words = format!(
                        "connection tracking entries of UDP real servers that left cannot be deleted: {error}; if the \
                         module is missing, load it with `modprobe nf_conntrack_netlink`"
                    );
                    self.record_failure(*step.key(), words.clone());
                    warning = Some(words);
                }
            }
        }
        self.warnings
            .set(Topic::Conntrack, warning.into_iter().collect());
    }

    /// Waits until nothing is left to delete, but not long: after the stop these entries are not deleted.
    pub(super) async fn finish_forgetting(&mut self) {
        let began = Instant::now();
        let is_waited_for =
            |deletions: &FlowDeletions| deletions.is_running() && !deletions.is_lost();
        while is_waited_for(&self.flow_deletions) && began.elapsed() < AT_STOP {
            sleep(Duration::from_millis(POLL)).await;
            self.poll_flow_deletion();
        }
    }
}
