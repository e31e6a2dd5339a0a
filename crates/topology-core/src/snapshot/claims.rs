//! Decides which of two Services gets the same address, protocol and port.

use std::net::IpAddr;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::model::{ObjectName, Protocol, Service};

/// An address, protocol and port that clients connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrontendKey {
    /// The virtual address.
    pub address: IpAddr,
    /// The protocol.
    pub protocol: Protocol,
    /// The port.
    pub port: u16,
}

/// Order of claimants: oldest first, Services without a creation time last.
type Rank = (i64, ObjectName);

/// The claimants of every frontend, the owner first.
#[derive(Debug, Default)]
pub(super) struct FrontendClaims(FxHashMap<FrontendKey, SmallVec<[Rank; 1]>>);

impl FrontendClaims {
    /// The owner of `frontend`.
    pub(super) fn owner(&self, frontend: &FrontendKey) -> Option<&ObjectName> {
        self.0.get(frontend)?.first().map(|(_, name)| name)
    }

    /// Adds the claims of `service`; returns the other claimants of its frontends.
    pub(super) fn enter(&mut self, service: &Service) -> Vec<ObjectName> {
        let rank = rank(service);
        let mut others = Vec::new();
        for frontend in frontends(service) {
            let claimants = self.0.entry(frontend).or_default();
            others.extend(claimants.iter().map(|(_, name)| name.clone()));
            if let Err(at) = claimants.binary_search(&rank) {
                claimants.insert(at, rank.clone());
            }
        }
        others
    }

    /// Removes the claims of `service`; returns the other claimants of its frontends.
    pub(super) fn withdraw(&mut self, service: &Service) -> Vec<ObjectName> {
        let mut others = Vec::new();
        for frontend in frontends(service) {
            let Some(claimants) = self.0.get_mut(&frontend) else {
                continue;
            };
            claimants.retain(|(_, name)| *name != service.name);
            others.extend(claimants.iter().map(|(_, name)| name.clone()));
            if claimants.is_empty() {
                self.0.remove(&frontend);
            }
        }
        others
    }
}

fn rank(service: &Service) -> Rank {
    (service.created.unwrap_or(i64::MAX), service.name.clone())
}

fn frontends(service: &Service) -> impl Iterator<Item = FrontendKey> + '_ {
    service.frontends.iter().flat_map(|frontend| {
        service.ports.iter().map(|port| FrontendKey {
            address: frontend.address,
            protocol: port.protocol,
            port: frontend.port_of(port),
        })
    })
}
