//! Errors and warnings about policies.

/// Why a setting is ignored: the field, its value and the problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct PolicyError {
    /// The annotation or field, such as `topology.ipvs-topo.io/weights` or `spec.topologyKeys[2]`.
    pub field: String,
    /// The value that was found.
    pub value: String,
    /// The problem, and what would be valid.
    pub problem: String,
}

/// A warning about a valid policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyWarning {
    /// The annotation or field.
    pub field: String,
    /// What the setting means here, and what to write instead.
    pub message: String,
}
