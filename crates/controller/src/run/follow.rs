//! Follows one collection, or its part in a namespace, and sends its changes to the loop.

use std::collections::BTreeSet;
use std::time::Duration;

use kube_io::Connection;
use kube_io::list_watch::{Format, Resource, Watcher, WatcherChange};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use topology_core::model::ObjectName;

use super::confirmed_names::ConfirmedNames;
use crate::log_once::LogOnce;
use crate::state::{Collection, name_of};

#[cfg(test)]
mod tests;

/// A collection, or its part in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Followed {
    pub(super) collection: Collection,
    /// `None` for all namespaces.
    pub(super) namespace: Option<String>,
}

impl From<Collection> for Followed {
    fn from(collection: Collection) -> Self {
        Self {
            collection,
            namespace: None,
        }
    }
}

impl Followed {
    /// Whether it has the object, if the object is in its collection.
    pub(super) fn has(&self, name: &ObjectName) -> bool {
        let own = self.namespace.as_ref();
        own.is_none_or(|own| **own == *name.namespace)
    }
}

#[derive(Debug)]
pub(super) enum Update {
    Applied(Collection, Value),
    Deleted(Collection, ObjectName),
    /// A list is complete; the names of all objects.
    Listed(Followed, BTreeSet<ObjectName>),
    /// A request failed and is retried.
    Failed(Followed),
}

/// Follows until the receiver is dropped. If a list of Nodes does not have more than half of the
/// known Nodes, a second list after `confirm` must confirm it.
pub(super) async fn follow(
    connection: Connection,
    scope: Followed,
    resource: Resource,
    confirm: Duration,
    updates: mpsc::Sender<Update>,
) {
    let mut follower = CollectionFollower {
        source: Watcher::new(connection.clone(), resource),
        connection,
        resource,
        names: (scope.collection == Collection::Nodes).then(|| ConfirmedNames::new(confirm)),
        scope,
        listed: None,
        has_failed: false,
        log: LogOnce::default(),
    };
    loop {
        let change = follower.change().await;
        let Some(update) = follower.update(change) else {
            continue;
        };
        if updates.send(update).await.is_err() {
            return;
        }
    }
}

/// The resource of a collection. Hints need whole Services, and the map only their annotations.
pub(super) fn resource(scope: &Followed, write_hints: bool) -> Resource {
    let collection = scope.collection;
    let path = match &scope.namespace {
        None => collection.list_path(),
        // Once for each namespace of the command line.
        Some(namespace) => collection.path(namespace, "").leak(),
    };
    let is_whole = write_hints || collection != Collection::Services;
    Resource {
        selector: collection.selector(),
        fields: collection.fields(),
        page_size: 200,
        // Every cluster has the other kinds, so a 404 is an error and does not mean that there are no objects.
        optional: collection.is_custom(),
        format: if is_whole {
            Format::Json
        } else {
            Format::JsonMetadata
        },
        ..Resource::new(path)
    }
}

struct CollectionFollower {
    connection: Connection,
    resource: Resource,
    scope: Followed,
    source: Watcher<Value>,
    /// The known names; `None` for other collections than Nodes.
    names: Option<ConfirmedNames>,
    listed: Option<BTreeSet<ObjectName>>,
    has_failed: bool,
    log: LogOnce,
}

impl CollectionFollower {
    /// Waits for the next change. Lists again if a list must be confirmed.
    async fn change(&mut self) -> WatcherChange<Value> {
        loop {
            let list_again = self.names.as_ref().and_then(ConfirmedNames::list_again);
            let Some(until) = list_again else {
                return self.source.next().await;
            };
            if let Ok(change) = timeout_at(until, self.source.next()).await {
                return change;
            }
            self.source = Watcher::new(self.connection.clone(), self.resource);
            self.names.iter_mut().for_each(ConfirmedNames::begins_again);
        }
    }

    /// Converts a change to an update for the loop, if it needs one.
    fn update(&mut self, change: WatcherChange<Value>) -> Option<Update> {
        let update = match change {
            WatcherChange::Begin => {
                self.listed = Some(BTreeSet::new());
                return None;
            }
            WatcherChange::Exists(object) => self.applied(object),
            WatcherChange::Gone(object) => {
                let name = name_of(&object);
                self.names.iter_mut().for_each(|names| names.deleted(&name));
                Update::Deleted(self.scope.collection, name)
            }
            WatcherChange::Listed => {
                let listed = self.listed.take().unwrap_or_default();
                let exist = match &mut self.names {
                    Some(names) => names.listed(listed, Instant::now()),
                    None => listed,
                };
                Update::Listed(self.scope.clone(), exist)
            }
            // A single broken watch is normal.
            WatcherChange::Trouble(_) if !std::mem::replace(&mut self.has_failed, true) => {
                return None;
            }
            WatcherChange::Trouble(error) => {
                self.log.failed(&error);
                return Some(Update::Failed(self.scope.clone()));
            }
        };
        self.has_failed = false;
        self.log.succeeded();
        Some(update)
    }

    fn applied(&mut self, object: Value) -> Update {
        let name = name_of(&object);
        if let Some(names) = &mut self.names {
            names.applied(name.clone());
        }
        if let Some(listed) = &mut self.listed {
            listed.insert(name);
        }
        Update::Applied(self.scope.collection, object)
    }
}
