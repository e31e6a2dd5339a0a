//! A fallback that agents report.

use topology_core::model::PolicyName;

/// A fallback of a Service, as the reports of all Nodes show it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceFallback {
    /// The policy that is not met; none = annotations.
    pub policy: Option<PolicyName>,
    /// What the policy asks for; empty = unknown.
    pub from: String,
    /// What the Service gets instead.
    pub to: String,
    /// When the first Node reported it, in milliseconds since 1970.
    pub since: i64,
    /// The number of Nodes that report it.
    pub nodes: usize,
}
