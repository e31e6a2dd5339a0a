//! Decides which of two Services gets the same address, protocol and port.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::model::{Family, Frontend, FrontendKind, ObjectName, Protocol, Service};

/// An address, protocol and port that clients connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrontendKey {
    /// The virtual address; the unspecified one for a node port, which is the same on every node.
    pub address: IpAddr,
    /// The protocol.
    pub protocol: Protocol,
    /// The port.
    pub port: u16,
}

impl FrontendKey {
    /// The node port of this number.
    pub(crate) const fn as_node_port(self) -> Self {
        let family = Family::of(self.address);
        Self {
            address: Frontend::node_port(family).address,
            ..self
        }
    }
}

impl fmt::Display for FrontendKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address,
            protocol,
            port,
        } = self;
        if address.is_unspecified() {
            let family = Family::of(*address);
            write!(f, "{protocol} node port {port} of {family}")
        } else {
            write!(f, "{protocol} {}", SocketAddr::new(*address, *port))
        }
    }
}

/// A claimant. They are ordered: cluster IPs first, since the API server allocates them, then the oldest Service; those
/// without a creation time are last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_external: bool,
    created: i64,
    name: ObjectName,
}

impl Rank {
    fn of(service: &Service, kind: FrontendKind) -> Self {
        Self {
            is_external: kind.is_external(),
            created: service.created.unwrap_or(i64::MAX),
            name: service.name.clone(),
        }
    }
}

/// The claimants of every frontend.
#[derive(Debug, Default)]
pub(super) struct FrontendClaims {
    /// The owner first.
    claimants: FxHashMap<FrontendKey, SmallVec<[Rank; 1]>>,
    /// The Services with the port at an external address, which a node may have. The keys are node ports.
    external: FxHashMap<FrontendKey, BTreeSet<ObjectName>>,
}

impl FrontendClaims {
    /// The owner of `frontend`.
    pub(super) fn owner(&self, frontend: &FrontendKey) -> Option<&ObjectName> {
        self.first(frontend).map(|rank| &rank.name)
    }

    /// The first of the owners of several frontends, and the one that it owns.
    pub(super) fn first_owner(
        &self,
        frontends: &[FrontendKey],
    ) -> Option<(FrontendKey, &ObjectName)> {
        let owner = |frontend: &FrontendKey| Some((self.first(frontend)?, *frontend));
        let (rank, frontend) = frontends.iter().filter_map(owner).min()?;
        Some((frontend, &rank.name))
    }

    fn first(&self, frontend: &FrontendKey) -> Option<&Rank> {
        self.claimants.get(frontend)?.first()
    }

    /// The Services that may claim the same at an address of a node: with a node port of the number of an external
    /// frontend, or the other way round.
    fn rivals(&self, kind: FrontendKind, frontend: FrontendKey) -> Vec<ObjectName> {
        if kind == FrontendKind::NodePort {
            let external = self.external.get(&frontend).into_iter().flatten();
            return external.cloned().collect();
        }
        let ranks = self.claimants.get(&frontend.as_node_port());
        let ranks = ranks.into_iter().flatten();
        ranks.map(|rank| rank.name.clone()).collect()
    }

    /// Adds the claims of `service`; returns the other claimants of its frontends.
    pub(super) fn enter(&mut self, service: &Service) -> Vec<ObjectName> {
        let mut others = Vec::new();
        for (kind, frontend) in frontends(service) {
            others.extend(self.rivals(kind, frontend));
            if is_at_external_address(kind) {
                let services = self.external.entry(frontend.as_node_port()).or_default();
                services.insert(service.name.clone());
            }
            let claimants = self.claimants.entry(frontend).or_default();
            others.extend(claimants.iter().map(|rank| rank.name.clone()));
            let rank = Rank::of(service, kind);
            if let Err(at) = claimants.binary_search(&rank) {
                claimants.insert(at, rank);
            }
        }
        others
    }

    /// Removes the claims of `service`; returns the other claimants of its frontends.
    pub(super) fn withdraw(&mut self, service: &Service) -> Vec<ObjectName> {
        let mut others = Vec::new();
        for (kind, frontend) in frontends(service) {
            others.extend(self.rivals(kind, frontend));
            if is_at_external_address(kind) {
                self.leave_external(service, &frontend.as_node_port());
            }
            let Some(claimants) = self.claimants.get_mut(&frontend) else {
                continue;
            };
            claimants.retain(|rank| rank.name != service.name);
            others.extend(claimants.iter().map(|rank| rank.name.clone()));
            if claimants.is_empty() {
                self.claimants.remove(&frontend);
            }
        }
        others
    }

    fn leave_external(&mut self, service: &Service, node_port: &FrontendKey) {
        if let Some(services) = self.external.get_mut(node_port) {
            services.remove(&service.name);
            if services.is_empty() {
                self.external.remove(node_port);
            }
        }
    }
}

/// Whether a frontend of this kind may be at an address of a node, like node ports.
const fn is_at_external_address(kind: FrontendKind) -> bool {
    match kind {
        FrontendKind::ExternalIp | FrontendKind::LoadBalancer => true,
        FrontendKind::ClusterIp | FrontendKind::NodePort => false,
    }
}

fn frontends(service: &Service) -> impl Iterator<Item = (FrontendKind, FrontendKey)> + '_ {
    service.frontends.iter().flat_map(|frontend| {
        service.ports.iter().filter_map(|port| {
            let key = FrontendKey {
                address: frontend.address,
                protocol: port.protocol,
                port: frontend.port_of(port)?,
            };
            Some((frontend.kind, key))
        })
    })
}
