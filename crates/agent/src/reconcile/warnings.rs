//! Warnings about this node: logged once when they begin, shown as long as they last.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::node_warning::{NodeWarning, Topic};

#[derive(Debug, Default)]
pub(crate) struct Warnings {
    topics: BTreeMap<Topic, Vec<String>>,
    all: Arc<[NodeWarning]>,
}

impl Warnings {
    /// Replaces the warnings of a topic, and logs new ones.
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
        let warning = |(topic, text): (&Topic, &String)| NodeWarning {
            topic: *topic,
            text: text.clone(),
        };
        let topics = self.topics.iter();
        let lines = topics.flat_map(|(topic, lines)| lines.iter().map(move |line| (topic, line)));
        self.all = lines.map(warning).collect();
    }

    /// All current warnings.
    pub(crate) fn all(&self) -> Arc<[NodeWarning]> {
        Arc::clone(&self.all)
    }
}
