//! The name of a port in `_NAME._PROTOCOL.SERVICE.NAMESPACE.svc`.

use std::sync::Arc;

use topology_core::model::{Protocol, ServicePort};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PortName {
    pub(crate) name: Arc<str>,
    pub(crate) protocol: Protocol,
}

impl PortName {
    pub(crate) fn of(port: &ServicePort) -> Self {
        Self {
            name: Arc::clone(&port.name),
            protocol: port.protocol,
        }
    }

    pub(crate) fn is(&self, name: &str, protocol: Protocol) -> bool {
        *self.name == *name && self.protocol == protocol
    }
}
