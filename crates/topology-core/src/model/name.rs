//! The name of a namespaced object.

use std::fmt;
use std::sync::Arc;

/// Namespace and name of a namespaced object, printed as kubectl does: `shop/cart`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name inside the namespace.
    pub name: Arc<str>,
}

impl ObjectName {
    /// The name `namespace/name`.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
