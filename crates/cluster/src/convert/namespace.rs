//! `v1` Namespace: its labels, which policies of the cluster select by.

use super::meta;
use super::report::Report;
use crate::intern::Interner;
use crate::object::{Namespace, ObjectKey};
use object_tree::Field;

/// Converts a Namespace. Any with a name can be used.
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
