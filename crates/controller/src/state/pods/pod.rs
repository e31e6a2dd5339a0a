//! The part of a Pod that says where it is.

use std::net::IpAddr;

use jiff::Timestamp;
use serde_json::Value;

use crate::state::value::{list, text};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodInfo {
    pub(super) node: String,
    /// Sorted.
    pub(super) addresses: Vec<IpAddr>,
    pub(super) uid: String,
    /// Seconds since 1970.
    pub(super) created: i64,
    pub(super) terminates: bool,
}

impl PodInfo {
    /// `None` for a Pod without an address of its own: it is not scheduled or has no address yet, its containers have
    /// ended for good, or it is on the host network.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let node = text(object, "/spec/nodeName");
        let is_on_host = object.pointer("/spec/hostNetwork") == Some(&Value::Bool(true));
        let has_ended = matches!(text(object, "/status/phase"), "Succeeded" | "Failed");
        let addresses = addresses(object);
        if node.is_empty() || is_on_host || has_ended || addresses.is_empty() {
            return None;
        }
        let created: Option<Timestamp> = text(object, "/metadata/creationTimestamp").parse().ok();
        Some(Self {
            node: node.to_owned(),
            addresses,
            uid: text(object, "/metadata/uid").to_owned(),
            created: created.map_or(i64::MAX, Timestamp::as_second),
            terminates: object.pointer("/metadata/deletionTimestamp").is_some(),
        })
    }
}

/// `status.podIPs`, without text that is no address.
fn addresses(object: &Value) -> Vec<IpAddr> {
    let listed = list(object, "/status/podIPs").iter();
    let mut addresses: Vec<IpAddr> = listed
        .filter_map(|entry| text(entry, "/ip").parse().ok())
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}
