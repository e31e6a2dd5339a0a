//! EndpointSlices and their endpoints.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use super::{Family, ObjectName, Protocol};

/// An EndpointSlice: some endpoints of one Service in one family.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EndpointSlice {
    /// `metadata.namespace` and `metadata.name` of the slice.
    pub name: ObjectName,
    /// The Service, in the same namespace (label `kubernetes.io/service-name`).
    pub service: Arc<str>,
    /// `addressType`.
    pub family: Family,
    /// `ports`, without those that have no number (KP-IN-14).
    pub ports: Vec<SlicePort>,
    /// `endpoints`.
    pub endpoints: Vec<Endpoint>,
    /// `hostname` of the endpoints that have one, by position in `endpoints`: endpoints on the host network share an
    /// address. Only DNS uses them, so they are empty for other consumers.
    pub hostnames: BTreeMap<usize, Arc<str>>,
}

impl EndpointSlice {
    /// The endpoints, with their `hostname`.
    pub fn endpoints_with_hostnames(&self) -> impl Iterator<Item = (&Endpoint, Option<&Arc<str>>)> {
        let endpoints = self.endpoints.iter().enumerate();
        endpoints.map(|(position, endpoint)| (endpoint, self.hostnames.get(&position)))
    }
}

/// A port of an EndpointSlice, with the target port already resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SlicePort {
    /// The name of the Service port.
    pub name: Arc<str>,
    /// Transport protocol of the port.
    pub protocol: Protocol,
    /// The port of the pods.
    pub port: NonZeroU16,
}

/// An endpoint. Kept small, because a cluster may have a hundred thousand.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// `addresses[0]`.
    pub address: IpAddr,
    /// `nodeName`.
    pub node: Option<Arc<str>>,
    /// `zone`.
    pub zone: Option<Arc<str>>,
    /// `conditions.ready`, true if absent.
    pub ready: bool,
    /// `conditions.serving`, true if absent.
    pub serving: bool,
    /// `conditions.terminating`, false if absent.
    pub terminating: bool,
    /// `hints`, if there are any.
    pub hints: Option<Box<Hints>>,
}

impl Endpoint {
    /// Whether it terminates but still serves.
    pub const fn serves_terminating(&self) -> bool {
        self.serving && self.terminating
    }

    /// Whether its conditions allow traffic, at least as a last resort.
    pub const fn is_usable(&self) -> bool {
        self.ready || self.serves_terminating()
    }
}

/// `hints` of an endpoint (KEP-2433, KEP-3015).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Hints {
    /// `forZones`.
    pub zones: Vec<Arc<str>>,
    /// `forNodes`.
    pub nodes: Vec<Arc<str>>,
}
