//! Firewall marks on disk, so that a restart does not change them.

use cluster::event::Completeness;
use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use topology_core::snapshot::MarkedPort;

use super::reconciler::Reconciler;
use crate::node_warning::Topic;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Releases marks of an earlier process that no Service needs. Before all Services are listed, a Service that is
    /// not known yet keeps its mark.
    pub(super) fn release_unused_marks(&mut self) {
        if self.index.completeness() == Some(Completeness::Whole) {
            self.index.snapshot_mut().release_unused_firewall_marks();
        }
    }

    /// Programs Services that get a mark which an earlier pass removed from the kernel.
    pub(super) async fn serve_waiting_for_marks(&mut self) {
        if self.index.snapshot_mut().free_released_firewall_marks() {
            self.pass_changes().await;
        }
    }

    /// Writes marks that were allocated or released. Call it before tables and virtual servers are written: a mark in
    /// the kernel is then always on disk. If the write fails, clients are served all the same, and each pass tries
    /// again.
    pub(super) fn write_marks(&mut self) {
        let changed = self.index.snapshot_mut().take_changed_firewall_marks();
        if changed.is_empty() && !self.marks_failed {
            return;
        }
        for (port, mark) in &changed {
            if let Some(mark) = mark {
                self.mirror.set_mark_protocol(*mark, port.protocol);
            }
        }
        let snapshot = self.index.snapshot();
        let mut held = snapshot
            .firewall_marks()
            .map(|(port, mark)| (MarkedPort::clone(port), mark));
        let result = self.host.save_marks(&changed, &mut held);
        self.marks_failed = result.is_err();
        let words = result.err().map(|error| {
            format!(
                "the firewall marks cannot be written: {error}; a restart of the agent may change marks, and then ends \
                 the connections of clients outside of the cluster to Services with externalTrafficPolicy Local; make \
                 room in, or write access to, {}",
                self.config.state_dir.display()
            )
        });
        self.warnings
            .set(Topic::FirewallMarks, words.into_iter().collect());
    }
}
