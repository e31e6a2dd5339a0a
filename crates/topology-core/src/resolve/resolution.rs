//! What a Service resolves to, and what is remembered of it.

use std::sync::Arc;

use super::decision::Decision;
use super::finding::Finding;
use crate::memory::{Memory, Remembered};
use crate::model::{FrontendKind, ObjectName};
use crate::virtual_server::VirtualServer;

/// What a Service resolves to on one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Its virtual servers, by port and then by address, as the Service lists them.
    pub servers: Vec<ResolvedServer>,
    /// What its owner should know.
    pub findings: Vec<Finding>,
    /// When to ask again although nothing changes, milliseconds since 1970.
    pub ask_again: Option<i64>,
}

/// A virtual server and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedServer {
    /// The Service.
    pub service: ObjectName,
    /// The name of the Service port, empty if it has none.
    pub port_name: Arc<str>,
    /// Which address of the Service it serves.
    pub kind: FrontendKind,
    /// What the kernel shall hold.
    pub server: VirtualServer,
    /// Why.
    pub decision: Decision,
    /// What the next decision needs to know of this one; see [`Memory::learn`].
    pub remember: Option<Arc<Remembered>>,
}

impl Memory {
    /// Remembers what `resolution` of `service` asks to be remembered, and forgets the rest about it.
    pub fn learn(&mut self, service: &ObjectName, resolution: &Resolution) {
        let kept = resolution.servers.iter().filter_map(|resolved| {
            let remembered = Arc::clone(resolved.remember.as_ref()?);
            Some((resolved.server.key, remembered))
        });
        self.set(service, kept.collect());
    }
}
