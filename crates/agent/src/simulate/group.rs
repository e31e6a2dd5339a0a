//! Nodes that must decide alike about a Service, so that one of them is asked for all.
//!
//! A decision depends on the Node's zone, on the labels that policies and drains name, and on what is on the Node itself: an endpoint of the Service, or a hint that names the Node. Nodes that host or are named are asked one by
//! one; all others with the same values of those labels are one group. In a large cluster most Services have few
//! endpoints, so a thousand Nodes become a dozen questions.
//! Only where far endpoints are thinned out, which each Node does differently, all of a group are asked.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use topology_core::model::{DrainScope, Node, Service};
use topology_core::policy::{Demand, LevelKey, Policy};
use topology_core::snapshot::Snapshot;

use super::atlas::{Atlas, ZONE};

/// Nodes that decide alike, as one.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The zone that all of them are in.
    pub(crate) zone: usize,
    /// Each of them, one at least.
    pub(crate) clients: Vec<Client>,
}

/// A Node where traffic of the Service starts.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) node: Arc<str>,
    /// The part of the Service's traffic that starts there.
    pub(crate) part: f64,
}

/// Finds groups, and remembers which Nodes look alike under which labels.
#[derive(Debug, Default)]
pub(crate) struct Grouping {
    /// The class of each Node, for each set of traits that some Service's decision hangs on.
    classes: FxHashMap<Traits, Rc<Vec<usize>>>,
}

impl Grouping {
    /// The groups of Nodes for `service`; `parts` is the traffic of each Node.
    pub(crate) fn groups(
        &mut self,
        snapshot: &Snapshot,
        atlas: &Atlas,
        service: &Service,
        parts: &[f64],
    ) -> Vec<Group> {
        let classes = self.classes(snapshot, atlas, service);
        let special = special_nodes(snapshot, atlas, service);
        let mut groups: Vec<Group> = Vec::new();
        let mut of_class: FxHashMap<usize, usize> = FxHashMap::default();
        let places = atlas
            .nodes
            .iter()
            .zip(classes.iter())
            .zip(parts)
            .enumerate();
        for (number, ((place, class), part)) in places {
            let known = of_class
                .get(class)
                .copied()
                .filter(|_| !special.contains(&number));
            let client = Client {
                node: place.name.clone(),
                part: *part,
            };
            if let Some(group) = known.and_then(|at| groups.get_mut(at)) {
                group.clients.push(client);
                continue;
            }
            if !special.contains(&number) {
                of_class.insert(*class, groups.len());
            }
            groups.push(Group {
                zone: place.zone,
                clients: vec![client],
            });
        }
        groups
    }

    fn classes(&mut self, snapshot: &Snapshot, atlas: &Atlas, service: &Service) -> Rc<Vec<usize>> {
        let traits = Traits::of(snapshot, service);
        let classes = self.classes.entry(traits.clone());
        Rc::clone(classes.or_insert_with(|| Rc::new(classify(snapshot, atlas, &traits))))
    }
}

/// What of a Node a decision about a Service may hang on, beside what is on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Traits {
    labels: BTreeSet<Arc<str>>,
    /// Its allocatable CPU, which is its part of the demand.
    cpu: bool,
    /// Its name, which a drain of clients may tell.
    name: bool,
}

impl Traits {
    fn of(snapshot: &Snapshot, service: &Service) -> Self {
        let mut traits = Self {
            labels: BTreeSet::from([Arc::from(ZONE)]),
            cpu: false,
            name: false,
        };
        if let Some(policy) = &service.policy {
            traits.add(policy);
        }
        let selected = snapshot.policies().filter(|policy| {
            let namespace = policy.namespace.as_ref();
            let named = namespace.is_some() && service.named_policy.as_ref() == Some(&policy.name);
            namespace.is_none_or(|namespace| *namespace == service.name.namespace)
                && (named || policy.service_selector.matches(&service.labels))
        });
        for policy in selected {
            traits.labels.extend(policy.node_selector.keys().cloned());
            traits.add(&policy.policy);
        }
        let clients = snapshot
            .drains()
            .filter(|drain| drain.scope != DrainScope::Endpoints);
        for drain in clients {
            traits.add_key(&drain.key);
            traits.name |= drain.key == LevelKey::Node;
        }
        traits
    }

    fn add(&mut self, policy: &Policy) {
        let avoided = policy.avoid.iter().map(|avoid| &avoid.key);
        for key in policy.levels.iter().map(|level| &level.key).chain(avoided) {
            self.add_key(key);
        }
        self.cpu |= policy.demand == Demand::AllocatableCpu;
    }

    fn add_key(&mut self, key: &LevelKey) {
        if let LevelKey::Label(label) = key {
            self.labels.insert(label.clone());
        }
    }

    /// What `node` has of them.
    fn of_node(&self, node: &Node) -> Look {
        Look {
            labels: self
                .labels
                .iter()
                .map(|key| node.labels.get(key).cloned())
                .collect(),
            ready: node.ready,
            cpu: if self.cpu { node.cpu_milli } else { 0 },
            name: self.name.then(|| node.name.clone()),
        }
    }
}

/// What one Node has of the traits that count.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Look {
    labels: Vec<Option<Arc<str>>>,
    ready: bool,
    cpu: u64,
    name: Option<Arc<str>>,
}

/// A number for each Node, equal where all `traits` are.
fn classify(snapshot: &Snapshot, atlas: &Atlas, traits: &Traits) -> Vec<usize> {
    let mut known = FxHashMap::default();
    let mut class = |node: Option<&Node>| {
        let next = known.len();
        *known
            .entry(node.map(|node| traits.of_node(node)))
            .or_insert(next)
    };
    atlas
        .nodes
        .iter()
        .map(|place| class(snapshot.node(&place.name)))
        .collect()
}

/// The Nodes that host an endpoint of `service` or are named in its hints.
fn special_nodes(snapshot: &Snapshot, atlas: &Atlas, service: &Service) -> BTreeSet<usize> {
    let endpoints = snapshot
        .slices(&service.name)
        .iter()
        .flat_map(|slice| &slice.endpoints);
    let names = endpoints.flat_map(|endpoint| {
        let hinted = endpoint.hints.iter().flat_map(|hints| &hints.nodes);
        endpoint.node.iter().chain(hinted)
    });
    names.filter_map(|name| atlas.node(name)).collect()
}
