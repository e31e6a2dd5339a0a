//! A fallback that agents report.

use topology_core::model::PolicyName;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceFallback {
    /// The policy that falls back; `None` for annotations.
    pub policy: Option<PolicyName>,
    /// The requested mode; empty if unknown.
    pub from: String,
    /// The mode that the Service gets instead.
    pub to: String,
    /// When the first Node reported it, in milliseconds since 1970.
    pub since: i64,
    pub nodes: usize,
}
