//! Names the kind of the objects of a collection.

/// The `kind` and `apiVersion` of every object of a collection. Elements of a list have none, and objects that were
/// requested as metadata only have others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeMeta {
    /// The kind.
    pub kind: &'static str,
    /// The API version: `v1`, `discovery.k8s.io/v1`.
    pub api_version: &'static str,
}

impl TypeMeta {
    /// The fields with their names.
    pub(super) const fn entries(self) -> [(&'static str, &'static str); 2] {
        [("kind", self.kind), ("apiVersion", self.api_version)]
    }
}
