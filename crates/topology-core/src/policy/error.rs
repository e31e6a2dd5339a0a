//! What can be wrong with a policy.

/// Why a policy is ignored: the field, its value and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct PolicyError {
    /// The annotation or field, such as `topology.ipvs-topo.io/weights` or `spec.topologyKeys[2]`.
    pub field: String,
    /// The value that was found.
    pub value: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

/// What a valid policy's owner should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyWarning {
    /// The annotation or field.
    pub field: String,
    /// What was done and what to write instead.
    pub message: String,
}
