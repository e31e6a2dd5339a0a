//! The labels of Nodes that annotations of Services use. Nothing else is kept of a Service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cluster::source::annotation_labels;
use crd::MAX_KEYS;
use serde_json::Value;
use topology_core::model::ObjectName;

use super::value;

#[derive(Debug, Default)]
pub(super) struct AnnotationLabels {
    /// The labels that annotations may use besides those of every map; `None` allows all.
    allowed: Option<BTreeSet<Arc<str>>>,
    /// The Services that use other labels than those of every map.
    services: BTreeMap<ObjectName, BTreeSet<Arc<str>>>,
    /// Whether the first list of Services is complete.
    pub(super) is_listed: bool,
}

impl AnnotationLabels {
    pub(super) fn new(allowed: Option<BTreeSet<Arc<str>>>) -> Self {
        Self {
            allowed,
            ..Self::default()
        }
    }

    /// Reads a Service with the code of the agents. Returns whether its labels changed.
    pub(super) fn apply(&mut self, service: &Value) -> bool {
        let annotations = service.pointer("/metadata/annotations");
        let entries = annotations.and_then(Value::as_object).into_iter().flatten();
        let texts = entries.map(|(key, value)| (&**key, value.as_str()));
        let Some(labels) = annotation_labels(texts, self.allowed.as_ref()) else {
            return false;
        };
        let name = value::name(service);
        if labels.is_empty() {
            return self.delete(&name);
        }
        // A map has no room for more.
        let labels: BTreeSet<Arc<str>> = labels.into_iter().take(MAX_KEYS).collect();
        self.services.insert(name, labels.clone()) != Some(labels)
    }

    /// Returns whether the Service used labels.
    pub(super) fn delete(&mut self, name: &ObjectName) -> bool {
        self.services.remove(name).is_some()
    }

    pub(super) fn names(&self) -> BTreeSet<ObjectName> {
        self.services.keys().cloned().collect()
    }

    /// The labels, each with the namespace of the Service.
    pub(super) fn used(&self) -> impl Iterator<Item = (&str, &str)> {
        let services = self.services.iter();
        services.flat_map(|(name, labels)| labels.iter().map(|label| (&*name.namespace, &**label)))
    }
}
