//! The node and the time of a decision.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::infrastructure::NodeInfrastructure;
use crate::memory::Memory;
use crate::model::{Family, Frontend, FrontendKind, ObjectName, Service};
use crate::scheduler::Scheduler;

/// The node and the time of a decision: decisions depend on both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewpoint {
    /// Name of the Node.
    pub node: Arc<str>,
    /// The scheduler of virtual servers, unless the Service requests another one.
    pub scheduler: Scheduler,
    /// Schedulers that the node's kernel does not have; `wrr` replaces them.
    pub missing: Arc<BTreeSet<Scheduler>>,
    /// Milliseconds since 1970. With `None`, nothing ramps, there is no recovery hold, and no drain expires.
    pub now: Option<i64>,
    /// The memory of earlier decisions.
    pub memory: Arc<Memory>,
    /// The addresses of the node at which node ports are served.
    pub node_port_addresses: Arc<BTreeSet<IpAddr>>,
    /// The addresses that the node depends on.
    pub infrastructure: Arc<NodeInfrastructure>,
    /// The addresses of each Service that this node served before another Node listed them as its own, or before they
    /// became infrastructure. They stay with the Service: what others write must not remove a Service here.
    pub kept_addresses: Arc<BTreeMap<ObjectName, BTreeSet<IpAddr>>>,
    /// Endpoints on this node whose servers closed their connections to the agent. They get no traffic, whatever their
    /// conditions are: the EndpointSlice follows only after kubelet and the EndpointSlice controller.
    pub disconnected: Arc<BTreeSet<SocketAddr>>,
}

impl Viewpoint {
    /// The view from `node`, scheduling by `wrr`.
    pub fn new(node: impl Into<Arc<str>>) -> Self {
        Self {
            node: node.into(),
            scheduler: Scheduler::default(),
            missing: Arc::default(),
            now: None,
            memory: Arc::default(),
            node_port_addresses: Arc::default(),
            infrastructure: Arc::default(),
            kept_addresses: Arc::default(),
            disconnected: Arc::default(),
        }
    }

    /// The frontends of `service` on this node: those of its node ports once for each address.
    pub(super) fn frontends(&self, service: &Service) -> impl Iterator<Item = Frontend> {
        service
            .frontends
            .iter()
            .flat_map(|frontend| self.on_this_node(*frontend))
    }

    fn on_this_node(&self, frontend: Frontend) -> Vec<Frontend> {
        match frontend.kind {
            FrontendKind::ClusterIp | FrontendKind::ExternalIp | FrontendKind::LoadBalancer => {
                vec![frontend]
            }
            FrontendKind::NodePort => {
                let addresses = self.node_port_addresses.iter();
                let family = Family::of(frontend.address);
                let of_family = addresses.filter(|address| Family::of(**address) == family);
                of_family
                    .map(|&address| Frontend {
                        address,
                        ..frontend
                    })
                    .collect()
            }
        }
    }
}
