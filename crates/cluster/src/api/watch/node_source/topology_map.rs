//! Stores the Nodes of `TopologyMap` objects, and checks whether these can replace the Nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use topology_core::model::Node;

use super::label_usage::LabelUsage;
use crate::convert::NodeMap;
use crate::object::ObjectKey;
use crd::REQUIRED_KEYS;

/// Which Nodes are read while TopologyMaps may replace them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeScope {
    /// Only the program's own Node; the others come from TopologyMaps.
    Own,
    All,
}

/// Whether TopologyMaps can replace the Nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MapReadiness {
    /// They are not listed yet.
    Unknown,
    Ready,
    Missing(MapGap),
}

/// Why TopologyMaps cannot replace the Nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MapGap {
    Map,
    /// The API server refuses to serve them.
    Access,
    /// The TopologyMap of this name is not valid.
    Unusable(Arc<str>),
    /// The agent's own Node is missing, so they are out of date.
    OwnNode(Arc<str>),
    Label {
        key: Arc<str>,
        /// The object that uses it; `None` for the labels that every TopologyMap must have.
        user: Option<ObjectKey>,
    },
}

#[derive(Debug)]
pub(in crate::api::watch) struct TopologyMaps {
    own: Arc<str>,
    pub(in crate::api::watch) node_scope: NodeScope,
    pub(in crate::api::watch) readiness: MapReadiness,
    /// The Nodes of each TopologyMap by its name; `None` if it is not valid.
    maps: BTreeMap<Arc<str>, Option<NodeMap>>,
    listed: bool,
    refused: bool,
}

impl TopologyMaps {
    pub(in crate::api::watch) fn new(own: Arc<str>) -> Self {
        Self {
            own,
            node_scope: NodeScope::Own,
            readiness: MapReadiness::Unknown,
            maps: BTreeMap::new(),
            listed: false,
            refused: false,
        }
    }

    /// The name of the agent's own Node, which is never taken from a TopologyMap.
    pub(in crate::api::watch) fn own(&self) -> &Arc<str> {
        &self.own
    }

    /// The names of all Nodes in the TopologyMaps.
    pub(in crate::api::watch) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let maps = self.maps.values().flatten();
        maps.flat_map(|map| map.nodes.keys())
    }

    pub(in crate::api::watch) fn node(&self, name: &str) -> Option<&Node> {
        let mut maps = self.maps.values().flatten();
        maps.find_map(|map| map.nodes.get(name))
    }

    /// Stores a TopologyMap. Returns the Nodes that changed.
    pub(in crate::api::watch) fn put(
        &mut self,
        name: &Arc<str>,
        map: Option<NodeMap>,
    ) -> BTreeSet<Arc<str>> {
        let before = self.maps.insert(Arc::clone(name), map).flatten();
        let now = self.maps.get(name).and_then(Option::as_ref);
        differing(before.as_ref(), now)
    }

    /// Removes a TopologyMap. Returns its Nodes.
    pub(in crate::api::watch) fn remove(&mut self, name: &str) -> BTreeSet<Arc<str>> {
        let before = self.maps.remove(name).flatten();
        differing(before.as_ref(), None)
    }

    pub(in crate::api::watch) fn listed(&mut self) {
        self.listed = true;
    }

    /// Records whether the API server refuses to serve TopologyMaps.
    pub(in crate::api::watch) fn set_refused(&mut self, refused: bool) {
        self.refused = refused;
    }

    /// Checks whether the TopologyMaps can replace the Nodes, with all labels in use.
    pub(in crate::api::watch) fn check(&self, label_usage: &LabelUsage) -> MapReadiness {
        if self.refused {
            return MapReadiness::Missing(MapGap::Access);
        }
        if !self.listed {
            return MapReadiness::Unknown;
        }
        self.gap(label_usage)
            .map_or(MapReadiness::Ready, MapReadiness::Missing)
    }

    fn gap(&self, label_usage: &LabelUsage) -> Option<MapGap> {
        if self.maps.is_empty() {
            return Some(MapGap::Map);
        }
        if let Some((name, _)) = self.maps.iter().find(|(_, map)| map.is_none()) {
            return Some(MapGap::Unusable(Arc::clone(name)));
        }
        if let Some(key) = REQUIRED_KEYS.iter().find(|key| !self.has_label(key)) {
            let key = Arc::from(*key);
            return Some(MapGap::Label { key, user: None });
        }
        // A label of a tenant must not make all agents read all Nodes: the tenant's object waits
        // until every TopologyMap has the label.
        let mut used = label_usage.labels_of_administrators();
        if let Some((key, user)) = used.find(|(key, _)| !self.has_label(key)) {
            return Some(MapGap::Label {
                key: Arc::clone(key),
                user: Some(user.clone()),
            });
        }
        let own = self.node(&self.own);
        own.is_none()
            .then(|| MapGap::OwnNode(Arc::clone(&self.own)))
    }

    fn has_label(&self, key: &str) -> bool {
        let mut maps = self.maps.values().flatten();
        maps.all(|map| map.keys.iter().any(|known| **known == *key))
    }

    pub(in crate::api::watch) fn has_labels(&self, keys: &BTreeSet<Arc<str>>) -> bool {
        !self.maps.is_empty() && keys.iter().all(|key| self.has_label(key))
    }

    /// The labels that every TopologyMap has.
    pub(in crate::api::watch) fn keys(&self) -> BTreeSet<Arc<str>> {
        let first = self.maps.values().flatten().next();
        let keys = first.into_iter().flat_map(|map| &map.keys);
        keys.filter(|key| self.has_label(key)).cloned().collect()
    }
}

fn differing(before: Option<&NodeMap>, now: Option<&NodeMap>) -> BTreeSet<Arc<str>> {
    let maps = [before, now].into_iter().flatten();
    let names: BTreeSet<&Arc<str>> = maps.flat_map(|map| map.nodes.keys()).collect();
    let names = names.into_iter();
    names
        .filter(|name| node_in(before, name) != node_in(now, name))
        .cloned()
        .collect()
}

fn node_in<'m>(map: Option<&'m NodeMap>, name: &str) -> Option<&'m Node> {
    map?.nodes.get(name)
}

impl fmt::Display for MapGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Map => f.write_str("there is no TopologyMap"),
            Self::Access => f.write_str("the API server does not serve it"),
            Self::Unusable(name) => write!(f, "TopologyMap {name} cannot be used as it is"),
            Self::OwnNode(name) => write!(f, "it lacks this Node, {name}"),
            Self::Label { key, user: None } => write!(f, "it does not have the label {key}"),
            Self::Label {
                key,
                user: Some(user),
            } => write!(f, "it does not have the label {key}, which {user} uses"),
        }
    }
}

impl MapGap {
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Map | Self::OwnNode(_) => {
                "check that ipvs-topo-controller runs, and that the CRDs of ipvs-topo are installed"
            }
            Self::Access => {
                "apply the manifests of this version: their RBAC rules permit to read topologymaps"
            }
            Self::Unusable(_) => {
                "apply manifests/crds of this version; the controller then writes the map again"
            }
            Self::Label { .. } => {
                "check that ipvs-topo-controller runs: it adds the label by itself"
            }
        }
    }
}
