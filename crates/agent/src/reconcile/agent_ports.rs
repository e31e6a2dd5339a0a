//! Publishes the ports that the agent itself opens for Services.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use topology_core::health_check::HealthCheck;
use topology_core::model::{Family, Frontend, ObjectName, Protocol, Service, ServicePort};
use topology_core::snapshot::FrontendKey;
use topology_core::virtual_server::VirtualServerKey;

use super::desired::{AgentPorts, DesiredService};
use super::reconciler::Reconciler;
use crate::service_health;

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// The ports for a Service with these virtual servers.
    pub(super) fn agent_ports(&self, service: &ObjectName, desired: &DesiredService) -> AgentPorts {
        let snapshot = self.index.snapshot();
        let Some(service) = snapshot.service(service) else {
            return AgentPorts::default();
        };
        let check = HealthCheck::of(snapshot, service, &self.me.node);
        let sockets = |check| service_health::sockets(&check, &self.health_addresses());
        AgentPorts {
            health: check.map(sockets).unwrap_or_default(),
            loopback: self.loopback_sockets(service, desired),
        }
    }

    /// The loopback sockets of TCP node ports. Without a cluster IP of the socket's family the other one serves it.
    fn loopback_sockets(
        &self,
        service: &Service,
        desired: &DesiredService,
    ) -> BTreeMap<SocketAddr, SocketAddr> {
        let mut sockets = BTreeMap::new();
        let loopback = self.loopback_addresses();
        if loopback.is_empty() {
            return sockets;
        }
        let tcp = |port: &&ServicePort| port.protocol == Protocol::Tcp;
        for port in service.ports.iter().filter(tcp) {
            let Some(number) = port.node_port.map(u16::from) else {
                continue;
            };
            let mut targets = self.targets(service, port, number, desired);
            for &ip in &loopback {
                targets.sort_by_key(|target| Family::of(target.ip()) != Family::of(ip));
                let target = targets.first().copied();
                sockets.extend(target.map(|target| (SocketAddr::new(ip, number), target)));
            }
        }
        sockets
    }

    /// The loopback addresses that `localhost` selects.
    fn loopback_addresses(&self) -> Vec<IpAddr> {
        if !self.config.node_port_addresses.has_localhost() {
            return Vec::new();
        }
        let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
        let v6 = self.addresses.link_of(v6).map(|_| v6);
        let loopback = [Some(Ipv4Addr::LOCALHOST.into()), v6];
        loopback.into_iter().flatten().collect()
    }

    /// The cluster IPs with the port that serve the node port `number`, which may belong to another Service.
    fn targets(
        &self,
        service: &Service,
        port: &ServicePort,
        number: u16,
        desired: &DesiredService,
    ) -> Vec<SocketAddr> {
        let owns_node_port = |ip: IpAddr| {
            let node_port = FrontendKey {
                address: Frontend::node_port(Family::of(ip)).address,
                protocol: port.protocol,
                port: number,
            };
            self.index.snapshot().owner_of(&node_port) == Some(&service.name)
        };
        let is_programmed = |ip: IpAddr| {
            desired.keys.contains(&VirtualServerKey::Address {
                protocol: port.protocol,
                address: ip,
                port: port.port.get(),
            })
        };
        service
            .cluster_ips()
            .filter(|ip| owns_node_port(*ip) && is_programmed(*ip))
            .map(|ip| SocketAddr::new(ip, port.port.get()))
            .collect()
    }

    /// The addresses where health checks are answered: those of node ports (KP-HC-13). An unspecified address stands for
    /// all of its family.
    fn health_addresses(&self) -> BTreeSet<IpAddr> {
        let config = &self.config.node_port_addresses;
        let loopback = self.loopback_addresses();
        let of_family = |family| -> BTreeSet<IpAddr> {
            if config.selects_all(family) {
                return [Frontend::node_port(family).address].into();
            }
            let selected = self.me.node_port_addresses.iter().chain(&loopback);
            let selected = selected.copied();
            selected.filter(|ip| Family::of(*ip) == family).collect()
        };
        let families = [Family::V4, Family::V6].into_iter();
        families.flat_map(of_family).collect()
    }

    /// Opens, changes and closes the ports of Services that changed.
    pub(super) fn publish_ports(&mut self) {
        for service in self.desired.take_changed_ports() {
            let desired = self.desired.service(&service);
            let AgentPorts { health, loopback } = desired
                .map(|desired| desired.ports.clone())
                .unwrap_or_default();
            self.health_ports.replace(&service, health);
            self.loopback_ports.replace(&service, loopback);
        }
    }
}
