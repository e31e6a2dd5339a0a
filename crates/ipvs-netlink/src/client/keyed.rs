//! Detects tables that changed during a dump.
//!
//! The kernel resumes a dump by counting entries (`ip_vs_genl_dump_services` in `net/netfilter/ipvs/ip_vs_ctl.c`), and
//! does not report that the count has shifted meanwhile. Up to Linux 6.12 at least, all network namespaces share the
//! table that is counted, so changes in another namespace shift it, too.

use std::collections::HashSet;
use std::hash::Hash;
use std::net::SocketAddr;

use crate::{Daemon, DaemonState, DestinationEntry, ServiceEntry, ServiceId};

/// An entry of a table with unique keys.
pub(super) trait Keyed {
    type Key: Eq + Hash;

    fn key(&self) -> Self::Key;
}

impl Keyed for ServiceEntry {
    type Key = ServiceId;

    fn key(&self) -> ServiceId {
        self.service.id
    }
}

impl Keyed for DestinationEntry {
    type Key = SocketAddr;

    fn key(&self) -> SocketAddr {
        self.destination.id()
    }
}

impl Keyed for Daemon {
    type Key = DaemonState;

    fn key(&self) -> DaemonState {
        self.state
    }
}

/// Whether a key is listed twice: entries were added before the position where the dump had stopped.
pub(super) fn has_repeats<T: Keyed>(entries: &[T]) -> bool {
    let mut seen = HashSet::with_capacity(entries.len());
    !entries.iter().all(|entry| seen.insert(entry.key()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_key_is_a_repeat_even_if_other_fields_differ() {
        let daemon = |id| Daemon::new(DaemonState::Primary, "eth0", id);
        let backup = Daemon::new(DaemonState::Backup, "eth0", 1);
        assert!(!has_repeats(&[daemon(1), backup.clone()]));
        assert!(has_repeats(&[daemon(1), backup, daemon(2)]));
        assert!(!has_repeats::<Daemon>(&[]));
    }
}
