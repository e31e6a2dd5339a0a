//! Finds the Services that use an address, and the Node on which the address is.
//!
//! ```
//! use topology_core::address_index::{AddressIndex, AddressSource};
//! use topology_core::model::{Node, parse_range};
//! use topology_core::snapshot::Snapshot;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let range = parse_range("10.244.1.0/24")?;
//! let mut snapshot = Snapshot::default();
//! snapshot.set_node(Node { pod_cidrs: vec![range], ..Node::new("n1") });
//!
//! let index = AddressIndex::of(&snapshot);
//! let location = index.locate(&snapshot, "10.244.1.17".parse()?).ok_or("no Node")?;
//! assert_eq!(&**location.node_name, "n1");
//! assert_eq!(location.source, AddressSource::PodRange(range));
//! assert_eq!(index.locate(&snapshot, "10.244.2.17".parse()?), None);
//! # Ok(())
//! # }
//! ```

use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::model::{IpNetwork, Labels, Node, ObjectName};
use crate::snapshot::Snapshot;

/// The use of an address by a Service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressUser {
    /// The Service.
    pub service: ObjectName,
    /// The Node of the endpoint, if the slice names one; `None` for a cluster IP.
    pub node: Option<Arc<str>>,
    /// Whether the address is a cluster IP of the Service, and not an endpoint.
    pub is_cluster_ip: bool,
}

/// The Services of cluster IPs and endpoints. Nodes are in the [`Snapshot`] itself.
#[derive(Debug, Default)]
pub struct AddressIndex {
    users: FxHashMap<IpAddr, SmallVec<[AddressUser; 1]>>,
    of_service: FxHashMap<ObjectName, Vec<IpAddr>>,
}

/// The Node on which an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location<'a> {
    /// The name of the Node.
    pub node_name: &'a Arc<str>,
    /// The labels of the Node that the snapshot has; `None` if it does not have the Node.
    pub labels: Option<&'a Labels>,
    /// The Pod that has the address, if a `PodMap` has it; `None` for an address of a Node.
    pub pod: Option<&'a ObjectName>,
    /// The object that says so.
    pub source: AddressSource<'a>,
}

/// The object that says on which Node an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressSource<'a> {
    /// This range of `spec.podCIDRs` of the Node is the smallest around the address.
    PodRange(IpNetwork),
    /// The `PodMap` of the Node has the address.
    PodMap,
    /// The Node has the address: the node itself, or a pod on the host network.
    NodeAddress,
    /// An endpoint of this Service has the address.
    Endpoint(&'a ObjectName),
}

impl<'a> Location<'a> {
    fn on(node: &'a Node, source: AddressSource<'a>) -> Self {
        Self {
            node_name: &node.name,
            labels: Some(&node.labels),
            pod: None,
            source,
        }
    }

    fn on_named(
        snapshot: &'a Snapshot,
        node_name: &'a Arc<str>,
        source: AddressSource<'a>,
    ) -> Self {
        Self {
            node_name,
            labels: snapshot.node(node_name).map(|node| &node.labels),
            pod: None,
            source,
        }
    }
}

impl AddressIndex {
    /// The index of all Services.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut index = Self::default();
        for service in snapshot.services() {
            index.update(snapshot, &service.name);
        }
        index
    }

    /// Reads the addresses of a Service again. Call it for each of the changed Services.
    pub fn update(&mut self, snapshot: &Snapshot, name: &ObjectName) {
        self.remove(name);
        let Some(service) = snapshot.service(name) else {
            return;
        };
        let mut addresses = Vec::new();
        let mut add = |address, node: Option<&Arc<str>>, is_cluster_ip| {
            addresses.push(address);
            let users = self.users.entry(address).or_default();
            let user = AddressUser {
                service: name.clone(),
                node: node.cloned(),
                is_cluster_ip,
            };
            if let Err(at) = users.binary_search(&user) {
                users.insert(at, user);
            }
        };
        for address in service.cluster_ips() {
            add(address, None, true);
        }
        for endpoint in snapshot
            .slices(name)
            .iter()
            .flat_map(|slice| &slice.endpoints)
        {
            add(endpoint.address, endpoint.node.as_ref(), false);
        }
        addresses.shrink_to_fit();
        self.of_service.insert(name.clone(), addresses);
    }

    fn remove(&mut self, name: &ObjectName) {
        for address in self.of_service.remove(name).unwrap_or_default() {
            let Some(users) = self.users.get_mut(&address) else {
                continue;
            };
            users.retain(|user| user.service != *name);
            if users.is_empty() {
                self.users.remove(&address);
            }
        }
    }

    /// The uses of `address`, by Service.
    pub fn users(&self, address: IpAddr) -> &[AddressUser] {
        self.users.get(&address).map_or(&[], |users| users)
    }

    /// The Node on which `address` is. Of several objects that say so the first of [`AddressSource`] counts: kubelets
    /// write the addresses of their Nodes, and tenants write EndpointSlices, so neither must move Pods of other Nodes.
    pub fn locate<'a>(&'a self, snapshot: &'a Snapshot, address: IpAddr) -> Option<Location<'a>> {
        let pod = snapshot.pod_at(address);
        let by_pod_range = || {
            let (range, node) = snapshot.pod_range_around(address)?;
            let pod = pod.filter(|(_, on)| **on == node.name);
            Some(Location {
                pod: pod.map(|(pod, _)| pod),
                ..Location::on(node, AddressSource::PodRange(range))
            })
        };
        let by_pod_map = || {
            let (pod, node) = pod?;
            Some(Location {
                pod: Some(pod),
                ..Location::on_named(snapshot, node, AddressSource::PodMap)
            })
        };
        let by_node_address = || {
            let node = snapshot.node_with_address(address)?;
            Some(Location::on(node, AddressSource::NodeAddress))
        };
        by_pod_range()
            .or_else(by_pod_map)
            .or_else(by_node_address)
            .or_else(|| self.by_endpoint(snapshot, address))
    }

    /// Of several Services the first by name that names a Node counts.
    fn by_endpoint<'a>(&'a self, snapshot: &'a Snapshot, address: IpAddr) -> Option<Location<'a>> {
        let mut users = self.users(address).iter();
        let (node, service) = users.find_map(|user| Some((user.node.as_ref()?, &user.service)))?;
        let source = AddressSource::Endpoint(service);
        Some(Location::on_named(snapshot, node, source))
    }
}
