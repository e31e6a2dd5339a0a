//! Names that wait for a plan, each once.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use topology_core::model::ObjectName;

use super::planned::Planned;
use crate::state::write::Write;

/// Namespaces take turns, so many changes in one do not delay another. Within a namespace: first in, first out.
#[derive(Debug, Default)]
pub(super) struct NameQueue {
    /// Namespaces with names, the next one first.
    turns: VecDeque<Arc<str>>,
    names: BTreeMap<Arc<str>, VecDeque<ObjectName>>,
    queued: HashSet<ObjectName>,
}

impl NameQueue {
    pub(super) fn push(&mut self, name: ObjectName) {
        if !self.queued.insert(name.clone()) {
            return;
        }
        let names = self.names.entry(Arc::clone(&name.namespace)).or_default();
        if names.is_empty() {
            self.turns.push_back(Arc::clone(&name.namespace));
        }
        names.push_back(name);
    }

    fn pop(&mut self) -> Option<ObjectName> {
        let namespace = self.turns.pop_front()?;
        let names = self.names.get_mut(&namespace)?;
        let name = names.pop_front()?;
        if names.is_empty() {
            self.names.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        self.queued.remove(&name);
        Some(name)
    }

    /// Plans names until there are `most` writes. A name leaves the queue when its object is as desired.
    pub(super) fn take_writes(
        &mut self,
        most: usize,
        plan: impl Fn(&ObjectName) -> Planned,
    ) -> Vec<Write> {
        let (mut writes, mut unfinished) = (Vec::new(), Vec::new());
        while writes.len() < most
            && let Some(name) = self.pop()
        {
            match plan(&name) {
                Planned::Nothing => {}
                Planned::Wait => unfinished.push(name),
                Planned::Write(write) => {
                    writes.push(write);
                    unfinished.push(name);
                }
            }
        }
        for name in unfinished {
            self.push(name);
        }
        writes
    }
}
