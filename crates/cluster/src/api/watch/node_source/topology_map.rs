//! The Nodes as the map tells of them, and whether it can stand for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use topology_core::model::Node;

use super::label_usage::LabelUsage;
use crate::convert::NodeMap;
use crate::object::ObjectKey;
use crd::KEYS_ALWAYS_TOLD;

/// What is read of the Nodes while a map may stand for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeScope {
    /// One's own Node alone; the map tells of the others.
    Own,
    /// All of them.
    All,
}

/// Whether the map can stand for the Nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MapReadiness {
    /// It was not read yet.
    Unknown,
    /// It can.
    Ready,
    /// It cannot.
    Missing(MapGap),
}

/// Why the map cannot stand for the Nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MapGap {
    /// There is none.
    Map,
    /// The server does not give it.
    Access,
    /// A part of it cannot be used as it is.
    Unusable(Arc<str>),
    /// It does not tell of one's own Node, so it is not of this time.
    OwnNode(Arc<str>),
    /// It does not tell a label that something goes by.
    Label {
        /// The label.
        key: Arc<str>,
        /// What goes by it; nothing for labels that every map tells.
        user: Option<ObjectKey>,
    },
}

/// What the map tells, and what is asked of it.
#[derive(Debug)]
pub(in crate::api::watch) struct TopologyMaps {
    own: Arc<str>,
    pub(in crate::api::watch) reading: NodeScope,
    pub(in crate::api::watch) readiness: MapReadiness,
    /// Its parts by name; nothing where one cannot be used.
    parts: BTreeMap<Arc<str>, Option<NodeMap>>,
    listed: bool,
    refused: bool,
}

impl TopologyMaps {
    pub(in crate::api::watch) fn new(own: Arc<str>) -> Self {
        Self {
            own,
            reading: NodeScope::Own,
            readiness: MapReadiness::Unknown,
            parts: BTreeMap::new(),
            listed: false,
            refused: false,
        }
    }

    /// The name of one's own Node, which the map never tells of.
    pub(in crate::api::watch) fn own(&self) -> &Arc<str> {
        &self.own
    }

    /// Every Node that it tells of, by name.
    pub(in crate::api::watch) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let parts = self.parts.values().flatten();
        parts.flat_map(|part| part.nodes.keys())
    }

    /// What it tells of a Node.
    pub(in crate::api::watch) fn node(&self, name: &str) -> Option<&Node> {
        let mut parts = self.parts.values().flatten();
        parts.find_map(|part| part.nodes.get(name))
    }

    /// Takes a part as it is now. Returns the Nodes of which it tells something else than before.
    pub(in crate::api::watch) fn put(
        &mut self,
        name: &Arc<str>,
        part: Option<NodeMap>,
    ) -> BTreeSet<Arc<str>> {
        let before = self.parts.insert(Arc::clone(name), part).flatten();
        let now = self.parts.get(name).and_then(Option::as_ref);
        differing(before.as_ref(), now)
    }

    /// Forgets a part. Returns the Nodes that it told of.
    pub(in crate::api::watch) fn remove(&mut self, name: &str) -> BTreeSet<Arc<str>> {
        let before = self.parts.remove(name).flatten();
        differing(before.as_ref(), None)
    }

    /// Every part was named.
    pub(in crate::api::watch) fn listed(&mut self) {
        self.listed = true;
    }

    /// Nobody gives it, or somebody does again.
    pub(in crate::api::watch) fn refused(&mut self, refused: bool) {
        self.refused = refused;
    }

    /// Whether it can stand for the Nodes, for everything that goes by their labels.
    pub(in crate::api::watch) fn judge(&self, label_usage: &LabelUsage) -> MapReadiness {
        if self.refused {
            return MapReadiness::Missing(MapGap::Access);
        }
        if !self.listed {
            return MapReadiness::Unknown;
        }
        self.lack(label_usage)
            .map_or(MapReadiness::Ready, MapReadiness::Missing)
    }

    fn lack(&self, label_usage: &LabelUsage) -> Option<MapGap> {
        if self.parts.is_empty() {
            return Some(MapGap::Map);
        }
        if let Some((name, _)) = self.parts.iter().find(|(_, part)| part.is_none()) {
            return Some(MapGap::Unusable(Arc::clone(name)));
        }
        if let Some(key) = KEYS_ALWAYS_TOLD.iter().find(|key| !self.tells(key)) {
            let key = Arc::from(*key);
            return Some(MapGap::Label { key, user: None });
        }
        // What tenants use does not make all agents read all Nodes: it waits until the map tells it.
        let mut used = label_usage.labels_of_administrators();
        if let Some((key, user)) = used.find(|(key, _)| !self.tells(key)) {
            return Some(MapGap::Label {
                key: Arc::clone(key),
                user: Some(user.clone()),
            });
        }
        let own = self.node(&self.own);
        own.is_none()
            .then(|| MapGap::OwnNode(Arc::clone(&self.own)))
    }

    /// Whether every part tells a label.
    fn tells(&self, key: &str) -> bool {
        let mut parts = self.parts.values().flatten();
        parts.all(|part| part.keys.iter().any(|told| **told == *key))
    }

    /// Whether every part tells all of these.
    pub(in crate::api::watch) fn tells_all(&self, keys: &BTreeSet<Arc<str>>) -> bool {
        !self.parts.is_empty() && keys.iter().all(|key| self.tells(key))
    }

    /// The labels that every part tells.
    pub(in crate::api::watch) fn keys(&self) -> BTreeSet<Arc<str>> {
        let first = self.parts.values().flatten().next();
        let keys = first.into_iter().flat_map(|part| &part.keys);
        keys.filter(|key| self.tells(key)).cloned().collect()
    }
}

fn differing(before: Option<&NodeMap>, now: Option<&NodeMap>) -> BTreeSet<Arc<str>> {
    let names = |part: Option<&NodeMap>| -> Vec<Arc<str>> {
        let nodes = part.into_iter().flat_map(|part| part.nodes.keys());
        nodes.cloned().collect()
    };
    let node = |part: Option<&NodeMap>, name: &str| part?.nodes.get(name).cloned();
    names(before)
        .into_iter()
        .chain(names(now))
        .filter(|name| node(before, name) != node(now, name))
        .collect()
}

impl fmt::Display for MapGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Map => f.write_str("there is no TopologyMap"),
            Self::Access => f.write_str("the API server does not give it"),
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
    /// What helps.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Map | Self::OwnNode(_) => {
                "see whether ipvs-topo-controller runs, and whether our CRDs are installed"
            }
            Self::Access => {
                "apply manifests/base of this version, whose rules let agents read topologymaps"
            }
            Self::Unusable(_) => {
                "apply manifests/crds of this version; the controller writes it again"
            }
            Self::Label { .. } => {
                "see whether ipvs-topo-controller runs, which adds the label by itself"
            }
        }
    }
}
