//! The observed objects, and data that is derived once from each of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use topology_core::model::ObjectName;

use super::annotation_labels::AnnotationLabels;
use super::collection::Collection;
use super::node_labels::LabelCounts;
use super::nodes::NodeInfo;
use super::report::Reports;
use super::selected_nodes::SelectedNodes;
use super::validate::{ValidatedDrain, ValidatedPolicy};
use super::value;

#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Keys of labels that the map holds besides those in use.
    pub(super) extra_keys: BTreeSet<String>,
    pub(super) annotations: AnnotationLabels,
    pub(super) nodes: BTreeMap<String, NodeInfo>,
    pub(super) labels: LabelCounts,
    pub(super) objects: BTreeMap<(Collection, ObjectName), Value>,
    pub(super) policies: BTreeMap<(Collection, ObjectName), ValidatedPolicy>,
    /// The generation of each policy, and when it was first read, in milliseconds since 1970.
    pub(super) generations: BTreeMap<(Collection, ObjectName), (u64, i64)>,
    pub(super) drains: BTreeMap<ObjectName, ValidatedDrain>,
    pub(super) reports: Reports,
    /// Number of Nodes that each selector of a policy matches.
    pub(super) chosen: SelectedNodes,
}

impl Observed {
    pub(super) fn validate(&mut self, now: i64) {
        for (key, object) in &self.objects {
            match key.0 {
                Collection::ClusterPolicies | Collection::Policies => {
                    let validated = self.policies.entry(key.clone());
                    validated.or_insert_with(|| ValidatedPolicy::of(object));
                    let generation = value::number(object, "/metadata/generation");
                    let known = self.generations.get(key);
                    if known.is_none_or(|(known, _)| *known != generation) {
                        self.generations.insert(key.clone(), (generation, now));
                    }
                }
                Collection::Drains => {
                    let known = self.drains.get(&key.1);
                    if known.is_none_or(|known| known.is_outdated(now)) {
                        let validated = ValidatedDrain::of(object, now);
                        self.drains.insert(key.1.clone(), validated);
                    }
                }
                Collection::Nodes
                | Collection::Agents
                | Collection::Maps
                | Collection::Services
                | Collection::Slices
                | Collection::Pods
                | Collection::PodMaps
                | Collection::PodLocators => {}
            }
        }
        for validated in self.policies.values() {
            self.chosen
                .count(&self.nodes, &self.reports, &validated.nodes);
        }
        self.chosen.drop_unused(self.policies.values());
        self.labels.suggest_for(self.policies.values());
    }

    /// The objects of a collection whose objects are kept completely.
    pub(super) fn of(&self, collection: Collection) -> impl Iterator<Item = (&ObjectName, &Value)> {
        let all = self.objects.iter();
        all.filter(move |((of, _), _)| *of == collection)
            .map(|((_, name), object)| (name, object))
    }
}
