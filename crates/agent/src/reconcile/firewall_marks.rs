//! Firewall marks on disk, so that a restart does not change them.

use cluster::event::Completeness;
use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use topology_core::model::Family;
use topology_core::snapshot::MarkedPort;
use topology_core::virtual_server::VirtualServerKey;

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

    /// Frees released marks whose virtual servers are gone, and programs Services that get one of them.
    pub(super) async fn serve_waiting_for_marks(&mut self) {
        let mirror = &self.mirror;
        let is_used = |mark| {
            let keys = keys_of(mark);
            keys.iter()
                .any(|key| mirror.is_ours(key) && mirror.get(key).is_some())
        };
        if self
            .index
            .snapshot_mut()
            .free_released_firewall_marks(is_used)
        {
            self.pass_changes().await;
        } else {
            self.write_marks();
        }
    }

    /// Takes marks of other programs' virtual servers from Services; `present` are the keys in the kernel. Returns whether
    /// a Service has another mark now.
    pub(super) fn avoid_foreign_marks(
        &mut self,
        present: impl Iterator<Item = VirtualServerKey>,
    ) -> bool {
        let foreign = present.filter_map(|key| match key {
            VirtualServerKey::FirewallMark { mark, .. } if !self.mirror.is_ours(&key) => Some(mark),
            VirtualServerKey::FirewallMark { .. } | VirtualServerKey::Address { .. } => None,
        });
        // With --adopt the virtual server is taken over.
        let foreign: Vec<u32> = foreign.filter(|_| !self.config.adopt).collect();
        let snapshot = self.index.snapshot_mut();
        snapshot.avoid_firewall_marks(foreign.into_iter())
    }

    /// Writes marks that were allocated or freed. Call it before tables and virtual servers are written: a mark in
    /// the kernel is then always on disk. If the write fails, clients are served all the same, and each pass tries
    /// again.
    pub(super) fn write_marks(&mut self) {
        let changed = self.index.snapshot_mut().take_changed_firewall_marks();
        if changed.is_empty() && !self.host_writes.marks_failed {
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
        self.host_writes.marks_failed = result.is_err();
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

/// The keys of the virtual servers for a mark.
pub(super) fn keys_of(mark: u32) -> [VirtualServerKey; 2] {
    [Family::V4, Family::V6].map(|family| VirtualServerKey::FirewallMark { family, mark })
}
