//! Reads group, resource, namespace and name from the path of a request.

use std::fmt;

/// A verb of RBAC rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads all objects.
    List,
    /// Streams changes.
    Watch,
    Create,
    /// Replaces an object.
    Update,
    /// Changes parts of an object, or creates it.
    Patch,
    Delete,
}

impl Verb {
    /// The verb in RBAC rules.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    pub const fn method(self) -> &'static str {
        match self {
            Self::Get | Self::List | Self::Watch => "GET",
            Self::Create => "POST",
            Self::Update => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// The object or collection that a path names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Target {
    /// The API group, empty for the core group.
    pub group: String,
    /// The resource, with its subresource if there is one: `services`, `nodes/status`. A path
    /// without a resource (`/version`) is here as it is.
    pub resource: String,
    /// The namespace; empty if the path has none.
    pub namespace: String,
    /// The object's name; empty for a collection.
    pub name: String,
}

impl Target {
    /// Reads a path. The query is ignored.
    pub fn of(path: &str) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let group = match (parts.next(), parts.next()) {
            (Some("api"), Some(_version)) => "",
            (Some("apis"), Some(group)) if parts.next().is_some() => group,
            _ => return Self::other(path),
        };
        let rest: Vec<&str> = parts.collect();
        let (namespace, rest) = match rest.as_slice() {
            ["namespaces", _name, "status" | "finalize"] => ("", rest.as_slice()),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let (resource, name) = match rest {
            [] => return Self::other(path),
            [resource] => ((*resource).to_owned(), ""),
            [resource, name] => ((*resource).to_owned(), *name),
            [resource, name, part, ..] => (format!("{resource}/{part}"), *name),
        };
        Self {
            group: group.to_owned(),
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    fn other(path: &str) -> Self {
        Self {
            resource: path.to_owned(),
            ..Self::default()
        }
    }

    /// The RBAC rule that permits the request: `apiGroups: [""], resources: ["nodes"], verbs:
    /// ["list", "watch"]`. A rule for one of list and watch always has both.
    pub fn rule(&self, verb: Verb) -> String {
        let verbs = match verb {
            Verb::List | Verb::Watch => "\"list\", \"watch\"".to_owned(),
            other => format!("\"{}\"", other.as_str()),
        };
        let Self {
            group, resource, ..
        } = self;
        format!("apiGroups: [\"{group}\"], resources: [\"{resource}\"], verbs: [{verbs}]")
    }

    /// The resource as `kubectl` accepts it: `services`, `endpointslices.discovery.k8s.io`.
    pub fn full_resource(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

/// `nodes n1`, `services shop/cart`, `services in shop`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full_resource())?;
        match (&*self.namespace, &*self.name) {
            ("", "") => Ok(()),
            ("", name) => write!(f, " {name}"),
            (namespace, "") => write!(f, " in {namespace}"),
            (namespace, name) => write!(f, " {namespace}/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_group_resource_namespace_and_name() {
        for (path, text) in [
            ("/api/v1/nodes", "nodes"),
            ("/api/v1/nodes/n1/status", "nodes/status n1"),
            ("/api/v1/namespaces/shop", "namespaces shop"),
            ("/api/v1/namespaces/shop/status", "namespaces/status shop"),
            ("/api/v1/namespaces/shop/services", "services in shop"),
            (
                "/api/v1/namespaces/shop/services/cart?x=/y",
                "services shop/cart",
            ),
            (
                "/apis/discovery.k8s.io/v1/endpointslices?watch=true",
                "endpointslices.discovery.k8s.io",
            ),
            (
                "/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
                "leases.coordination.k8s.io a/b",
            ),
            ("/version", "/version"),
            ("/apis/apps/v1", "/apis/apps/v1"),
        ] {
            assert_eq!(Target::of(path).to_string(), text, "{path}");
        }
    }

    #[test]
    fn the_missing_rule_has_the_format_of_a_role() {
        let target = Target::of("/apis/topology.ipvs-topo.io/v1alpha1/topologyagents/n1/status");
        assert_eq!(
            target.rule(Verb::Patch),
            "apiGroups: [\"topology.ipvs-topo.io\"], resources: [\"topologyagents/status\"], verbs: [\"patch\"]"
        );
    }
}
