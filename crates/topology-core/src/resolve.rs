//! From a [`Snapshot`] and a place in the cluster to virtual servers, with the reason for every endpoint.
//!
//! For each Service port and address family the stages run in this order; each file documents its rule.
//!
//! | stage | file | decides |
//! |---|---|---|
//! | - | `candidates` | the endpoints of the port, each once |
//! | source | `source` | what decides: traffic policy Local, policy, hints, nothing |
//! | S4 | `s04_tiers` | the level of each endpoint |
//! | S0 | `s00_usable` | which endpoints may serve, and the fall-back to terminating ones |
//! | S6 | `s06_empty` | where the share of an empty level goes |
//! | S9 | `s09_share` | the share of each endpoint |
//! | S10 | `s10_weights` | integer weights |
//! | S11 | `s11_emit` | the virtual server |
//!
//! Stages S1 to S3, S5, S7 and S8 (drains, avoid, panic, thresholds, spill, cap) act only on options that no
//! policy of this version has; each will be a file beside these.

mod candidates;
pub mod categorize;
mod decision;
mod finding;
mod reason;
mod s00_usable;
mod s04_tiers;
mod s06_empty;
mod s09_share;
mod s10_weights;
mod s11_emit;
mod source;
mod work;

use std::net::IpAddr;
use std::sync::Arc;

pub use decision::{Decision, EndpointDecision, LevelDecision, Note, Refusal};
pub use finding::{Finding, FindingKind};
pub use reason::Reason;

use crate::model::{Family, ObjectName, Service, ServicePort};
use crate::snapshot::{Frontend, Snapshot};
use crate::virtual_server::{DEFAULT_SCHEDULER, VirtualServer};
use work::Work;

/// Where one stands: decisions differ from node to node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewpoint {
    /// The name of the Node.
    pub node: Arc<str>,
    /// The scheduler of every virtual server; [`DEFAULT_SCHEDULER`] unless told otherwise.
    pub scheduler: Arc<str>,
}

impl Viewpoint {
    /// The view from `node`, scheduling by `wrr`.
    pub fn new(node: impl Into<Arc<str>>) -> Self {
        Self {
            node: node.into(),
            scheduler: DEFAULT_SCHEDULER.into(),
        }
    }
}

/// What a Service resolves to on one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Its virtual servers, by port and then by address, as the Service lists them.
    pub servers: Vec<ResolvedServer>,
    /// What its owner should know.
    pub findings: Vec<Finding>,
}

/// A virtual server and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedServer {
    /// The Service.
    pub service: ObjectName,
    /// The name of the Service port, empty if it has none.
    pub port_name: Arc<str>,
    /// Which address of the Service it serves.
    pub kind: FrontendKind,
    /// What the kernel shall hold.
    pub server: VirtualServer,
    /// Why.
    pub decision: Decision,
}

/// Which address of a Service a virtual server serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrontendKind {
    /// `spec.clusterIPs`.
    ClusterIp,
}

impl FrontendKind {
    /// The word for it in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ClusterIp => "ClusterIP",
        }
    }
}

/// What `name` resolves to as seen from `me`; nothing if there is no such Service.
pub fn resolve(snapshot: &Snapshot, me: &Viewpoint, name: &ObjectName) -> Resolution {
    let mut resolution = Resolution::default();
    let Some(service) = snapshot.service(name) else {
        return resolution;
    };
    for port in &service.ports {
        for address in &service.cluster_ips {
            let view = PortView {
                snapshot,
                me,
                service,
                port,
                address: *address,
            };
            match view.obstacle() {
                Some(kind) => resolution.findings.push(view.finding(kind)),
                None => view.resolve(&mut resolution),
            }
        }
    }
    resolution
}

/// One port of a Service at one of its addresses, seen from one node.
pub(crate) struct PortView<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) me: &'a Viewpoint,
    pub(crate) service: &'a Service,
    pub(crate) port: &'a ServicePort,
    pub(crate) address: IpAddr,
}

impl PortView<'_> {
    pub(crate) fn family(&self) -> Family {
        Family::of(self.address)
    }

    /// Why the address must not be programmed for this Service.
    fn obstacle(&self) -> Option<FindingKind> {
        if let Some(node) = self.snapshot.node_with_address(self.address) {
            return Some(FindingKind::NodeAddress {
                address: self.address,
                node: node.name.clone(),
            });
        }
        let frontend = Frontend {
            address: self.address,
            protocol: self.port.protocol,
            port: self.port.port.get(),
        };
        let owner = self.snapshot.owner_of(&frontend)?;
        (*owner != self.service.name).then(|| FindingKind::FrontendTaken {
            frontend,
            owner: owner.clone(),
        })
    }

    fn finding(&self, kind: FindingKind) -> Finding {
        Finding {
            service: self.service.name.clone(),
            port_name: self.port.name.clone(),
            kind,
        }
    }

    fn resolve(&self, resolution: &mut Resolution) {
        let candidates = candidates::collect(self);
        for (address, problem) in &candidates.refused {
            let kind = FindingKind::BadEndpoint {
                address: *address,
                problem,
            };
            resolution.findings.push(self.finding(kind));
        }
        let mut work = Work::new(self, candidates.accepted);
        source::select(&mut work);
        s06_empty::redistribute(&mut work);
        s09_share::spread(&mut work);
        s10_weights::weigh(&mut work);
        resolution.servers.push(s11_emit::emit(work));
    }
}
