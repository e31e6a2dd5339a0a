//! Converts `v1` Namespace, with the labels that a `ClusterTopologyPolicy` selects by.

use super::meta;
use super::report::Report;
use crate::intern::Interner;
use crate::object::{Namespace, ObjectKey};
use object_tree::Field;

/// Every Namespace with a name is valid.
pub(crate) fn convert(
    root: &Field<'_>,
    key: &ObjectKey,
    interner: &mut Interner,
    report: &mut Report,
) -> Namespace {
    let metadata = root.get("metadata");
    let labels = meta::texts(&metadata.get("labels"), interner, report);
    Namespace {
        name: key.name.name.clone(),
        labels: labels.into_iter().collect(),
    }
}
