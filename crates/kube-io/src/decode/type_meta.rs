//! The kind of the objects of a collection.

/// The `kind` and `apiVersion` of every object of a collection. Items of a list have none, and
/// metadata-only objects have others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeMeta {
    pub kind: &'static str,
    /// For example `v1`, `discovery.k8s.io/v1`.
    pub api_version: &'static str,
}

impl TypeMeta {
    pub(super) const fn entries(self) -> [(&'static str, &'static str); 2] {
        [("kind", self.kind), ("apiVersion", self.api_version)]
    }
}
