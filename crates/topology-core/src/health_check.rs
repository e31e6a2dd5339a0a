//! Counts the endpoints that a load balancer learns from the health check node port of a Service.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU16;

use crate::model::{Endpoint, Family, Service};
use crate::snapshot::Snapshot;

/// The health check of a Service on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthCheck {
    /// `spec.healthCheckNodePort`.
    pub port: NonZeroU16,
    /// The local endpoints of IPv4; `None` if the Service has no cluster IP of the family.
    pub v4: Option<usize>,
    /// The local endpoints of IPv6.
    pub v6: Option<usize>,
}

impl HealthCheck {
    /// The health check of `service` on the node `node`; `None` if the Service has none.
    ///
    /// Each family has its own number, because a load balancer sends each to the endpoints of that family.
    pub fn of(snapshot: &Snapshot, service: &Service, node: &str) -> Option<Self> {
        let port = service.health_check_node_port?;
        let count = |family| {
            let mut frontends = service.frontends.iter();
            let has_family = frontends.any(|one| Family::of(one.address) == family);
            has_family.then(|| local_endpoints(snapshot, service, node, family))
        };
        Some(Self {
            port,
            v4: count(Family::V4),
            v6: count(Family::V6),
        })
    }

    /// The local endpoints of a family; `None` if the Service does not have the family.
    pub const fn endpoints(&self, family: Family) -> Option<usize> {
        match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }
}

/// The addresses of ready endpoints on the node, of any port (KP-HC-11, KP-HC-12). An endpoint that serves while it
/// terminates is not ready, so load balancers leave before it ends.
fn local_endpoints(snapshot: &Snapshot, service: &Service, node: &str, family: Family) -> usize {
    let is_local = |endpoint: &&Endpoint| endpoint.ready && endpoint.node.as_deref() == Some(node);
    let slices = snapshot.slices(&service.name).iter();
    let slices = slices.filter(|slice| slice.family == family && !slice.ports.is_empty());
    let endpoints = slices.flat_map(|slice| &slice.endpoints).filter(is_local);
    let addresses: BTreeSet<IpAddr> = endpoints.map(|endpoint| endpoint.address).collect();
    addresses.len()
}
