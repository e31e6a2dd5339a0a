//! Totals of what is in the kernel, updated key by key.

use topology_core::mirror::Mirror;
use topology_core::model::Family;
use topology_core::virtual_server::VirtualServerKey;

use crate::state::FamilyCounts;

/// Totals over some keys of the mirror.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KernelTotals {
    pub(crate) v4: FamilyCounts,
    pub(crate) v6: FamilyCounts,
    pub(crate) foreign: u64,
}

impl KernelTotals {
    /// The totals of `keys` in the mirror.
    pub(crate) fn of(mirror: &Mirror, keys: &[VirtualServerKey]) -> Self {
        let mut counts = Self::default();
        for key in keys {
            counts.add(mirror, key);
        }
        counts
    }

    fn add(&mut self, mirror: &Mirror, key: &VirtualServerKey) {
        let Some(observed) = mirror.get(key) else {
            return;
        };
        if !mirror.is_ours(key) {
            self.foreign += 1;
            return;
        }
        let family = match key.family() {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        };
        family.virtual_servers += 1;
        for real in &observed.real_servers {
            match real.weight {
                0 => family.draining += 1,
                _ => family.active += 1,
            }
        }
    }

    /// Virtual and real servers.
    pub(crate) const fn servers(&self) -> u64 {
        const fn of(family: &FamilyCounts) -> u64 {
            family.virtual_servers + family.active + family.draining
        }
        of(&self.v4) + of(&self.v6)
    }

    /// Replaces the totals `before` a change of some keys by those after it.
    pub(crate) fn replace(&mut self, before: &Self, after: &Self) {
        self.v4 = moved(self.v4, before.v4, after.v4);
        self.v6 = moved(self.v6, before.v6, after.v6);
        self.foreign = (self.foreign + after.foreign).saturating_sub(before.foreign);
    }
}

fn moved(total: FamilyCounts, before: FamilyCounts, after: FamilyCounts) -> FamilyCounts {
    let part = |total: u64, before: u64, after: u64| (total + after).saturating_sub(before);
    FamilyCounts {
        virtual_servers: part(
            total.virtual_servers,
            before.virtual_servers,
            after.virtual_servers,
        ),
        active: part(total.active, before.active, after.active),
        draining: part(total.draining, before.draining, after.draining),
    }
}
