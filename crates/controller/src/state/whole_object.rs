//! The write of a whole object that only the controller writes.

use serde_json::{Value, json};
use topology_core::model::ObjectName;

use super::collection::Collection;
use super::value::put;
use super::write::{Write, WriteKind};

/// Creates the object, or replaces the version of it that was read.
pub(super) fn write_whole(
    collection: Collection,
    name: &ObjectName,
    spec: Value,
    version: Option<&str>,
) -> Write {
    let mut metadata = json!({ "name": &*name.name });
    if !name.namespace.is_empty() {
        put(&mut metadata, "namespace", &*name.namespace);
    }
    let kind = match version {
        None => WriteKind::Create,
        Some(version) => {
            put(&mut metadata, "resourceVersion", version);
            WriteKind::Replace
        }
    };
    let mut body = json!({
        "apiVersion": collection.version(),
        "kind": collection.kind(),
        "metadata": metadata,
    });
    put(&mut body, "spec", spec);
    Write {
        collection,
        name: name.clone(),
        kind,
        body,
        is_transition: false,
    }
}
