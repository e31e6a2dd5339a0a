//! Groups Nodes with the same decision about a Service, so that only one of each group is resolved.
//!
//! A decision depends on the Node's zone, on labels in policies and drains, and on endpoints and
//! hints of the Node itself. Nodes with endpoints or hints are resolved one by one. All others with
//! the same values of those labels are one group. A label that is only used for a level or an
//! avoided domain is compared with the endpoints' labels: all values that no endpoint of the
//! Service has are equivalent. So a thousand Nodes become a dozen groups, even if each has its own
//! label value. If distant endpoints are thinned out, all Nodes of a group are resolved, because
//! each Node keeps other endpoints.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use topology_core::model::{DrainScope, Node, Service};
use topology_core::policy::{Demand, LevelKey, Policy, ZONE};
use topology_core::snapshot::Snapshot;

use super::node_zones::NodeZones;

/// Nodes with the same decision.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) zone: usize,
    /// The Nodes, at least one.
    pub(crate) clients: Vec<Client>,
}

/// A Node where traffic of the Service starts.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) node: Arc<str>,
    /// The part of the Service's traffic that starts there.
    pub(crate) part: f64,
}

/// Finds groups, and caches the traits of Nodes.
#[derive(Debug, Default)]
pub(crate) struct Grouping {
    /// The class of each Node, by all traits that must be equal.
    classes: FxHashMap<Exact, Arc<[usize]>>,
    /// The number of each Node's value of a label, by label.
    label_values: FxHashMap<Arc<str>, Arc<LabelValues>>,
}

/// The values of a label on the Nodes, as numbers from 1; 0 for Nodes without it.
#[derive(Debug, Default)]
struct LabelValues {
    numbers: FxHashMap<Arc<str>, usize>,
    /// By Node number.
    of_node: Vec<usize>,
}

impl Grouping {
    /// The groups of Nodes for `service`; `parts` is the traffic of each Node.
    pub(crate) fn groups(
        &mut self,
        snapshot: &Snapshot,
        node_zones: &NodeZones,
        service: &Service,
        parts: &[f64],
    ) -> Vec<Group> {
        let classes = self.classes(snapshot, node_zones, service);
        let special = special_nodes(snapshot, node_zones, service);
        let mut groups: Vec<Group> = Vec::new();
        let mut of_class: FxHashMap<usize, usize> = FxHashMap::default();
        let places = node_zones
            .nodes
            .iter()
            .zip(classes.iter())
            .zip(parts)
            .enumerate();
        for (number, ((place, class), part)) in places {
            let is_special = special.contains(&number);
            let known = of_class.get(class).copied().filter(|_| !is_special);
            let client = Client {
                node: place.name.clone(),
                part: *part,
            };
            if let Some(group) = known.and_then(|at| groups.get_mut(at)) {
                group.clients.push(client);
                continue;
            }
            if !is_special {
                of_class.insert(*class, groups.len());
            }
            groups.push(Group {
                zone: place.zone,
                clients: vec![client],
            });
        }
        groups
    }

    /// A number for each Node; equal numbers mean equal traits for a decision about `service`.
    fn classes(
        &mut self,
        snapshot: &Snapshot,
        node_zones: &NodeZones,
        service: &Service,
    ) -> Vec<usize> {
        let Traits { exact, compared } = Traits::of(snapshot, service);
        let classes = self.classes.entry(exact);
        let classes =
            classes.or_insert_with_key(|exact| classify(snapshot, node_zones, exact).into());
        let mut classes = classes.to_vec();
        for label in compared {
            let values = self.label_values.entry(label.clone());
            let values = Arc::clone(
                values.or_insert_with(|| Arc::new(LabelValues::of(snapshot, node_zones, &label))),
            );
            values.split(
                &mut classes,
                &values.of_endpoints(snapshot, service, &label),
            );
        }
        classes
    }
}

impl LabelValues {
    fn of(snapshot: &Snapshot, node_zones: &NodeZones, label: &str) -> Self {
        let mut values = Self::default();
        for place in &node_zones.nodes {
            let value = snapshot
                .node(&place.name)
                .and_then(|node| node.labels.get(label));
            let number = value.map_or(0, |value| {
                let next = values.numbers.len() + 1;
                *values.numbers.entry(value.clone()).or_insert(next)
            });
            values.of_node.push(number);
        }
        values
    }

    /// The values, as numbers, of the Nodes with endpoints of `service` in any condition.
    fn of_endpoints(&self, snapshot: &Snapshot, service: &Service, label: &str) -> BTreeSet<usize> {
        let slices = snapshot.slices(&service.name).iter();
        let nodes = slices
            .flat_map(|slice| &slice.endpoints)
            .filter_map(|endpoint| snapshot.node(endpoint.node.as_deref()?));
        nodes
            .filter_map(|node| self.numbers.get(node.labels.get(label)?).copied())
            .collect()
    }

    /// Splits classes by values in `there`; Nodes with other values, and those without, stay
    /// together.
    fn split(&self, classes: &mut [usize], there: &BTreeSet<usize>) {
        let mut known = FxHashMap::default();
        for (class, number) in classes.iter_mut().zip(&self.of_node) {
            let value = match number {
                0 => None,
                number => Some(there.get(number)),
            };
            let next = known.len();
            *class = *known.entry((*class, value)).or_insert(next);
        }
    }
}

/// The traits of a Node that a decision about a Service may depend on.
#[derive(Debug, Default)]
struct Traits {
    /// Traits that must be equal.
    exact: Exact,
    /// Labels that are only compared with those of the endpoints' Nodes.
    compared: BTreeSet<Arc<str>>,
}

/// A trait that must be equal.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct Exact {
    labels: BTreeSet<Arc<str>>,
    /// Its allocatable CPU, which determines its demand.
    cpu: bool,
    /// Its name, which a drain of clients may contain.
    name: bool,
}

impl Traits {
    fn of(snapshot: &Snapshot, service: &Service) -> Self {
        let mut traits = Self::default();
        // Traffic starts in the zone, and hints name it.
        traits.exact.labels.insert(ZONE.into());
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
            let keys = policy.node_selector.keys().cloned();
            traits.exact.labels.extend(keys);
            traits.add(&policy.policy);
        }
        let clients = snapshot
            .drains()
            .filter(|drain| drain.scope != DrainScope::Endpoints);
        for drain in clients {
            traits.exact.labels.extend(label(&drain.key).cloned());
            traits.exact.name |= drain.key == LevelKey::Node;
        }
        let Self { exact, compared } = &mut traits;
        compared.retain(|key| !exact.labels.contains(key));
        traits
    }

    fn add(&mut self, policy: &Policy) {
        let levels = policy.levels.iter().map(|level| &level.key);
        let avoided = policy.avoid.iter().map(|avoid| &avoid.key);
        // A cap depends on the demand of the Node's whole domain, with or without endpoints there.
        let labels = match policy.max_overload {
            Some(_) => &mut self.exact.labels,
            None => &mut self.compared,
        };
        labels.extend(levels.chain(avoided).filter_map(label).cloned());
        self.exact.cpu |= policy.demand == Demand::AllocatableCpu;
    }
}

fn label(key: &LevelKey) -> Option<&Arc<str>> {
    match key {
        LevelKey::Label(label) => Some(label),
        LevelKey::Node | LevelKey::Any => None,
    }
}

impl Exact {
    fn of_node(&self, node: &Node) -> NodeTraits {
        NodeTraits {
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

#[derive(Debug, PartialEq, Eq, Hash)]
struct NodeTraits {
    labels: Vec<Option<Arc<str>>>,
    ready: bool,
    cpu: u64,
    name: Option<Arc<str>>,
}

/// A number for each Node; equal numbers mean equal `traits`.
fn classify(snapshot: &Snapshot, node_zones: &NodeZones, traits: &Exact) -> Vec<usize> {
    let mut known = FxHashMap::default();
    let mut class = |node: Option<&Node>| {
        let next = known.len();
        *known
            .entry(node.map(|node| traits.of_node(node)))
            .or_insert(next)
    };
    node_zones
        .nodes
        .iter()
        .map(|place| class(snapshot.node(&place.name)))
        .collect()
}

/// The Nodes with an endpoint of `service`, or in its hints.
fn special_nodes(
    snapshot: &Snapshot,
    node_zones: &NodeZones,
    service: &Service,
) -> BTreeSet<usize> {
    let endpoints = snapshot
        .slices(&service.name)
        .iter()
        .flat_map(|slice| &slice.endpoints);
    let names = endpoints.flat_map(|endpoint| {
        let hinted = endpoint.hints.iter().flat_map(|hints| &hints.nodes);
        endpoint.node.iter().chain(hinted)
    });
    names.filter_map(|name| node_zones.node(name)).collect()
}
