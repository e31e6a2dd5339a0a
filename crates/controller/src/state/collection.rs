//! The collections of objects that the controller follows.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collection {
    Nodes,
    ClusterPolicies,
    Policies,
    Drains,
    Agents,
    /// `TopologyMap` objects; only the controller writes them.
    Maps,
    Services,
    /// `EndpointSlice` objects that the controller of Kubernetes does not create.
    Slices,
    /// Pods that may have an address of their own.
    Pods,
    /// `PodMap` objects; only the controller writes them.
    PodMaps,
    /// `PodLocator` objects; only the controller writes them.
    PodLocators,
}

impl Collection {
    /// The collections that are always followed.
    pub const ALWAYS: [Self; 7] = [
        Self::Nodes,
        Self::ClusterPolicies,
        Self::Policies,
        Self::Drains,
        Self::Agents,
        Self::Maps,
        Self::Services,
    ];
    /// The collections that hints depend on.
    pub const FOR_HINTS: [Self; 2] = [Self::Services, Self::Slices];

    /// The collections that are followed with `--pod-locator-namespaces`.
    pub const FOR_PODS: [Self; 3] = [Self::Pods, Self::PodMaps, Self::PodLocators];

    const fn row(self) -> CollectionRow {
        match self {
            Self::Nodes => CollectionRow::of("Node", "/api/v1/nodes"),
            Self::ClusterPolicies => CollectionRow::of(
                "ClusterTopologyPolicy",
                "/apis/topology.ipvs-topo.io/v1alpha1/clustertopologypolicies",
            ),
            Self::Policies => CollectionRow::of(
                "TopologyPolicy",
                "/apis/topology.ipvs-topo.io/v1alpha1/topologypolicies",
            ),
            Self::Drains => CollectionRow::of(
                "TopologyDrain",
                "/apis/topology.ipvs-topo.io/v1alpha1/topologydrains",
            ),
            Self::Agents => CollectionRow::of(
                "TopologyAgent",
                "/apis/topology.ipvs-topo.io/v1alpha1/topologyagents",
            ),
            Self::Maps => CollectionRow::of(
                "TopologyMap",
                "/apis/topology.ipvs-topo.io/v1alpha1/topologymaps",
            ),
            Self::Services => CollectionRow::of("Service", "/api/v1/services"),
            Self::Slices => CollectionRow {
                selector: SLICES_OF_OTHERS,
                ..CollectionRow::of("EndpointSlice", "/apis/discovery.k8s.io/v1/endpointslices")
            },
            Self::Pods => CollectionRow {
                fields: PODS_WITH_ADDRESSES,
                ..CollectionRow::of("Pod", "/api/v1/pods")
            },
            Self::PodMaps => {
                CollectionRow::of("PodMap", "/apis/topology.ipvs-topo.io/v1alpha1/podmaps")
            }
            Self::PodLocators => CollectionRow::of(
                "PodLocator",
                "/apis/topology.ipvs-topo.io/v1alpha1/podlocators",
            ),
        }
    }

    pub const fn kind(self) -> &'static str {
        self.row().kind
    }

    /// The path of all objects.
    pub const fn list_path(self) -> &'static str {
        self.row().list_path
    }

    /// The label selector, percent-encoded.
    pub const fn selector(self) -> &'static str {
        self.row().selector
    }

    /// The field selector, percent-encoded.
    pub const fn fields(self) -> &'static str {
        self.row().fields
    }

    /// Whether its kind is a CRD of this project, which a cluster may not have.
    pub const fn is_custom(self) -> bool {
        match self {
            Self::Nodes | Self::Services | Self::Slices | Self::Pods => false,
            Self::ClusterPolicies
            | Self::Policies
            | Self::Drains
            | Self::Agents
            | Self::Maps
            | Self::PodMaps
            | Self::PodLocators => true,
        }
    }

    /// The `apiVersion` of its objects.
    pub(super) fn version(self) -> &'static str {
        let (root, _) = self.root_and_resource();
        root.trim_start_matches("/apis/")
            .trim_start_matches("/api/")
    }

    /// The path of the collection, or of one object in it.
    pub fn path(self, namespace: &str, name: &str) -> String {
        let (root, resource) = self.root_and_resource();
        let mut path = root.to_owned();
        if !namespace.is_empty() {
            path.extend(["/namespaces/", namespace]);
        }
        path.extend(["/", resource]);
        if !name.is_empty() {
            path.extend(["/", name]);
        }
        path
    }

    /// The two parts of the path: `/apis/GROUP/VERSION` and the resource.
    fn root_and_resource(self) -> (&'static str, &'static str) {
        let path = self.list_path();
        path.rsplit_once('/').unwrap_or((path, ""))
    }
}

/// What is requested for a collection.
struct CollectionRow {
    kind: &'static str,
    list_path: &'static str,
    selector: &'static str,
    fields: &'static str,
}

impl CollectionRow {
    /// Requests all objects.
    const fn of(kind: &'static str, list_path: &'static str) -> Self {
        Self {
            kind,
            list_path,
            selector: "",
            fields: "",
        }
    }
}

/// Selects slices that node proxies serve, without those of `endpointslice-controller.k8s.io`.
const SLICES_OF_OTHERS: &str = "%21service.kubernetes.io%2Fservice-proxy-name%2C%21service.kubernetes.io%2Fheadless%2C\
     endpointslice.kubernetes.io%2Fmanaged-by%21%3Dendpointslice-controller.k8s.io";

/// Selects Pods that may have an address of their own: scheduled, not on the host network, not ended.
const PODS_WITH_ADDRESSES: &str = "spec.nodeName%21%3D%2Cspec.hostNetwork%3Dfalse%2Cstatus.phase%21%3DSucceeded%2C\
     status.phase%21%3DFailed";

#[cfg(test)]
mod tests {
    use crd::{GROUP, VERSION};

    use super::*;

    #[test]
    fn the_paths_and_versions_follow_from_the_path_of_the_list() {
        let path = |collection: Collection| collection.path("shop", "cart");
        assert_eq!(Collection::Nodes.path("", ""), "/api/v1/nodes");
        assert_eq!(Collection::Nodes.version(), "v1");
        let slice = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/cart";
        assert_eq!(path(Collection::Slices), slice);
        assert_eq!(Collection::Slices.version(), "discovery.k8s.io/v1");
        let policy = format!("/apis/{GROUP}/{VERSION}/namespaces/shop/topologypolicies/cart");
        assert_eq!(path(Collection::Policies), policy);
    }

    #[test]
    fn the_collections_of_this_project_have_the_version_of_its_crds() {
        let version = format!("{GROUP}/{VERSION}");
        let all = [
            &Collection::ALWAYS[..],
            &Collection::FOR_HINTS,
            &Collection::FOR_PODS,
        ];
        for &collection in all.into_iter().flatten() {
            let is_ours = collection.list_path().contains("ipvs-topo.io");
            assert_eq!(is_ours, collection.version() == version, "{collection:?}");
            assert_eq!(is_ours, collection.is_custom(), "{collection:?}");
        }
    }
}
