//! The endpoints that have names.

use topology_core::model::{Endpoint, Service};

/// Whether the endpoint has a name. One that terminates keeps it while it serves: the answer for
/// the Service may hold it if no other is ready. A Service that became an alias may still have slices.
pub(crate) fn is_published(service: &Service, endpoint: &Endpoint) -> bool {
    service.external_name.is_none() && (service.publish_not_ready_addresses || endpoint.is_usable())
}
