//! Tracks which labels of other Nodes are in use, and holds objects until their labels are known of
//! every Node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use topology_core::model::{Faults, Service};

use super::relist_pace::LabelOwner;
use crate::convert::OtherNodes;
use crate::object::{Kind, Object, ObjectKey};
use crd::REQUIRED_KEYS;

/// The objects that use labels, and the labels that are read of the Nodes.
#[derive(Debug)]
pub(in crate::api::watch) struct LabelUsage {
    own: Arc<str>,
    /// Whether a `nodeSelector` uses labels. An agent compares it only with its own Node, whose labels
    /// are all known.
    selectors: bool,
    /// The objects that use labels that are not always known.
    users: BTreeMap<ObjectKey, LabelUser>,
    /// The users by label, of the newest versions.
    by_label: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
    /// The newest versions that were not sent.
    held: BTreeMap<ObjectKey, Object>,
    /// The labels that are kept of each Node that is read.
    kept: BTreeSet<Arc<str>>,
    /// The labels that were kept of every known Node.
    known: BTreeSet<Arc<str>>,
    /// Whether a list of Nodes is under way or requested.
    listing: bool,
    round: u32,
    /// Whether a requested list failed or takes long: the start then does not wait for tenants.
    late: bool,
    /// The labels of boundaries that were sent although these labels are not known.
    unread: BTreeSet<Arc<str>>,
}

#[derive(Debug, Default)]
struct LabelUser {
    /// The labels of its newest version.
    keys: BTreeSet<Arc<str>>,
    /// The labels of the sent version, which is in use until the newest is sent.
    sent_keys: BTreeSet<Arc<str>>,
    /// Whether any version was sent.
    was_sent: bool,
}

impl LabelUsage {
    pub(in crate::api::watch) fn new(own: Arc<str>, selectors: bool) -> Self {
        Self {
            own,
            selectors,
            users: BTreeMap::new(),
            by_label: BTreeMap::new(),
            held: BTreeMap::new(),
            kept: BTreeSet::new(),
            known: BTreeSet::new(),
            listing: true,
            round: 0,
            late: false,
            unread: BTreeSet::new(),
        }
    }

    /// Returns each label that objects of administrators use, with the first of these objects.
    pub(in crate::api::watch) fn labels_of_administrators(
        &self,
    ) -> impl Iterator<Item = (&Arc<str>, &ObjectKey)> {
        let users = self.by_label.iter();
        users.filter_map(|(label, users)| {
            let mut users = users.iter();
            let user = users.find(|user| label_owner(user) == LabelOwner::Administrator)?;
            Some((label, user))
        })
    }

    /// Returns the labels of the newest version of an object; `None` if all are always known.
    pub(in crate::api::watch) fn keys(&self, key: &ObjectKey) -> Option<&BTreeSet<Arc<str>>> {
        self.users.get(key).map(|user| &user.keys)
    }

    /// Records the labels that an object uses now. `was_sent`: a version without such labels was
    /// sent before. Returns whether the labels changed.
    pub(in crate::api::watch) fn uses(
        &mut self,
        key: &ObjectKey,
        object: &Object,
        was_sent: bool,
    ) -> bool {
        // The last valid version stays in use, with its labels.
        if matches!(object, Object::Service(service) if service.faults == Faults::Boundary) {
            return false;
        }
        let keys = self.special_keys(object);
        if keys.is_empty() {
            return self.forget(key);
        }
        let new = LabelUser {
            was_sent,
            ..LabelUser::default()
        };
        let user = self.users.entry(key.clone()).or_insert(new);
        if user.keys == keys {
            return false;
        }
        let before = std::mem::replace(&mut user.keys, keys.clone());
        self.remove_user(key, &before);
        for label in keys {
            let users = self.by_label.entry(label).or_default();
            users.insert(key.clone());
        }
        true
    }

    /// Holds the newest version of an object until its labels are known.
    pub(in crate::api::watch) fn hold(&mut self, key: &ObjectKey, object: Object) {
        self.held.insert(key.clone(), object);
    }

    /// Marks the newest version of an object as sent. Returns the version if it was held.
    pub(in crate::api::watch) fn mark_sent(&mut self, key: &ObjectKey) -> Option<Object> {
        let user = self.users.get_mut(key)?;
        user.sent_keys.clone_from(&user.keys);
        user.was_sent = true;
        self.unread.retain(|label| !user.keys.contains(label));
        self.held.remove(key)
    }

    /// Returns a substitute for a held Service of which no version was sent: the Service without
    /// its policy, so that it is served while it waits. A boundary keeps its policy: without the
    /// labels it lets less traffic through, never more.
    pub(in crate::api::watch) fn first_substitute(&mut self, key: &ObjectKey) -> Option<Object> {
        let Object::Service(service) = self.held.get(key)? else {
            return None;
        };
        let user = self.users.get_mut(key).filter(|user| !user.was_sent)?;
        user.was_sent = true;
        let mut service = service.clone();
        if service
            .policy
            .as_ref()
            .is_some_and(|policy| policy.is_bounded())
        {
            user.sent_keys.clone_from(&user.keys);
            let unread = user.keys.difference(&self.known);
            self.unread.extend(unread.cloned());
        } else {
            service.policy = None;
        }
        Some(Object::Service(service))
    }

    /// Returns a substitute for a held Service of which a version was sent: the newest version,
    /// with the policy of the sent version.
    pub(in crate::api::watch) fn update_substitute(&self, key: &ObjectKey) -> Option<Object> {
        let Object::Service(service) = self.held.get(key)? else {
            return None;
        };
        self.users.get(key).filter(|user| user.was_sent)?;
        Some(Object::Service(Service {
            policy: None,
            named_policy: None,
            faults: Faults::Pending,
            ..service.clone()
        }))
    }

    pub(in crate::api::watch) const fn unread(&self) -> &BTreeSet<Arc<str>> {
        &self.unread
    }

    pub(in crate::api::watch) fn held(&self) -> impl Iterator<Item = &ObjectKey> {
        self.held.keys()
    }

    /// Forgets an object. Returns whether it used labels.
    pub(in crate::api::watch) fn forget(&mut self, key: &ObjectKey) -> bool {
        self.held.remove(key);
        let user = self.users.remove(key);
        if let Some(user) = &user {
            self.remove_user(key, &user.keys);
        }
        user.is_some()
    }

    /// Removes an object from the users of these labels.
    fn remove_user(&mut self, key: &ObjectKey, labels: &BTreeSet<Arc<str>>) {
        for label in labels {
            if let Some(users) = self.by_label.get_mut(label) {
                users.remove(key);
            }
        }
        self.by_label.retain(|_, users| !users.is_empty());
        self.unread
            .retain(|label| self.by_label.contains_key(label));
    }

    pub(in crate::api::watch) fn knows(&self, keys: &BTreeSet<Arc<str>>) -> bool {
        keys.is_subset(&self.known)
    }

    /// Switches to another source of Nodes, of which these labels are known.
    pub(in crate::api::watch) fn switch_source(&mut self, known: BTreeSet<Arc<str>>) {
        self.known = known;
        self.listing = true;
    }

    /// Begins a list of Nodes. Returns the labels to keep from now on: those in use.
    pub(in crate::api::watch) fn begin(&mut self) -> OtherNodes {
        self.listing = true;
        let users = self.users.values();
        let used = users.flat_map(|user| user.keys.iter().chain(&user.sent_keys));
        let always = REQUIRED_KEYS.iter().map(|key| Arc::from(*key));
        self.kept = used.cloned().chain(always).collect();
        self.known.retain(|key| self.kept.contains(key));
        OtherNodes {
            own: Arc::clone(&self.own),
            keys: self.kept.clone(),
        }
    }

    /// Ends a list of Nodes. `all`: the list was not limited to the agent's own Node.
    pub(in crate::api::watch) fn listed(&mut self, all: bool) {
        self.listing = false;
        if all {
            self.known.clone_from(&self.kept);
        }
    }

    /// Returns the owner of objects that wait for labels that are not kept, unless a list is under
    /// way. Administrators come first.
    pub(in crate::api::watch) fn owner_waiting(&self) -> Option<LabelOwner> {
        let waits = |keys: &BTreeSet<Arc<str>>| !keys.is_subset(&self.kept);
        let waiting = self.held().filter(|key| self.keys(key).is_some_and(waits));
        let mut owners = waiting.map(label_owner).peekable();
        if self.listing {
            return None;
        }
        owners.peek()?;
        let administrator = owners.any(|label_owner| label_owner == LabelOwner::Administrator);
        Some(if administrator {
            LabelOwner::Administrator
        } else {
            LabelOwner::Tenant
        })
    }

    /// Whether a requested list has ended, so that the start need not wait for another. If the list
    /// failed or takes long, the start still waits for objects of administrators: without these a
    /// boundary would be open.
    pub(in crate::api::watch) fn has_listed_again(&self) -> bool {
        let tenants = || {
            self.held()
                .all(|key| label_owner(key) == LabelOwner::Tenant)
        };
        self.round > 0 && (!self.listing || (self.late && tenants()))
    }

    /// Records that a requested list failed or takes long. Returns false if none was requested.
    pub(in crate::api::watch) fn mark_late(&mut self) -> bool {
        self.late = self.round > 0 && self.listing;
        self.late
    }

    pub(in crate::api::watch) fn next_request(&mut self) {
        self.listing = true;
        self.round = self.round.wrapping_add(1);
    }

    pub(in crate::api::watch) fn round(&self) -> u32 {
        self.round
    }

    /// The labels that an object uses and that are not always known.
    fn special_keys(&self, object: &Object) -> BTreeSet<Arc<str>> {
        let mut keys: BTreeSet<Arc<str>> = match object {
            Object::Service(service) => {
                let policy = service.policy.iter();
                policy
                    .flat_map(|policy| policy.label_keys())
                    .cloned()
                    .collect()
            }
            Object::Policy(object) => {
                let selected = self.selectors.then(|| object.node_selector.keys());
                let levels = object.policy.label_keys();
                levels
                    .chain(selected.into_iter().flatten())
                    .cloned()
                    .collect()
            }
            Object::Drain(drain) => drain.key.label().into_iter().cloned().collect(),
            _ => BTreeSet::new(),
        };
        keys.retain(|key| !REQUIRED_KEYS.contains(&&**key));
        keys
    }
}

pub(in crate::api::watch) fn label_owner(key: &ObjectKey) -> LabelOwner {
    match key.kind {
        Kind::Service | Kind::TopologyPolicy => LabelOwner::Tenant,
        Kind::ClusterTopologyPolicy
        | Kind::TopologyDrain
        | Kind::Node
        | Kind::EndpointSlice
        | Kind::ServiceCidr
        | Kind::Namespace
        | Kind::PodMap => LabelOwner::Administrator,
    }
}
