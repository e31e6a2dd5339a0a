//! What a decision needs to know of earlier ones: since when endpoints are ready, and what levels had.
//!
//! It is a value like the snapshot: [`resolve`](crate::resolve::resolve) reads it and says what to remember; the caller
//! hands that over with [`Memory::learn`]. A Service that is seen for the first time has no new endpoints, so that a
//! restart of the caller ramps nothing.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::ObjectName;
use crate::policy::LevelKey;
use crate::virtual_server::VirtualServerKey;

/// Everything that is remembered, by Service; of each what is remembered of its virtual servers, sorted by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory(FxHashMap<ObjectName, Vec<(VirtualServerKey, Arc<Remembered>)>>);

/// What is remembered about one virtual server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Address and port of endpoints, sorted, with the moment since when they are ready.
    pub ready_since: Vec<((std::net::IpAddr, u16), i64)>,
    /// What levels with a recovery hold count.
    pub held: Vec<(LevelKey, RecoveryHold)>,
}

/// What a level with a recovery hold counts as ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryHold {
    /// Endpoints that count.
    pub counted: u32,
    /// Since when it has more, and the fewest it had since.
    pub growing: Option<(i64, u32)>,
}

impl Memory {
    /// Replaces what is remembered of `service`.
    pub(crate) fn set(
        &mut self,
        service: &ObjectName,
        mut kept: Vec<(VirtualServerKey, Arc<Remembered>)>,
    ) {
        kept.sort_unstable_by_key(|(key, _)| *key);
        if kept.is_empty() {
            self.0.remove(service);
        } else {
            self.0.insert(service.clone(), kept);
        }
    }

    /// What is remembered about one virtual server of `service`.
    pub fn of(&self, service: &ObjectName, key: &VirtualServerKey) -> Option<&Remembered> {
        let servers = self.0.get(service)?;
        let found = servers.binary_search_by_key(key, |(known, _)| *known);
        let (_, remembered) = servers.get(found.ok()?)?;
        Some(remembered)
    }
}
