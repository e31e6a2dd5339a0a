//! Publishes the ports that the agent itself opens for Services.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use topology_core::health_check::HealthCheck;
use topology_core::model::{Family, Frontend, ObjectName};

use super::reconciler::Reconciler;
use crate::service_health;

/// The desired ports of one Service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentPorts {
    /// Where load balancers ask, with the number of local endpoints.
    pub(crate) health: BTreeMap<SocketAddr, usize>,
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// The ports for a Service.
    pub(super) fn agent_ports(&self, service: &ObjectName) -> AgentPorts {
        let snapshot = self.index.snapshot();
        let object = snapshot.service(service);
        let check = object.and_then(|object| HealthCheck::of(snapshot, object, &self.me.node));
        let sockets = |check| service_health::sockets(&check, &self.health_addresses());
        AgentPorts {
            health: check.map(sockets).unwrap_or_default(),
        }
    }

    /// The addresses where health checks are answered: those of node ports (KP-HC-13). An unspecified address stands for
    /// all of its family.
    fn health_addresses(&self) -> BTreeSet<IpAddr> {
        let config = &self.config.node_port_addresses;
        let of_family = |family| -> BTreeSet<IpAddr> {
            if config.selects_all(family) {
                return [Frontend::node_port(family).address].into();
            }
            let selected = self.me.node_port_addresses.iter().copied();
            selected.filter(|ip| Family::of(*ip) == family).collect()
        };
        let families = [Family::V4, Family::V6].into_iter();
        families.flat_map(of_family).collect()
    }

    /// Opens, changes and closes the ports of Services that changed.
    pub(super) fn publish_ports(&mut self) {
        for service in self.desired.take_changed_ports() {
            let desired = self.desired.service(&service);
            let AgentPorts { health } = desired
                .map(|desired| desired.ports.clone())
                .unwrap_or_default();
            self.health_ports.replace(&service, health);
        }
    }
}
