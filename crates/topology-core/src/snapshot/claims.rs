//! Decides which of two Services gets the same address, protocol and port.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::model::{Family, Frontend, FrontendKind, ObjectName, Protocol, Service, ServicePort};

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
pub(crate) struct Claimant {
    /// Whether it claims an external address or a node port.
    pub(crate) is_external: bool,
    /// When the Service was created.
    pub(crate) created: i64,
    /// The Service.
    pub(crate) name: ObjectName,
}

impl Claimant {
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
    claimants: FxHashMap<FrontendKey, SmallVec<[Claimant; 1]>>,
    /// The Services with the port at an external address, which a node may have. The keys are node ports.
    external: FxHashMap<FrontendKey, BTreeSet<ObjectName>>,
    /// Frontends that changed their owner while others claimed them, with the owner at the last query.
    reassigned: FxHashMap<FrontendKey, Option<Claimant>>,
}

impl FrontendClaims {
    /// The owner of `frontend`.
    pub(super) fn owner(&self, frontend: &FrontendKey) -> Option<&ObjectName> {
        self.first(frontend).map(|claimant| &claimant.name)
    }

    /// The first of the owners of several frontends, and the one that it owns.
    pub(super) fn first_owner(
        &self,
        frontends: &[FrontendKey],
    ) -> Option<(FrontendKey, &Claimant)> {
        let owner = |frontend: &FrontendKey| Some((self.first(frontend)?, *frontend));
        let (claimant, frontend) = frontends.iter().filter_map(owner).min()?;
        Some((frontend, claimant))
    }

    fn first(&self, frontend: &FrontendKey) -> Option<&Claimant> {
        self.claimants.get(frontend)?.first()
    }

    /// The Services that claim `frontend`, or that may claim the same at an address of a node: with a node port of the
    /// number of another frontend, or the other way round.
    fn claiming<'s>(&'s self, frontend: &FrontendKey) -> impl Iterator<Item = &'s ObjectName> {
        let node_port = frontend.as_node_port();
        let is_node_port = *frontend == node_port;
        let at_nodes = self.claimants.get(&node_port).filter(|_| !is_node_port);
        let external = self.external.get(frontend).into_iter().flatten();
        let claimants = self.claimants.get(frontend).into_iter().chain(at_nodes);
        let claimants = claimants.flatten().map(|claimant| &claimant.name);
        claimants.chain(external)
    }

    /// Replaces the claims of a Service. An edit that leaves them as they are costs nothing, however many Services claim
    /// the same.
    pub(super) fn replace(&mut self, old: Option<&Service>, new: Option<&Service>) {
        if old.map(claimed) == new.map(claimed) {
            return;
        }
        if let Some(service) = old {
            self.withdraw(service);
        }
        if let Some(service) = new {
            self.enter(service);
        }
    }

    fn enter(&mut self, service: &Service) {
        for (kind, frontend) in frontends(service) {
            if is_at_external_address(kind) {
                let services = self.external.entry(frontend.as_node_port()).or_default();
                services.insert(service.name.clone());
            }
            let claimants = self.claimants.entry(frontend).or_default();
            let claimant = Claimant::of(service, kind);
            let Err(place) = claimants.binary_search(&claimant) else {
                continue;
            };
            claimants.insert(place, claimant);
            if place == 0 {
                let before = claimants.get(1).cloned();
                self.reassign(service, frontend, before);
            }
        }
    }

    fn withdraw(&mut self, service: &Service) {
        for (kind, frontend) in frontends(service) {
            if is_at_external_address(kind) {
                self.leave_external(service, &frontend.as_node_port());
            }
            let Some(claimants) = self.claimants.get_mut(&frontend) else {
                continue;
            };
            let Ok(place) = claimants.binary_search(&Claimant::of(service, kind)) else {
                continue;
            };
            let before = claimants.remove(place);
            if claimants.is_empty() {
                self.claimants.remove(&frontend);
            }
            if place == 0 {
                self.reassign(service, frontend, Some(before));
            }
        }
    }

    /// Records that a change of `service` gave the frontend another owner, if that matters to another Service.
    fn reassign(&mut self, service: &Service, frontend: FrontendKey, before: Option<Claimant>) {
        let has_others = self.claiming(&frontend).any(|name| *name != service.name);
        if has_others {
            self.reassigned.entry(frontend).or_insert(before);
        }
    }

    /// Takes the Services that claim a frontend whose owner is another one than at the last query.
    pub(super) fn take_reassigned(&mut self) -> Vec<ObjectName> {
        let reassigned = std::mem::take(&mut self.reassigned);
        let reassigned = reassigned.iter();
        let changed =
            reassigned.filter(|(frontend, before)| self.first(frontend) != before.as_ref());
        let claiming: FxHashSet<&ObjectName> = changed
            .flat_map(|(frontend, _)| self.claiming(frontend))
            .collect();
        claiming.into_iter().cloned().collect()
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

/// What the claims of a Service depend on.
fn claimed(service: &Service) -> (&[Frontend], &[ServicePort], Option<i64>) {
    (&service.frontends, &service.ports, service.created)
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
