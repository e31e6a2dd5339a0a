//! A Service port at one address, seen from one node.

use std::net::IpAddr;

use super::resolution::Clients;
use super::targets::PortTargets;
use super::viewpoint::Viewpoint;
use crate::model::{Family, Frontend, FrontendKind, Node, Service, ServicePort, TrafficPolicy};
use crate::policy::PolicySource;
use crate::snapshot::{FrontendKey, Snapshot};
use crate::virtual_server::VirtualServerKey;

/// A Service port at one address, or for the outside clients of all its external addresses.
pub(crate) struct PortView<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) me: &'a Viewpoint,
    pub(crate) service: &'a Service,
    /// The slices with endpoints of the port.
    pub(super) targets: PortTargets<'a>,
    pub(crate) port: &'a ServicePort,
    pub(crate) frontend: Frontend,
    /// The port number at the frontend.
    pub(super) number: u16,
    /// The firewall mark and the frontends whose outside clients get it, if the view is theirs.
    pub(super) outside: Option<OutsideClients>,
    /// The Node of the viewpoint, if known.
    pub(crate) own_node: Option<&'a Node>,
}

/// The clients outside of the cluster, for `externalTrafficPolicy: Local`.
pub(super) struct OutsideClients {
    pub(super) mark: u32,
    pub(super) frontends: Vec<FrontendKey>,
}

impl PortView<'_> {
    pub(crate) fn family(&self) -> Family {
        Family::of(self.frontend.address)
    }

    pub(crate) fn key(&self) -> VirtualServerKey {
        if let Some(OutsideClients { mark, .. }) = self.outside {
            let family = self.family();
            return VirtualServerKey::FirewallMark { family, mark };
        }
        VirtualServerKey::Address {
            protocol: self.port.protocol,
            address: self.frontend.address,
            port: self.number,
        }
    }

    /// The traffic policy for the clients. Inside clients of an external frontend get endpoints on any node
    /// (`externalTrafficPolicy` is about outside clients only).
    pub(super) const fn traffic_policy(&self) -> TrafficPolicy {
        match &self.outside {
            Some(_) => self.service.external_traffic_policy,
            None => self.traffic_policy_of(self.frontend.kind),
        }
    }

    /// The traffic policy for the inside clients of a frontend of this kind.
    pub(super) const fn traffic_policy_of(&self, kind: FrontendKind) -> TrafficPolicy {
        match kind {
            FrontendKind::ClusterIp => self.service.internal_traffic_policy,
            FrontendKind::NodePort | FrontendKind::ExternalIp | FrontendKind::LoadBalancer => {
                TrafficPolicy::Cluster
            }
        }
    }

    /// The virtual addresses of the clients' packets.
    pub(super) fn destinations(&self) -> Vec<IpAddr> {
        let outside = self.outside.as_ref().map(|outside| {
            let addresses = outside.frontends.iter();
            addresses.map(|frontend| frontend.address).collect()
        });
        outside.unwrap_or_else(|| vec![self.frontend.address])
    }

    /// The source of a traffic policy Local.
    pub(super) const fn local_source(&self) -> PolicySource {
        match self.outside {
            Some(_) => PolicySource::ExternalTrafficPolicyLocal,
            None => PolicySource::InternalTrafficPolicyLocal,
        }
    }

    /// The clients of the virtual server.
    pub(super) fn clients(&self) -> Clients {
        let is_split = || {
            let mark = self.snapshot.firewall_mark(self.service, self.port);
            self.service.splits_clients() && mark.is_some()
        };
        if self.outside.is_some() {
            Clients::Outside
        } else if self.frontend.kind.is_external() && is_split() {
            Clients::Inside
        } else {
            Clients::All
        }
    }

    /// Whether session affinity is a hash of the client's address instead of persistence.
    ///
    /// With persistence a virtual server for a mark would send clients to the port of the frontend on the pod: the
    /// kernel then maps only the port of the virtual server, which has none (`ip_vs_sched_persist` in
    /// `net/netfilter/ipvs/ip_vs_core.c`).
    pub(super) const fn hashes_clients(&self) -> bool {
        self.outside.is_some() && self.service.session_affinity.is_some()
    }

    /// Where clients reach the port.
    pub(super) const fn listener(&self) -> FrontendKey {
        FrontendKey {
            address: self.frontend.address,
            protocol: self.port.protocol,
            port: self.number,
        }
    }

    /// What the Service claims: a node port on every node, and the address and port. At an address with node ports the
    /// two are the same.
    pub(super) fn claims(&self) -> Vec<FrontendKey> {
        let listener = self.listener();
        let is_shared = match self.frontend.kind {
            FrontendKind::ClusterIp => false,
            FrontendKind::NodePort => true,
            FrontendKind::ExternalIp | FrontendKind::LoadBalancer => {
                self.me.node_port_addresses.contains(&listener.address)
            }
        };
        let node_port = is_shared.then(|| listener.as_node_port());
        node_port.into_iter().chain([listener]).collect()
    }
}
