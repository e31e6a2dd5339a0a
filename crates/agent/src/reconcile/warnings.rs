//! What is wrong with this node: said once when it begins, shown as long as it lasts.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What a warning is about; a new report on a topic replaces the former one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// Sysctls and `kube-ipvs0`.
    Settings,
    /// The node's own addresses and the Service ranges.
    Addresses,
    /// Our routes.
    Routes,
    /// Our tables.
    Guard,
    /// The ownership record.
    Record,
    /// Connection tracking.
    Conntrack,
    /// Reading the kernel.
    Kernel,
}

/// The standing warnings.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    topics: BTreeMap<Topic, Vec<String>>,
    lines: Arc<[String]>,
}

impl Warnings {
    /// Replaces what is said of a topic, and logs what was not said before.
    pub(crate) fn set(&mut self, topic: Topic, lines: Vec<String>) {
        let before = self.topics.remove(&topic).unwrap_or_default();
        if before == lines {
            if !lines.is_empty() {
                self.topics.insert(topic, lines);
            }
            return;
        }
        for line in lines.iter().filter(|line| !before.contains(line)) {
            tracing::warn!("{line}");
        }
        if !lines.is_empty() {
            self.topics.insert(topic, lines);
        }
        self.lines = self.topics.values().flatten().cloned().collect();
    }

    /// Everything that is said now.
    pub(crate) fn lines(&self) -> Arc<[String]> {
        Arc::clone(&self.lines)
    }
}
