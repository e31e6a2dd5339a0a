//! Defines the size of a generated cluster, and the names of its nodes, Services and endpoints.

use std::net::Ipv4Addr;

use guest_wire::ServiceType;

/// Kubernetes' default `--max-endpoints-per-slice`.
pub const ENDPOINTS_PER_SLICE: usize = 100;
/// The port every generated Service listens on.
pub const SERVICE_PORT: u16 = 80;
/// The node port of the first generated Service. 10,000 of them end below the ports of outgoing connections (32768).
pub const FIRST_NODE_PORT: u16 = 20_000;
/// The port every generated endpoint listens on.
pub const ENDPOINT_PORT: u16 = 8080;
/// Holds the ClusterIP of every generated Service.
pub const SERVICE_CIDR: &str = "10.96.0.0/12";
/// The namespace of every generated Service.
pub const NAMESPACE: &str = "load";

/// First ClusterIP; the addresses below it are usually those of `kubernetes` and `kube-dns`.
const FIRST_CLUSTER_IP: u32 = u32::from_be_bytes([10, 96, 0, 16]);
/// First pod address; pods are numbered through the whole cluster, as in one address pool.
const FIRST_POD_IP: u32 = u32::from_be_bytes([10, 128, 0, 2]);
/// First node address.
const FIRST_NODE_IP: u32 = u32::from_be_bytes([172, 16, 0, 1]);
/// First load balancer address, in the range for benchmarks (RFC 2544).
const FIRST_LOAD_BALANCER_IP: u32 = u32::from_be_bytes([198, 18, 0, 1]);

/// The fields that are printed for each object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Only the fields that affect decisions.
    #[default]
    Lean,
    /// All fields of `kubectl get -o yaml`: uids, resource versions, owners, pod references.
    Full,
}

/// The size and policy of a generated cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of Services; each has one ClusterIP and one TCP port.
    pub services: u32,
    /// Their type. Types other than `ClusterIP` allow at most 45,535 Services.
    pub service_type: ServiceType,
    /// Number of endpoints of each Service, all ready.
    pub endpoints: u32,
    /// Number of nodes; endpoints are spread over them pseudo-randomly. At least 1.
    pub nodes: u32,
    /// Number of zones; node `i` is in zone `i mod zones`. At least 1.
    pub zones: u32,
    /// Number of racks; node `i` is in rack `i mod racks`. None if 0.
    pub racks: u32,
    /// Value of the annotation `topology.ipvs-topo.io/weights` on every Service, if any.
    pub weights: Option<String>,
    /// The fields that are printed for each object.
    pub detail: Detail,
}

/// A generated node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// `node-0001` and so on.
    pub name: String,
    /// The zone it is in.
    pub zone: String,
    /// The rack it is in, if there are racks.
    pub rack: Option<String>,
    /// Its InternalIP.
    pub address: Ipv4Addr,
}

/// A generated Service with its endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRecord {
    /// `svc-00001` and so on.
    pub name: String,
    /// Its ClusterIP.
    pub cluster_ip: Ipv4Addr,
    /// Its node port, if its type has one.
    pub node_port: Option<u16>,
    /// Its load balancer address, if its type has one.
    pub load_balancer_ip: Option<Ipv4Addr>,
    /// Its endpoints; a caller may remove some before printing.
    pub endpoints: Vec<EndpointRecord>,
}

/// A generated endpoint: ready, serving, not terminating.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointRecord {
    /// The pod's address.
    pub address: Ipv4Addr,
    /// The node that the pod runs on.
    pub node: String,
    /// The zone of that node.
    pub zone: String,
}

impl Default for Shape {
    /// 1,000 Services of 10 endpoints on 100 nodes in 3 zones, without a policy.
    fn default() -> Self {
        Self {
            services: 1_000,
            service_type: ServiceType::ClusterIp,
            endpoints: 10,
            nodes: 100,
            zones: 3,
            racks: 0,
            weights: None,
            detail: Detail::Lean,
        }
    }
}

impl Shape {
    /// Node number `index`, counted from 0.
    pub fn node(&self, index: u32) -> NodeRecord {
        NodeRecord {
            name: format!("node-{:04}", index + 1),
            zone: format!("zone-{}", index % self.zones.max(1) + 1),
            rack: index
                .checked_rem(self.racks)
                .map(|rack| format!("rack-{}", rack + 1)),
            address: Ipv4Addr::from_bits(FIRST_NODE_IP + index),
        }
    }

    /// Service number `index`, counted from 0.
    pub fn service(&self, index: u32) -> ServiceRecord {
        let node_port = u16::try_from(u32::from(FIRST_NODE_PORT) + index).ok();
        let load_balancer_ip = Ipv4Addr::from_bits(FIRST_LOAD_BALANCER_IP + index);
        let service_type = self.service_type;
        ServiceRecord {
            name: format!("svc-{:05}", index + 1),
            cluster_ip: Ipv4Addr::from_bits(FIRST_CLUSTER_IP + index),
            node_port: node_port.filter(|_| service_type != ServiceType::ClusterIp),
            load_balancer_ip: (service_type == ServiceType::LoadBalancer)
                .then_some(load_balancer_ip),
            endpoints: (0..self.endpoints)
                .map(|nth| self.endpoint(index * self.endpoints + nth))
                .collect(),
        }
    }

    /// The endpoint with this number, counted through all Services.
    fn endpoint(&self, number: u32) -> EndpointRecord {
        let node = self.node(scatter(number) % self.nodes.max(1));
        EndpointRecord {
            address: Ipv4Addr::from_bits(FIRST_POD_IP + number),
            node: node.name,
            zone: node.zone,
        }
    }
}

/// Spreads neighbouring numbers evenly over all numbers: the finaliser of MurmurHash3.
fn scatter(number: u32) -> u32 {
    let mut hash = number.wrapping_add(0x9e37_79b9);
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn addresses_of_pods_and_services_are_unique_and_apart() {
        let shape = Shape {
            services: 500,
            endpoints: 20,
            ..Shape::default()
        };
        let services: Vec<_> = (0..500).map(|index| shape.service(index)).collect();
        let vips: BTreeSet<_> = services.iter().map(|service| service.cluster_ip).collect();
        let pods: BTreeSet<_> = services
            .iter()
            .flat_map(|service| service.endpoints.iter().map(|endpoint| endpoint.address))
            .collect();
        assert_eq!(vips.len(), 500);
        assert_eq!(pods.len(), 10_000);
        assert!(vips.is_disjoint(&pods));
    }

    #[test]
    fn endpoints_fall_evenly_on_the_zones() {
        let shape = Shape::default();
        let mut hits = [0_u32; 3];
        for number in 0..9_000 {
            let zone = shape.endpoint(number).zone;
            let index: usize = zone.trim_start_matches("zone-").parse().unwrap();
            hits[index - 1] += 1;
        }
        // 100 nodes in 3 zones: the first zone has 34 of them.
        assert!(
            hits.iter().all(|hits| (2_700..=3_300).contains(hits)),
            "{hits:?}"
        );
    }
}
