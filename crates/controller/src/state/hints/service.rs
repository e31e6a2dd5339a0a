//! Reads which hints a Service requests.

use jiff::Timestamp;
use serde_json::Value;
use topology_core::hints::HintMode;

use super::super::value::text;

/// The older annotation, which takes precedence.
const OLDER: &str = "/metadata/annotations/service.kubernetes.io~1topology-aware-hints";
const NEWER: &str = "/metadata/annotations/service.kubernetes.io~1topology-mode";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServiceHints {
    pub(super) wanted: HintMode,
    /// Milliseconds since 1970.
    pub(super) created: i64,
}

impl ServiceHints {
    pub(super) fn read(object: &Value) -> Self {
        let text_at = |path: &str| object.pointer(path).and_then(Value::as_str);
        let wanted = HintMode::of(
            text_at(OLDER),
            text_at(NEWER),
            text_at("/spec/trafficDistribution"),
        );
        let created = text(object, "/metadata/creationTimestamp").parse();
        Self {
            wanted: if is_concerned(object) {
                wanted
            } else {
                HintMode::Nothing
            },
            created: created.unwrap_or(Timestamp::UNIX_EPOCH).as_millisecond(),
        }
    }
}

/// The labels of Services that node proxies do not serve.
const NOT_PROXIED: [&str; 2] = [
    "/metadata/labels/service.kubernetes.io~1service-proxy-name",
    "/metadata/labels/service.kubernetes.io~1headless",
];

/// Whether node proxies serve the Service, and no controller of Kubernetes writes its slices.
fn is_concerned(object: &Value) -> bool {
    let is_proxied = NOT_PROXIED
        .iter()
        .all(|label| object.pointer(label).is_none());
    let selector = object.pointer("/spec/selector").and_then(Value::as_object);
    is_proxied
        && selector.is_none_or(serde_json::Map::is_empty)
        && !["", "None"].contains(&text(object, "/spec/clusterIP"))
        && text(object, "/spec/type") != "ExternalName"
}
