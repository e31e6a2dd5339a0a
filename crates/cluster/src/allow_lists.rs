//! What administrators allow Services to use.

use std::collections::BTreeSet;
use std::sync::Arc;

use topology_core::model::IpNetwork;

/// What Services may use. All programs that decide about one cluster need the same lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowLists {
    /// The labels that annotations may use, besides the built-in ones. `None` allows all labels.
    pub annotation_keys: Option<BTreeSet<Arc<str>>>,
    /// The ranges of `spec.externalIPs`. Without a range no external IP is served, because any
    /// tenant could take any address with it (CVE-2020-8554).
    pub external_ips: Vec<IpNetwork>,
}
