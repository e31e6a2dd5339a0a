//! Names of objects, with namespaces.

use std::fmt;
use std::sync::Arc;

/// Namespace and name of an object. Prints as in kubectl: `shop/cart`, or `near` without a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The namespace; empty for cluster-scoped kinds.
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

    /// Parses `namespace/name`; `None` unless the text is two names with one `/` between them.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/')?;
        let fits = |part: &str| !part.is_empty() && !part.contains('/');
        (fits(namespace) && fits(name)).then(|| Self::new(namespace, name))
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}
