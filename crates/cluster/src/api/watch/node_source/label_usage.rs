//! Which labels of other Nodes anything goes by, and what waits until they are known of every Node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use topology_core::model::{Faults, Service};

use super::relist_pace::LabelOwner;
use crate::convert::OtherNodes;
use crate::object::{Kind, Object, ObjectKey};
use crd::KEYS_ALWAYS_TOLD;

/// Everything that goes by labels, and the labels of the Nodes that are read.
#[derive(Debug)]
pub(in crate::api::watch) struct LabelUsage {
    own: Arc<str>,
    /// Whether what selects Nodes goes by their labels; it decides on one's own alone, of which all are known.
    selectors: bool,
    /// What goes by labels that are not always known.
    users: BTreeMap<ObjectKey, LabelUser>,
    /// The same by label, of the newest versions.
    by_label: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
    /// The newest versions that are not told.
    held: BTreeMap<ObjectKey, Object>,
    /// The labels that are kept of Nodes as they come.
    kept: BTreeSet<Arc<str>>,
    /// Those that were kept of every Node that is known.
    known: BTreeSet<Arc<str>>,
    /// Whether a list of Nodes is being read, or was asked for.
    listing: bool,
    /// How many lists were asked for.
    round: u32,
    /// Whether one that was asked for has failed, or takes long: what tenants wait for does not hold up the start.
    late: bool,
    /// The labels of boundaries that are told although these are not known.
    unread: BTreeSet<Arc<str>>,
}

/// An object that goes by labels.
#[derive(Debug, Default)]
struct LabelUser {
    /// Those of its newest version.
    keys: BTreeSet<Arc<str>>,
    /// Those of the version that was told, which decides until the newest is told.
    told: BTreeSet<Arc<str>>,
    /// Whether any version was told.
    shown: bool,
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

    /// Each label that an object of the administrators uses, and the first of these objects.
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

    /// What the newest version of an object goes by, if it is anything.
    pub(in crate::api::watch) fn keys(&self, key: &ObjectKey) -> Option<&BTreeSet<Arc<str>>> {
        self.users.get(key).map(|user| &user.keys)
    }

    /// Takes note of what an object goes by now; `shown` if a version without such labels was told before. Returns whether
    /// that is something else than before.
    pub(in crate::api::watch) fn uses(
        &mut self,
        key: &ObjectKey,
        object: &Object,
        shown: bool,
    ) -> bool {
        // What the last good version goes by still decides.
        if matches!(object, Object::Service(service) if service.faults == Faults::Boundary) {
            return false;
        }
        let keys = self.special_keys(object);
        if keys.is_empty() {
            return self.forget(key);
        }
        let new = LabelUser {
            shown,
            ..LabelUser::default()
        };
        let user = self.users.entry(key.clone()).or_insert(new);
        if user.keys == keys {
            return false;
        }
        let before = std::mem::replace(&mut user.keys, keys.clone());
        self.leave(key, &before);
        for label in keys {
            let users = self.by_label.entry(label).or_default();
            users.insert(key.clone());
        }
        true
    }

    /// Keeps the newest version of an object until what it goes by is known.
    pub(in crate::api::watch) fn hold(&mut self, key: &ObjectKey, object: Object) {
        self.held.insert(key.clone(), object);
    }

    /// The newest version of an object is told. Returns it, if it was held.
    pub(in crate::api::watch) fn tell(&mut self, key: &ObjectKey) -> Option<Object> {
        let user = self.users.get_mut(key)?;
        user.told.clone_from(&user.keys);
        user.shown = true;
        self.unread.retain(|label| !user.keys.contains(label));
        self.held.remove(key)
    }

    /// What is told of a held Service of which no version was told, so that it is served while it waits: the Service
    /// without its policy. A boundary stays as it is; without the labels it lets less through, never more.
    pub(in crate::api::watch) fn stand_in(&mut self, key: &ObjectKey) -> Option<Object> {
        let Object::Service(service) = self.held.get(key)? else {
            return None;
        };
        let user = self.users.get_mut(key).filter(|user| !user.shown)?;
        user.shown = true;
        let mut service = service.clone();
        if service
            .policy
            .as_ref()
            .is_some_and(|policy| policy.is_bounded())
        {
            user.told.clone_from(&user.keys);
            let unread = user.keys.difference(&self.known);
            self.unread.extend(unread.cloned());
        } else {
            service.policy = None;
        }
        Some(Object::Service(service))
    }

    /// What is told of a held Service of which a version was told: the newest, with what that one asked.
    pub(in crate::api::watch) fn follow(&self, key: &ObjectKey) -> Option<Object> {
        let Object::Service(service) = self.held.get(key)? else {
            return None;
        };
        self.users.get(key).filter(|user| user.shown)?;
        Some(Object::Service(Service {
            policy: None,
            named_policy: None,
            faults: Faults::Pending,
            ..service.clone()
        }))
    }

    /// The labels of what is told although these are not known of the Nodes.
    pub(in crate::api::watch) const fn unread(&self) -> &BTreeSet<Arc<str>> {
        &self.unread
    }

    /// The objects that are held.
    pub(in crate::api::watch) fn held(&self) -> impl Iterator<Item = &ObjectKey> {
        self.held.keys()
    }

    /// Forgets an object. Returns whether it went by anything.
    pub(in crate::api::watch) fn forget(&mut self, key: &ObjectKey) -> bool {
        self.held.remove(key);
        let user = self.users.remove(key);
        if let Some(user) = &user {
            self.leave(key, &user.keys);
        }
        user.is_some()
    }

    /// An object does not go by these labels any more.
    fn leave(&mut self, key: &ObjectKey, labels: &BTreeSet<Arc<str>>) {
        for label in labels {
            if let Some(users) = self.by_label.get_mut(label) {
                users.remove(key);
            }
        }
        self.by_label.retain(|_, users| !users.is_empty());
        self.unread
            .retain(|label| self.by_label.contains_key(label));
    }

    /// Whether all of these are known of every Node.
    pub(in crate::api::watch) fn knows(&self, keys: &BTreeSet<Arc<str>>) -> bool {
        keys.is_subset(&self.known)
    }

    /// Nodes are read from elsewhere from now on; these labels are known of them.
    pub(in crate::api::watch) fn turn(&mut self, known: BTreeSet<Arc<str>>) {
        self.known = known;
        self.listing = true;
    }

    /// A list of Nodes begins: what nothing goes by any more is not kept from now on. Returns what is.
    pub(in crate::api::watch) fn begin(&mut self) -> OtherNodes {
        self.listing = true;
        let users = self.users.values();
        let used = users.flat_map(|user| user.keys.iter().chain(&user.told));
        let always = KEYS_ALWAYS_TOLD.iter().map(|key| Arc::from(*key));
        self.kept = used.cloned().chain(always).collect();
        self.known.retain(|key| self.kept.contains(key));
        OtherNodes {
            own: Arc::clone(&self.own),
            keys: self.kept.clone(),
        }
    }

    /// A list of Nodes has ended; `all` were named.
    pub(in crate::api::watch) fn listed(&mut self, all: bool) {
        self.listing = false;
        if all {
            self.known.clone_from(&self.kept);
        }
    }

    /// Whose objects wait for labels that are not kept of the Nodes, if any do and no list is on its way. Administrators
    /// come first.
    pub(in crate::api::watch) fn lacks(&self) -> Option<LabelOwner> {
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

    /// Whether a list was asked for and has ended: at the start nothing waits for another. If it failed, or takes long,
    /// only what administrators use is waited for: without it a boundary of theirs would be open.
    pub(in crate::api::watch) fn has_listed_again(&self) -> bool {
        let tenants = || {
            self.held()
                .all(|key| label_owner(key) == LabelOwner::Tenant)
        };
        self.round > 0 && (!self.listing || (self.late && tenants()))
    }

    /// A list that was asked for has failed, or takes long. Returns whether that is so.
    pub(in crate::api::watch) fn late(&mut self) -> bool {
        self.late = self.round > 0 && self.listing;
        self.late
    }

    /// Asks for a list of Nodes.
    pub(in crate::api::watch) fn next_request(&mut self) {
        self.listing = true;
        self.round = self.round.wrapping_add(1);
    }

    /// How many lists were asked for.
    pub(in crate::api::watch) fn round(&self) -> u32 {
        self.round
    }

    /// The labels that an object goes by and that are not always known.
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
        keys.retain(|key| !KEYS_ALWAYS_TOLD.contains(&&**key));
        keys
    }
}

/// Whose object it is.
pub(in crate::api::watch) fn label_owner(key: &ObjectKey) -> LabelOwner {
    match key.kind {
        Kind::Service | Kind::TopologyPolicy => LabelOwner::Tenant,
        Kind::ClusterTopologyPolicy
        | Kind::TopologyDrain
        | Kind::Node
        | Kind::EndpointSlice
        | Kind::ServiceCidr
        | Kind::Namespace => LabelOwner::Administrator,
    }
}
