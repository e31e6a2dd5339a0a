//! Reads and sets fields of JSON objects.

use serde_json::Value;
use topology_core::model::ObjectName;

/// The text at a path such as `/metadata/name`; empty if there is none.
pub(super) fn text<'v>(object: &'v Value, path: &str) -> &'v str {
    object
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The number at a path; 0 if there is none.
pub(super) fn number(object: &Value, path: &str) -> u64 {
    object
        .pointer(path)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

pub(super) fn put(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value.into());
    }
}

/// The elements at a path; empty if there are none.
pub(super) fn list<'v>(object: &'v Value, path: &str) -> &'v [Value] {
    object
        .pointer(path)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

pub(super) fn name(object: &Value) -> ObjectName {
    ObjectName::new(
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    )
}
