//! Finds the Services and Nodes of an address.

use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use topology_core::model::{FrontendKind, ObjectName};
use topology_core::snapshot::Snapshot;

/// A use of an address by a Service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AddressUser {
    pub(crate) service: ObjectName,
    /// The Node of the endpoint, if the slice names one; `None` for a cluster IP.
    pub(crate) node: Option<Arc<str>>,
    pub(crate) is_cluster_ip: bool,
}

/// The Services of cluster IPs and endpoints.
#[derive(Debug, Default)]
pub(crate) struct AddressIndex {
    users: FxHashMap<IpAddr, SmallVec<[AddressUser; 1]>>,
    of_service: FxHashMap<ObjectName, Vec<IpAddr>>,
}

impl AddressIndex {
    /// Reads the addresses of a Service again.
    pub(crate) fn update(&mut self, snapshot: &Snapshot, name: &ObjectName) {
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
        let frontends = service.frontends.iter();
        for frontend in frontends.filter(|frontend| frontend.kind == FrontendKind::ClusterIp) {
            add(frontend.address, None, true);
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
    pub(crate) fn users(&self, address: IpAddr) -> &[AddressUser] {
        self.users.get(&address).map_or(&[], |users| users)
    }

    /// The Node of an endpoint with this address.
    pub(crate) fn node_of(&self, address: IpAddr) -> Option<&Arc<str>> {
        let mut users = self.users(address).iter();
        users.find_map(|user| user.node.as_ref())
    }
}
