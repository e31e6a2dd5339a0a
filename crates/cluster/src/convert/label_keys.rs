//! The labels of Nodes that annotations of Services may use, where an administrator names them.

use std::collections::BTreeSet;
use std::sync::Arc;

use topology_core::model::{Faults, Service};
use topology_core::policy::{PREFIX, PolicySource};

use super::field::Field;
use super::report::Report;
use crate::schema::KEYS_ALWAYS_TOLD;

/// The annotations that name labels.
const NAMING: [&str; 3] = ["weights", "keys", "avoid"];

/// Leaves out a policy of annotations that uses a label which is not among `allowed`: the next source decides.
pub(super) fn restrict(
    service: &mut Service,
    root: &Field<'_>,
    allowed: &BTreeSet<Arc<str>>,
    report: &mut Report,
) {
    let policy = service.policy.as_ref();
    let policy = policy.filter(|policy| policy.source == PolicySource::Annotation);
    let is_refused =
        |key: &&Arc<str>| !KEYS_ALWAYS_TOLD.contains(&&***key) && !allowed.contains(*key);
    let Some(refused) = policy.and_then(|policy| policy.label_keys().find(is_refused)) else {
        return;
    };
    let metadata = root.get("metadata");
    let annotations = metadata.get("annotations");
    let names = NAMING.map(|name| format!("{PREFIX}{name}"));
    let mut present = names
        .iter()
        .filter(|name| annotations.entry(name).is_present());
    let name = present.next().map_or("", |name| name);
    report.warn(
        &annotations.entry(name),
        format!("annotations may not use the label {refused} here, so the next source decides"),
        "use a label that --annotation-label-keys of the agents names, or have it named there",
    );
    service.policy = None;
    service.faults = Faults::Some;
}
