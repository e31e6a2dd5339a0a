//! Options of a watch: the source of Nodes, the delivery of changes, and the handling of a relist that lacks many objects.

use std::sync::Arc;

use crate::clock::Clock;
use crate::{AllowLists, ServiceSelection};

/// Where Nodes are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NodeSource {
    /// From the Nodes, with all labels.
    #[default]
    Whole,
    /// From the Nodes. Of Nodes other than `own`, only the labels in use are kept.
    Nodes { own: Arc<str> },
    /// From `TopologyMap` objects, while these have all labels in use. Only the Node `own` is read
    /// itself.
    Map { own: Arc<str> },
}

/// The nodes whose clients the program decides for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientNodes {
    /// Its own node.
    #[default]
    Own,
    /// All nodes: each `nodeSelector` is compared with every Node.
    All,
}

#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    pub nodes: NodeSource,
    /// Whether a `TopologyMap` needs the labels of each `nodeSelector`.
    pub clients: ClientNodes,
    pub delivery: Delivery,
    pub relists: Relists,
    /// What Services may use.
    pub allowed: AllowLists,
    pub services: ServiceSelection,
    /// Checks objects that depend on the time, such as drains.
    pub clock: Clock,
}

/// When the receiver gets changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// A single change at once, and changes that follow within 100 ms together: within 250 ms while
    /// five or more arrive together. Fewer batches cost the receiver less.
    #[default]
    Gathered,
    /// Every change of a Service or its endpoints at once, and others gathered: one change of a Node
    /// can concern all Services.
    AtOnce,
}

/// Handles a relist that lacks more than half of the known objects of its resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Relists {
    /// Removes the missing objects once a second list, a minute later, lacks them too.
    #[default]
    Confirm,
    /// Removes the missing objects at once.
    Believe,
}

impl From<NodeSource> for WatchOptions {
    fn from(nodes: NodeSource) -> Self {
        Self {
            nodes,
            ..Self::default()
        }
    }
}

impl From<AllowLists> for WatchOptions {
    fn from(allowed: AllowLists) -> Self {
        Self {
            allowed,
            ..Self::default()
        }
    }
}
