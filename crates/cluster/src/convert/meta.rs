//! Converts the parts that every object has: API version and kind, name and namespace, labels.

use std::sync::Arc;

use topology_core::model::ObjectName;

use super::report::Report;
use crate::intern::Interner;
use crate::object::{Kind, ObjectKey};
use crd::GROUP;
use object_tree::Field;
use object_tree::Node;

/// The label that assigns an object to another proxy, with any value (KP-IN-01).
pub(crate) const LABEL_PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";
/// The label of headless Services and their slices, with any value (KP-IN-01).
pub(crate) const LABEL_HEADLESS: &str = "service.kubernetes.io/headless";

/// The kind of an object, or the name to count it under if this program does not read its kind.
///
/// A missing `apiVersion` is accepted. Another group is another kind: a Knative `Service` is not a
/// Service.
pub(crate) fn kind_of(node: &Node) -> Option<Result<Kind, String>> {
    let kind = node
        .get("kind")
        .and_then(Node::text)
        .filter(|kind| !kind.is_empty())?;
    let version = node
        .get("apiVersion")
        .and_then(Node::text)
        .unwrap_or_default();
    let (group, _) = version.split_once('/').unwrap_or(("", version));
    Some(match (kind, group) {
        ("Node", "") => Ok(Kind::Node),
        ("Service", "") => Ok(Kind::Service),
        ("Namespace", "") => Ok(Kind::Namespace),
        ("EndpointSlice", "discovery.k8s.io") => Ok(Kind::EndpointSlice),
        ("EndpointSlice", "") if version.is_empty() => Ok(Kind::EndpointSlice),
        ("ServiceCIDR", "networking.k8s.io") => Ok(Kind::ServiceCidr),
        ("ServiceCIDR", "") if version.is_empty() => Ok(Kind::ServiceCidr),
        ("TopologyPolicy", GROUP) => Ok(Kind::TopologyPolicy),
        ("ClusterTopologyPolicy", GROUP) => Ok(Kind::ClusterTopologyPolicy),
        ("TopologyDrain", GROUP) => Ok(Kind::TopologyDrain),
        ("PodMap", GROUP) => Ok(Kind::PodMap),
        (kind, "") => Err(kind.to_owned()),
        (kind, group) => Err(format!("{kind}.{group}")),
    })
}

/// The object's key; `None`, and a warning, if it has no valid name.
pub(crate) fn key_of(
    root: &Field<'_>,
    kind: Kind,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<ObjectKey> {
    let metadata = root.get("metadata");
    let name = metadata.get("name");
    let Some(text) = name.text(report) else {
        report.warn(&name, "the object has no name and is skipped", "add a name");
        return None;
    };
    let namespace = metadata.get("namespace");
    let space = if kind.is_namespaced() {
        namespace.text(report).unwrap_or("default")
    } else {
        ""
    };
    let object = if space.is_empty() {
        text.to_owned()
    } else {
        format!("{space}/{text}")
    };
    report.name(object);
    for (field, text) in [(&name, text), (&namespace, space)] {
        if !text.is_empty() && !is_dns_name(text)
            || text.is_empty() && field.is_present() && kind.is_namespaced()
        {
            let message =
                format!("`{text}` is not a valid name in Kubernetes, and the object is skipped");
            report.warn(
                field,
                message,
                "use lower-case letters, digits, `-` and `.`",
            );
            return None;
        }
    }
    let name = ObjectName {
        namespace: interner.text(space),
        // No other object repeats the name of a slice, so it is not shared.
        name: if kind == Kind::EndpointSlice {
            text.into()
        } else {
            interner.text(text)
        },
    };
    let key = ObjectKey { kind, name };
    report.identify(&key);
    Some(key)
}

/// RFC 1123 as Kubernetes checks it: at most 253 lower-case letters, digits, `-` and `.`, with a
/// letter or digit at both ends.
fn is_dns_name(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().next_back()];
    text.len() <= 253
        && ends.into_iter().all(|end| end.is_some_and(good))
        && text
            .bytes()
            .all(|byte| good(byte) || byte == b'-' || byte == b'.')
}

/// Whether the object has the label, with any value.
pub(crate) fn has_label(root: &Field<'_>, label: &str) -> bool {
    root.get("metadata")
        .get("labels")
        .keys()
        .any(|key| key == label)
}

/// `metadata.creationTimestamp` in seconds since 1970.
pub(crate) fn created(root: &Field<'_>, report: &mut Report) -> Option<i64> {
    let metadata = root.get("metadata");
    let field = metadata.get("creationTimestamp");
    let instant: jiff::Timestamp =
        field.parse("a time", "write it as 2025-05-05T08:00:00Z", report)?;
    Some(instant.as_second())
}

/// `metadata.generation`, or 0.
pub(crate) fn generation(root: &Field<'_>, report: &mut Report) -> u64 {
    let metadata = root.get("metadata");
    let field = metadata.get("generation");
    let remedy = "remove it; an API server writes it";
    field
        .parse("a generation", remedy, report)
        .unwrap_or_default()
}

pub(crate) fn texts(
    field: &Field<'_>,
    interner: &mut Interner,
    report: &mut Report,
) -> Vec<(Arc<str>, Arc<str>)> {
    some_texts(field, |_key| true, interner, report)
}

/// The labels whose key `is_wanted`.
pub(crate) fn some_texts(
    field: &Field<'_>,
    is_wanted: impl Fn(&str) -> bool,
    interner: &mut Interner,
    report: &mut Report,
) -> Vec<(Arc<str>, Arc<str>)> {
    let entries = field.labels(report);
    entries
        .into_iter()
        .filter(|(key, _)| is_wanted(key))
        .map(|(key, value)| (interner.text(key), interner.text(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_as_kubernetes_does() {
        for good in ["a", "cart-7x2kq", "n1.example.com", "0"] {
            assert!(is_dns_name(good), "{good}");
        }
        let long = "a".repeat(254);
        for bad in ["", "-a", "a-", "A", "a b", "a/b", "ä", "a\n", &long] {
            assert!(!is_dns_name(bad), "{bad}");
        }
    }
}
