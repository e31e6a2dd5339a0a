//! Reading and building JSON objects of Kubernetes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::collection::Collection;
use super::write::{Name, Write, WriteKind};

/// The text at a path such as `/metadata/name`; empty where there is none.
pub(super) fn text<'v>(object: &'v Value, path: &str) -> &'v str {
    object
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The number at a path; 0 where there is none.
pub(super) fn number(object: &Value, path: &str) -> u64 {
    object
        .pointer(path)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

/// Sets a field of an object.
pub(super) fn put(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value.into());
    }
}

/// The elements at a path.
pub(super) fn list<'v>(object: &'v Value, path: &str) -> &'v [Value] {
    object
        .pointer(path)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Namespace and name.
pub(super) fn name(object: &Value) -> Name {
    (
        text(object, "/metadata/namespace").to_owned(),
        text(object, "/metadata/name").to_owned(),
    )
}

/// Formats a time as Kubernetes does.
pub(super) fn time(now: i64) -> String {
    let seconds = now.div_euclid(1000);
    Timestamp::from_second(seconds)
        .unwrap_or_default()
        .to_string()
}

/// A condition without its time.
pub(super) struct Condition {
    pub(super) kind: &'static str,
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Condition {
    pub(super) fn new(
        kind: &'static str,
        status: &'static str,
        reason: &str,
        message: String,
    ) -> Self {
        Self {
            kind,
            status,
            reason: reason.to_owned(),
            message,
        }
    }

    /// The condition of the API. It keeps its time while its status stays the same.
    fn written(&self, object: &Value, now: i64) -> Value {
        let before = self.before(object);
        let same = before.filter(|before| text(before, "/status") == self.status);
        let since = same.map(|before| text(before, "/lastTransitionTime").to_owned());
        json!({
            "type": self.kind,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": since.unwrap_or_else(|| time(now)),
            "observedGeneration": number(object, "/metadata/generation"),
        })
    }

    /// Whether its status or its reason differs from that of `object`.
    fn is_transition(&self, object: &Value) -> bool {
        self.before(object).is_none_or(|before| {
            text(before, "/status") != self.status || text(before, "/reason") != self.reason
        })
    }

    fn before<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        let mut conditions = list(object, "/status/conditions").iter();
        conditions.find(|one| text(one, "/type") == self.kind)
    }
}

/// The write that gives `object` this status, if its status differs.
pub(super) fn status(
    collection: Collection,
    object: &Value,
    conditions: &[Condition],
    mut status: Value,
    now: i64,
) -> Option<Write> {
    let written: Vec<Value> = conditions
        .iter()
        .map(|one| one.written(object, now))
        .collect();
    put(&mut status, "conditions", written);
    let before = object.get("status").unwrap_or(&Value::Null);
    if *before == status {
        return None;
    }
    let phase = |status: &Value| text(status, "/phase").to_owned();
    let is_transition =
        conditions.iter().any(|one| one.is_transition(object)) || phase(before) != phase(&status);
    let mut body = object.clone();
    put(&mut body, "status", status);
    Some(Write {
        collection,
        name: name(object),
        kind: WriteKind::Status,
        body,
        is_transition,
    })
}
