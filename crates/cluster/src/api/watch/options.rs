//! Says what of the cluster is watched, and how far a relist is believed.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::clock::Clock;

/// Where the agent reads Nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NodeSource {
    /// From the Nodes themselves, with all their labels: for callers that may read every label.
    #[default]
    Whole,
    /// From the Nodes themselves; of all but one's own only the labels are kept that something goes by.
    Nodes {
        /// Its name.
        own: Arc<str>,
    },
    /// From `TopologyMap` objects, as long as they tell enough; only one's own Node is read itself.
    Map {
        /// Its name.
        own: Arc<str>,
    },
}

/// What is watched, and how far a relist is believed.
#[derive(Debug, Clone, Default)]
pub struct Following {
    /// Where Nodes are read.
    pub nodes: NodeSource,
    /// Whether a list that was read again is believed at once, whatever it lacks.
    pub relists: Relists,
    /// The labels that annotations of Services may use besides those that are always known; any if it is not said.
    pub annotation_keys: Option<BTreeSet<Arc<str>>>,
    /// Judges what depends on the time.
    pub clock: Clock,
}

/// What is done where a list that was read again lacks more than half of what is known of its kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Relists {
    /// What it lacks stays until a second list, a minute later, lacks it too.
    #[default]
    Confirm,
    /// What it lacks is gone.
    Believe,
}

impl From<NodeSource> for Following {
    fn from(nodes: NodeSource) -> Self {
        Self {
            nodes,
            ..Self::default()
        }
    }
}
