//! The virtual servers of a Service, without endpoints: one for each port and address, and one for each port and family
//! whose outside clients get other endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use topology_core::model::{Family, FrontendKind, Service, ServicePort, TrafficPolicy};
use topology_core::resolve::ResolvedServer;
use topology_core::snapshot::FrontendKey;
use topology_core::virtual_server::VirtualServerKey;

use crate::cluster::Cluster;

/// The packets of a virtual server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Packets {
    /// Those to an address.
    To(FrontendKey),
    /// Those of outside clients to these addresses. The mark itself may be any.
    OfOutsideClients(BTreeSet<FrontendKey>),
}

/// A virtual server without endpoints.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Server {
    pub(crate) port: String,
    pub(crate) kind: FrontendKind,
    pub(crate) clients: &'static str,
    pub(crate) packets: Packets,
}

impl Server {
    /// A virtual server of the engine under test.
    pub(crate) fn of(resolved: &ResolvedServer) -> Self {
        let packets = match resolved.server.key {
            VirtualServerKey::Address {
                protocol,
                address,
                port,
            } => {
                assert_eq!(resolved.marked, [], "an address has no mark");
                Packets::To(FrontendKey {
                    address,
                    protocol,
                    port,
                })
            }
            VirtualServerKey::FirewallMark { family, .. } => {
                let marked: BTreeSet<_> = resolved.marked.iter().copied().collect();
                assert!(
                    marked.iter().all(|one| Family::of(one.address) == family),
                    "{marked:?} are of {family}"
                );
                assert_eq!(marked.len(), resolved.marked.len(), "no frontend twice");
                Packets::OfOutsideClients(marked)
            }
        };
        Self {
            port: resolved.port_name.to_string(),
            kind: resolved.kind,
            clients: resolved.clients.as_str(),
            packets,
        }
    }

    /// Virtual servers of `service` on the node, sorted. The same address and port twice is one virtual server.
    pub(crate) fn all(cluster: &Cluster, service: &Service) -> Vec<Self> {
        let mut all = Vec::new();
        let mut seen = BTreeSet::new();
        for port in &service.ports {
            let mut outside: BTreeMap<bool, (FrontendKind, BTreeSet<FrontendKey>)> =
                BTreeMap::new();
            for (kind, address, number) in places(cluster, service, port) {
                let key = FrontendKey {
                    address,
                    protocol: port.protocol,
                    port: number,
                };
                if !seen.insert(key) {
                    continue;
                }
                let splits = kind != FrontendKind::ClusterIp
                    && service.external_traffic_policy == TrafficPolicy::Local;
                all.push(Self {
                    port: port.name.to_string(),
                    kind,
                    clients: if splits { "inside" } else { "all" },
                    packets: Packets::To(key),
                });
                if splits {
                    let of_family = outside.entry(address.is_ipv6());
                    let (_, keys) = of_family.or_insert((kind, BTreeSet::new()));
                    keys.insert(key);
                }
            }
            all.extend(outside.into_values().map(|(kind, keys)| Self {
                port: port.name.to_string(),
                kind,
                clients: "outside",
                packets: Packets::OfOutsideClients(keys),
            }));
        }
        all.sort();
        all
    }
}

/// Where clients reach `port`: kind, address and port number.
fn places(
    cluster: &Cluster,
    service: &Service,
    port: &ServicePort,
) -> Vec<(FrontendKind, IpAddr, u16)> {
    let mut places = Vec::new();
    for frontend in &service.frontends {
        if frontend.kind != FrontendKind::NodePort {
            places.push((frontend.kind, frontend.address, port.port.get()));
            continue;
        }
        for address in &cluster.node_port_addresses {
            let same_family = address.is_ipv4() == frontend.address.is_ipv4();
            if let Some(number) = port.node_port.filter(|_| same_family) {
                places.push((frontend.kind, *address, number.get()));
            }
        }
    }
    places
}

/// Checks firewall marks: both families of a port have the same mark, and no other port has it.
pub(crate) fn marks_are_unique(servers: &[ResolvedServer]) -> Result<(), String> {
    let mut by_mark: BTreeMap<u32, (&str, BTreeSet<Family>)> = BTreeMap::new();
    let mut by_port: BTreeMap<&str, u32> = BTreeMap::new();
    for resolved in servers {
        let VirtualServerKey::FirewallMark { mark, family } = resolved.server.key else {
            continue;
        };
        let (port, families) = by_mark
            .entry(mark)
            .or_insert((&resolved.port_name, BTreeSet::new()));
        if mark == 0 || **port != *resolved.port_name || !families.insert(family) {
            return Err(format!("mark {mark} of {port} is used twice"));
        }
        if *by_port.entry(&resolved.port_name).or_insert(mark) != mark {
            return Err(format!("{port} has two marks"));
        }
    }
    Ok(())
}
