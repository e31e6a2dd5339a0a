//! The ports of a Service.

use std::num::NonZeroU16;
use std::sync::Arc;

use super::Protocol;

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServicePort {
    /// `name`; empty if the Service has one unnamed port.
    pub name: Arc<str>,
    /// `protocol`.
    pub protocol: Protocol,
    /// `port`.
    pub port: NonZeroU16,
    /// `nodePort`, if one is allocated.
    pub node_port: Option<NonZeroU16>,
}

impl ServicePort {
    /// A port without a node port.
    pub fn new(name: impl Into<Arc<str>>, protocol: Protocol, port: NonZeroU16) -> Self {
        Self {
            name: name.into(),
            protocol,
            port,
            node_port: None,
        }
    }
}
