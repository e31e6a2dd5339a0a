//! Conditions, and the write of a status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Serialize;
use serde_json::{Value, json};

use super::collection::Collection;
use super::value::{list, name, number, put, text};
use super::write::{Write, WriteKind};

pub(super) struct NewCondition {
    kind: &'static str,
    status: &'static str,
    reason: String,
    message: String,
}

impl NewCondition {
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

    /// The condition of `object` at `now`. Keeps `lastTransitionTime` while the status is the same.
    pub(super) fn at(self, object: &Value, now: i64) -> Condition {
        let before = find(object.get("status"), self.kind);
        let same = before.filter(|before| text(before, "/status") == self.status);
        let since = same.and_then(|before| text(before, "/lastTransitionTime").parse().ok());
        let seconds = || Timestamp::from_second(now.div_euclid(1000)).unwrap_or_default();
        Condition {
            last_transition_time: Time(since.unwrap_or_else(seconds)),
            message: self.message,
            observed_generation: i64::try_from(number(object, "/metadata/generation")).ok(),
            reason: self.reason,
            status: self.status.to_owned(),
            type_: self.kind.to_owned(),
        }
    }
}

/// The write that gives `object` this status, if its status differs.
pub(super) fn status_write(
    collection: Collection,
    object: &Value,
    status: &impl Serialize,
) -> Option<Write> {
    let (before, status) = (object.get("status"), json!(status));
    if before == Some(&status) {
        return None;
    }
    let is_new = |after: &Value| {
        let before = find(before, text(after, "/type"));
        before.is_none_or(|before| {
            ["/status", "/reason"]
                .iter()
                .any(|field| text(before, field) != text(after, field))
        })
    };
    let phase = before.map_or("", |before| text(before, "/phase"));
    let is_transition =
        phase != text(&status, "/phase") || list(&status, "/conditions").iter().any(is_new);
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

fn find<'s>(status: Option<&'s Value>, kind: &str) -> Option<&'s Value> {
    let mut conditions = list(status?, "/conditions").iter();
    conditions.find(|condition| text(condition, "/type") == kind)
}
