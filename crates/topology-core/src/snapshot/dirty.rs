//! Computes which Services a change affects.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::deciders::{AffectedPolicies, Deciders};
use super::marks::{Changes, Dirty, Marks, NodeChange};
use super::{ServiceAndSlices, Snapshot, api_servers, drained};
use crate::model::{Endpoint, Service};
use crate::policy::ZONE;

impl Snapshot {
    /// Takes the changes since the last call that affect the node `me`.
    pub fn take_dirty(&mut self, me: &str) -> Dirty {
        let marks = self.take_marks();
        marks.dirty(self, me)
    }

    /// Takes the changes since the last call, of either method, for all nodes.
    pub fn take_changes(&mut self) -> Changes {
        let marks = self.take_marks();
        let nodes = marks.is_wide(self);
        Changes {
            services: marks.services,
            nodes,
        }
    }

    fn take_marks(&mut self) -> Marks {
        self.marks.services(self.claims.take_reassigned());
        std::mem::take(&mut self.marks)
    }
}

impl Marks {
    /// The effect of the changes on the node `me`.
    fn dirty(self, snapshot: &Snapshot, me: &str) -> Dirty {
        let mine = self.nodes.get(me);
        let moves = |change: &NodeChange| change.pod_ranges || !change.addresses.is_empty();
        let routes = self.ranges || mine.is_some_and(moves);
        let mut services = BTreeSet::new();
        if self.is_wide(snapshot) {
            let policies = AffectedPolicies::of(snapshot, &self, me);
            let all = snapshot.services.iter();
            let touched = all.filter(|(_, entry)| self.affects(snapshot, me, &policies, entry));
            services.extend(touched.map(|(name, _)| name.clone()));
        }
        services.extend(self.services);
        Dirty { services, routes }
    }

    /// Whether something changed that is not of one Service, so that any Service may be affected.
    fn is_wide(&self, snapshot: &Snapshot) -> bool {
        let has_cap = snapshot.tally(ZONE).is_some();
        let mut nodes = self.nodes.values();
        nodes.any(|change| change.matters(has_cap))
            || !self.levels.is_empty()
            || !self.drains.is_empty()
            || !self.api_servers.is_empty()
            || self.ranges
    }

    /// Whether a change that is not of one Service can change the result for `entry` on the node `me`.
    fn affects<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        me: &str,
        affected: &AffectedPolicies<'a>,
        entry: &'a ServiceAndSlices,
    ) -> bool {
        let Some(service) = &entry.service else {
            return false;
        };
        let policies = Deciders::of(snapshot, affected, &self.drains, service);
        let drained = |drain| drained::touches(drain, snapshot, me, &policies, entry);
        let mine = self.nodes.get(me);
        let mut nodes = self.nodes.values();
        nodes.any(|change| policies.count_on(change))
            || self.affects_address(snapshot, me, service)
            || mine.is_some_and(|change| moves_this_node(change, &policies, entry))
            || moves_endpoint(&self.nodes, &policies, entry)
            || policies.use_level(&self.levels, self.any_level)
            || self.drains.iter().any(drained)
            || api_servers::affects(&self.api_servers, entry)
    }

    /// Whether a Node has started or stopped to keep an address from the Service on the node `me`. Inside unchanged
    /// Service ranges the addresses of other Nodes do not count.
    fn affects_address(&self, snapshot: &Snapshot, me: &str, service: &Service) -> bool {
        let changed = |address: &IpAddr| {
            let counts = self.ranges || !snapshot.is_in_service_cidr(*address);
            let mut nodes = self.nodes.iter();
            nodes.any(|(name, change)| {
                (counts || **name == *me) && change.addresses.contains(address)
            })
        };
        let claimed =
            |address: &IpAddr| self.ranges && snapshot.node_with_address(*address).is_some();
        let mut addresses = service.frontends.iter().map(|frontend| frontend.address);
        addresses.any(|address| changed(&address) || claimed(&address))
    }
}

/// Whether the location of this node changed.
fn moves_this_node(change: &NodeChange, policies: &Deciders<'_>, entry: &ServiceAndSlices) -> bool {
    let hinted = |endpoint: &Endpoint| endpoint.hints.is_some();
    let endpoints = || entry.slices.iter().flat_map(|slice| &slice.endpoints);
    (!policies.is_empty() && change.existence)
        || policies.use_label_of(change)
        || policies.select_by(change)
        || (change.labels.contains(ZONE) && endpoints().any(hinted))
}

/// Whether the location of the node of an endpoint changed.
fn moves_endpoint(
    nodes: &BTreeMap<Arc<str>, NodeChange>,
    policies: &Deciders<'_>,
    entry: &ServiceAndSlices,
) -> bool {
    let mut endpoints = entry.slices.iter().flat_map(|slice| &slice.endpoints);
    nodes.values().any(|change| policies.use_label_of(change))
        && endpoints.any(|endpoint| {
            let change = endpoint.node.as_ref().and_then(|node| nodes.get(node));
            change.is_some_and(|change| policies.use_label_of(change))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        EndpointSlice, Enforcement, Family, Frontend, Node, ObjectName, Protocol, Selector,
        ServicePort, SlicePort, TopologyPolicy,
    };
    use crate::policy::{Level, LevelKey, Mode, Policy, PolicySource};
    use crate::resolve::{Resolution, Viewpoint, resolve};

    const RACK: &str = "example.com/rack";

    /// The node `me`, another one with the cluster IP of the only Service, and an endpoint.
    fn snapshot() -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.set_node(Node::new("me"));
        snapshot.set_node(Node {
            addresses: vec!["10.96.0.10".parse().unwrap()],
            ..Node::new("other")
        });
        let port = ServicePort::new("http", Protocol::Tcp, 80.try_into().unwrap());
        let cluster_ip = Frontend::cluster_ip("10.96.0.10".parse().unwrap());
        snapshot.set_service(Service::new(name(), vec![cluster_ip], vec![port]));
        snapshot.set_slice(slice(ObjectName::new("t", "s-1"), "s", "10.244.0.1"));
        snapshot
    }

    fn name() -> ObjectName {
        ObjectName::new("t", "s")
    }

    fn slice(name: ObjectName, service: &str, address: &str) -> EndpointSlice {
        EndpointSlice {
            name,
            service: service.into(),
            family: Family::V4,
            ports: vec![SlicePort {
                name: "http".into(),
                protocol: Protocol::Tcp,
                port: 8080.try_into().unwrap(),
            }],
            endpoints: vec![Endpoint {
                address: address.parse().unwrap(),
                node: None,
                zone: None,
                ready: true,
                serving: true,
                terminating: false,
                hints: None,
            }],
            hostnames: BTreeMap::default(),
        }
    }

    fn resolved(snapshot: &Snapshot) -> Resolution {
        resolve(snapshot, &Viewpoint::new("me"), &name())
    }

    #[test]
    fn a_label_that_becomes_known_touches_the_services_of_its_policies() {
        let mut snapshot = snapshot();
        snapshot.remove_node("other");
        let racks = vec![Level::new(LevelKey::Label(RACK.into()), 100)];
        snapshot.set_policy(TopologyPolicy {
            namespace: None,
            name: "racks".into(),
            created: None,
            generation: 1,
            priority: 0,
            enforcement: Enforcement::Default,
            namespace_selector: Selector::default(),
            service_selector: Selector::default(),
            node_selector: Selector::default(),
            port_names: Vec::new(),
            policy: Policy::new(PolicySource::ClusterDefault, Mode::Hard, racks),
            owner_limits: None,
        });
        snapshot.set_unread_labels([Arc::from(RACK)].into());
        let refusals = |snapshot: &Snapshot| {
            let servers = resolved(snapshot).servers.into_iter();
            servers
                .filter(|server| server.decision.refusal.is_some())
                .count()
        };
        assert_eq!(refusals(&snapshot), 1);
        snapshot.take_dirty("me");
        snapshot.set_unread_labels(BTreeSet::new());
        assert_eq!(refusals(&snapshot), 0);
        assert_eq!(snapshot.take_dirty("me").services, [name()].into());
        snapshot.set_unread_labels(["unused".into()].into());
        assert!(snapshot.take_dirty("me").is_empty());
    }

    /// kubelets write the conditions of their Nodes all the time.
    #[test]
    fn d13_the_readiness_of_a_node_is_a_change_for_services_only_with_a_cap() {
        let is_wide = |cap: Option<u32>| {
            let mut snapshot = snapshot();
            let levels = vec![Level::new(LevelKey::Node, 1), Level::new(LevelKey::Any, 0)];
            let mut policy = Policy::new(PolicySource::Annotation, Mode::Weighted, levels);
            policy.max_overload = cap;
            let service = snapshot.service(&name()).unwrap().clone();
            snapshot.set_service(Service {
                policy: Some(policy.into()),
                ..service
            });
            snapshot.take_dirty("me");
            let node = snapshot.node("other").unwrap().clone();
            snapshot.set_node(Node {
                ready: !node.ready,
                leaving: true,
                ..node
            });
            let is_wide = snapshot.marks.is_wide(&snapshot);
            assert_eq!(snapshot.take_dirty("me").is_empty(), cap.is_none());
            is_wide
        };
        assert!(is_wide(Some(20)));
        assert!(!is_wide(None));
    }

    #[test]
    fn ranges_and_api_servers_are_changes_for_all_nodes() {
        let mut snapshot = snapshot();
        assert!(resolved(&snapshot).servers.is_empty());
        snapshot.take_changes();
        snapshot.set_service_cidrs(vec!["10.96.0.0/16".parse().unwrap()]);
        assert_eq!(resolved(&snapshot).servers.len(), 1);
        assert!(snapshot.take_changes().nodes);
        let kubernetes = ObjectName::new("default", "kubernetes-1");
        snapshot.set_slice(slice(kubernetes, "kubernetes", "192.0.2.1"));
        assert!(snapshot.take_changes().nodes);
        assert!(!snapshot.take_changes().nodes);
    }
}
