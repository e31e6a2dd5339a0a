//! Names that wait for a plan, each once.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

use super::planned::Planned;
use crate::state::write::Write;

/// First in, first out. A name that must wait, or whose write is not recorded yet, goes to the end.
#[derive(Debug)]
pub(super) struct Queue<T> {
    names: VecDeque<T>,
    queued: HashSet<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            names: VecDeque::new(),
            queued: HashSet::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Queue<T> {
    pub(super) fn push(&mut self, name: T) {
        if self.queued.insert(name.clone()) {
            self.names.push_back(name);
        }
    }

    /// Plans names until there are `most` writes. A name leaves the queue when its object is as desired.
    pub(super) fn take_writes(&mut self, most: usize, plan: impl Fn(&T) -> Planned) -> Vec<Write> {
        let mut writes = Vec::new();
        for _ in 0..self.names.len() {
            if writes.len() >= most {
                break;
            }
            let Some(name) = self.names.pop_front() else {
                break;
            };
            match plan(&name) {
                Planned::Nothing => drop(self.queued.remove(&name)),
                Planned::Wait => self.names.push_back(name),
                Planned::Write(write) => {
                    writes.push(write);
                    self.names.push_back(name);
                }
            }
        }
        writes
    }
}
