//! Names of policy objects.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Namespace and name of a `TopologyPolicy`, or the name of a `ClusterTopologyPolicy`, which has no namespace.
///
/// Prints as `TopologyPolicy shop/near` or `ClusterTopologyPolicy near`. [`PolicyName::path`] is the form without a
/// space, and [`FromStr`] parses that form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyName {
    /// The namespace; `None` for a `ClusterTopologyPolicy`.
    pub namespace: Option<Arc<str>>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

/// The kinds of policy objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyKind {
    /// `ClusterTopologyPolicy`.
    Cluster,
    /// `TopologyPolicy`.
    Namespaced,
}

impl PolicyKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Cluster, Self::Namespaced];

    /// The `kind` in the API.
    pub const fn api_value(self) -> &'static str {
        match self {
            Self::Cluster => "ClusterTopologyPolicy",
            Self::Namespaced => "TopologyPolicy",
        }
    }
}

/// The error for a text that is not the name of a policy object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsePolicyNameError;

impl fmt::Display for ParsePolicyNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not ClusterTopologyPolicy/NAME or TopologyPolicy/NAMESPACE/NAME")
    }
}

impl std::error::Error for ParsePolicyNameError {}

impl PolicyName {
    /// A `ClusterTopologyPolicy`.
    pub fn cluster(name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: None,
            name: name.into(),
        }
    }

    /// A `TopologyPolicy`.
    pub fn namespaced(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: Some(namespace.into()),
            name: name.into(),
        }
    }

    /// Its kind.
    pub const fn kind(&self) -> PolicyKind {
        match self.namespace {
            Some(_) => PolicyKind::Namespaced,
            None => PolicyKind::Cluster,
        }
    }

    /// The form in status objects: `TopologyPolicy/shop/near`, `ClusterTopologyPolicy/near`.
    pub fn path(&self) -> String {
        let kind = self.kind().api_value();
        match &self.namespace {
            Some(namespace) => format!("{kind}/{namespace}/{}", self.name),
            None => format!("{kind}/{}", self.name),
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind().api_value();
        match &self.namespace {
            Some(namespace) => write!(f, "{kind} {namespace}/{}", self.name),
            None => write!(f, "{kind} {}", self.name),
        }
    }
}

impl FromStr for PolicyName {
    type Err = ParsePolicyNameError;

    /// Parses the output of [`PolicyName::path`].
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, rest) = text.split_once('/').ok_or(ParsePolicyNameError)?;
        let mut kinds = PolicyKind::ALL.into_iter();
        let kind = kinds.find(|one| one.api_value() == kind);
        let name = match (kind.ok_or(ParsePolicyNameError)?, rest.split_once('/')) {
            (PolicyKind::Cluster, None) => Self::cluster(rest),
            (PolicyKind::Namespaced, Some((namespace, name))) => Self::namespaced(namespace, name),
            (PolicyKind::Cluster, Some(_)) | (PolicyKind::Namespaced, None) => {
                return Err(ParsePolicyNameError);
            }
        };
        let has_parts = !name.name.is_empty() && name.namespace.as_deref() != Some("");
        let is_one = has_parts && !name.name.contains('/');
        is_one.then_some(name).ok_or(ParsePolicyNameError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_name_is_read_as_it_was_written_and_nothing_else_is() {
        for name in [
            PolicyName::cluster("near"),
            PolicyName::namespaced("shop", "near"),
        ] {
            assert_eq!(name.path().parse(), Ok(name));
        }
        for text in [
            "",
            "near",
            "TopologyPolicy/near",
            "TopologyPolicy/shop/near/er",
            "TopologyPolicy//near",
            "TopologyPolicy/shop/",
            "ClusterTopologyPolicy/",
            "ClusterTopologyPolicy/shop/near",
            "TopologyDrain/near",
            "TopologyPolicy shop/near",
        ] {
            assert_eq!(
                text.parse::<PolicyName>(),
                Err(ParsePolicyNameError),
                "{text}"
            );
        }
    }
}
