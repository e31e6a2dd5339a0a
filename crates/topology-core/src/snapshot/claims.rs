//! Decides which of two Services gets the same address, protocol and port.

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

/// The claimants of every frontend, the owner first.
#[derive(Debug, Default)]
pub(super) struct FrontendClaims(FxHashMap<FrontendKey, SmallVec<[Rank; 1]>>);

impl FrontendClaims {
    /// The owner of `frontend`.
    pub(super) fn owner(&self, frontend: &FrontendKey) -> Option<&ObjectName> {
        self.0.get(frontend)?.first().map(|rank| &rank.name)
    }

    /// The Services with a node port of the same number: they may serve it at the address of `frontend`, too.
    fn node_port_claimants(&self, frontend: FrontendKey) -> Vec<ObjectName> {
        let address = Frontend::node_port(Family::of(frontend.address)).address;
        let ranks = self.0.get(&FrontendKey {
            address,
            ..frontend
        });
        ranks
            .into_iter()
            .flatten()
            .map(|rank| rank.name.clone())
            .collect()
    }

    /// Adds the claims of `service`; returns the other claimants of its frontends.
    pub(super) fn enter(&mut self, service: &Service) -> Vec<ObjectName> {
        let mut others = Vec::new();
        for (kind, frontend) in frontends(service) {
            others.extend(self.node_port_claimants(frontend));
            let claimants = self.0.entry(frontend).or_default();
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
        for (_, frontend) in frontends(service) {
            others.extend(self.node_port_claimants(frontend));
            let Some(claimants) = self.0.get_mut(&frontend) else {
                continue;
            };
            claimants.retain(|rank| rank.name != service.name);
            others.extend(claimants.iter().map(|rank| rank.name.clone()));
            if claimants.is_empty() {
                self.0.remove(&frontend);
            }
        }
        others
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
