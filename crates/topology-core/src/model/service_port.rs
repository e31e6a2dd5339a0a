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
}
