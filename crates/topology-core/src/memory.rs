//! Keeps what later decisions need to know of earlier ones: since when endpoints are ready, and how many endpoints a
//! level with a recovery hold counts.
//!
//! It is a value like the snapshot. [`resolve`](crate::resolve::resolve) reads it and returns what to keep; the caller
//! stores that with [`Memory::store`]. A new Service has no new endpoints, so a restart of the caller starts no slow
//! start.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::ObjectName;
use crate::policy::LevelKey;
use crate::virtual_server::VirtualServerKey;

/// The limit of remembered servers of a Service whose parts are resolved alone: then nothing says which are gone.
const MOST_SERVERS_OF_PARTS: usize = 256;

/// The memory of each Service: its virtual servers, sorted by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory(FxHashMap<ObjectName, Vec<(VirtualServerKey, Arc<ServerMemory>)>>);

/// The memory of one virtual server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerMemory {
    /// Address and port of endpoints, sorted, with the time since which they are ready.
    pub ready_since: Vec<((std::net::IpAddr, u16), i64)>,
    /// The counts of levels with a recovery hold.
    pub held: Vec<(LevelKey, RecoveryHold)>,
}

/// How many endpoints a level with a recovery hold counts as ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryHold {
    /// Endpoints that count.
    pub counted: u32,
    /// Since when it has had more, and the minimum since then.
    pub growing: Option<(i64, u32)>,
}

impl Memory {
    /// Replaces the memory of `service`.
    pub(crate) fn set(
        &mut self,
        service: &ObjectName,
        mut kept: Vec<(VirtualServerKey, Arc<ServerMemory>)>,
    ) {
        kept.sort_unstable_by_key(|(key, _)| *key);
        if kept.is_empty() {
            self.0.remove(service);
        } else {
            self.0.insert(service.clone(), kept);
        }
    }

    /// Replaces the memory of one virtual server of `service`; `None` removes it. If there are too many, all others are
    /// removed.
    pub(crate) fn set_server(
        &mut self,
        service: &ObjectName,
        key: VirtualServerKey,
        memory: Option<Arc<ServerMemory>>,
    ) {
        let mut servers = self.0.remove(service).unwrap_or_default();
        servers.retain(|(known, _)| *known != key);
        if servers.len() >= MOST_SERVERS_OF_PARTS {
            servers.clear();
        }
        servers.extend(memory.map(|memory| (key, memory)));
        self.set(service, servers);
    }

    /// The memory of one virtual server of `service`.
    pub fn of(&self, service: &ObjectName, key: &VirtualServerKey) -> Option<&ServerMemory> {
        let servers = self.0.get(service)?;
        let found = servers.binary_search_by_key(key, |(known, _)| *known);
        let (_, memory) = servers.get(found.ok()?)?;
        Some(memory)
    }

    /// How many endpoints and levels it remembers of `service`.
    pub fn size_of(&self, service: &ObjectName) -> usize {
        self.0.get(service).map_or(0, |servers| size(servers))
    }

    /// The remembered Services, each with its number of endpoints and levels, in no order.
    pub fn sizes(&self) -> impl Iterator<Item = (&ObjectName, usize)> {
        let services = self.0.iter();
        services.map(|(service, servers)| (service, size(servers)))
    }

    /// Forgets the Services of a namespace.
    pub fn forget_namespace(&mut self, namespace: &str) {
        self.0.retain(|service, _| *service.namespace != *namespace);
    }
}

fn size(servers: &[(VirtualServerKey, Arc<ServerMemory>)]) -> usize {
    let sizes = servers.iter();
    let sizes = sizes.map(|(_, server)| server.ready_since.len() + server.held.len());
    sizes.sum()
}
