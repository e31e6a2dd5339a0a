//! The name of a port in `_NAME._PROTOCOL.SERVICE.NAMESPACE.svc`.

use std::sync::Arc;

use topology_core::model::{EndpointSlice, Protocol, ServicePort, SlicePort};

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

/// The port of the slice that the question is about; without one all.
pub(crate) fn asked_ports<'s>(
    slice: &'s EndpointSlice,
    asked: Option<&PortName>,
) -> &'s [SlicePort] {
    let Some(asked) = asked else {
        return &slice.ports;
    };
    let mut ports = slice.ports.iter();
    let port = ports.find(|port| asked.is(&port.name, port.protocol));
    port.map_or(&[], std::slice::from_ref)
}
