//! Describes the resources of a cluster: path, selector, format, and when each is requested.

use kube_io::decode::TypeMeta;
use kube_io::list_watch::{Format, Resource};

use crate::ServiceSelection;
use crate::object::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ResourceId {
    Objects(Kind),
    /// `TopologyMap` objects, which can replace the Nodes.
    TopologyMaps,
}

impl ResourceId {
    pub(crate) const NODES: Self = Self::Objects(Kind::Node);
    pub(crate) const POD_MAPS: Self = Self::Objects(Kind::PodMap);

    /// Whether an object concerns one Service only.
    pub(crate) const fn is_of_one_service(self) -> bool {
        matches!(self.kind(), Kind::Service | Kind::EndpointSlice)
    }

    /// The kind that the objects describe: Nodes in the case of `TopologyMap` objects.
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Objects(kind) => kind,
            Self::TopologyMaps => Kind::Node,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatchedResource {
    pub(crate) id: ResourceId,
    /// The resource as `kubectl` accepts it: `endpointslices.discovery.k8s.io`.
    pub(crate) name: &'static str,
    pub(crate) need: Need,
    pub(crate) resource: Resource,
}

/// When a resource is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Always; the server must know the kind.
    Always,
    /// Always; the server may not know the kind.
    IfKnown,
    /// When a policy selects by namespaces. Only names and labels are requested.
    IfSelected,
    /// When Nodes may be read from TopologyMaps; the server may not know the kind.
    IfMapped,
}

/// kube-proxy's selector for Services and slices (KP-IN-01, KP-IN-02):
/// `!service.kubernetes.io/service-proxy-name,!service.kubernetes.io/headless`.
const PROXY_SELECTOR: &str =
    "%21service.kubernetes.io%2Fservice-proxy-name%2C%21service.kubernetes.io%2Fheadless";

/// The resources of a cluster, in the order of `ipvs-topo status`.
pub(crate) fn cluster_resources(services: ServiceSelection) -> Vec<WatchedResource> {
    let selector = match services {
        ServiceSelection::Proxied => PROXY_SELECTOR,
        ServiceSelection::ProxiedAndHeadless | ServiceSelection::All => "",
    };
    let mut resources = vec![
        core(Kind::Node, "nodes", "/api/v1/nodes").page_size(200),
        core(Kind::Service, "services", "/api/v1/services").selector(selector),
        core(
            Kind::EndpointSlice,
            "endpointslices.discovery.k8s.io",
            "/apis/discovery.k8s.io/v1/endpointslices",
        )
        .api_version("discovery.k8s.io/v1")
        .selector(selector)
        .page_size(150),
        core(
            Kind::ServiceCidr,
            "servicecidrs.networking.k8s.io",
            "/apis/networking.k8s.io/v1/servicecidrs",
        )
        .api_version("networking.k8s.io/v1")
        .need(Need::IfKnown),
        custom(
            ResourceId::Objects(Kind::TopologyPolicy),
            "topologypolicies.topology.ipvs-topo.io",
            "/apis/topology.ipvs-topo.io/v1alpha1/topologypolicies",
        ),
        custom(
            ResourceId::Objects(Kind::ClusterTopologyPolicy),
            "clustertopologypolicies.topology.ipvs-topo.io",
            "/apis/topology.ipvs-topo.io/v1alpha1/clustertopologypolicies",
        ),
        custom(
            ResourceId::Objects(Kind::TopologyDrain),
            "topologydrains.topology.ipvs-topo.io",
            "/apis/topology.ipvs-topo.io/v1alpha1/topologydrains",
        ),
        core(Kind::Namespace, "namespaces", "/api/v1/namespaces")
            .need(Need::IfSelected)
            .format(Format::Metadata),
        custom(
            ResourceId::TopologyMaps,
            "topologymaps.topology.ipvs-topo.io",
            "/apis/topology.ipvs-topo.io/v1alpha1/topologymaps",
        )
        .need(Need::IfMapped)
        .page_size(20),
    ];
    if services == ServiceSelection::All {
        let pod_maps = custom(
            ResourceId::POD_MAPS,
            "podmaps.topology.ipvs-topo.io",
            "/apis/topology.ipvs-topo.io/v1alpha1/podmaps",
        );
        resources.push(pod_maps.page_size(200));
    }
    resources
}

/// A kind of Kubernetes itself, requested as protobuf.
fn core(kind: Kind, name: &'static str, path: &'static str) -> WatchedResource {
    let watched = WatchedResource {
        id: ResourceId::Objects(kind),
        name,
        need: Need::Always,
        resource: Resource::new(path),
    };
    watched.api_version("v1").format(Format::Protobuf)
}

/// A kind of this project's CRDs, requested as JSON.
fn custom(id: ResourceId, name: &'static str, path: &'static str) -> WatchedResource {
    let watched = WatchedResource {
        id,
        name,
        need: Need::Always,
        resource: Resource::new(path),
    };
    watched
        .api_version("topology.ipvs-topo.io/v1alpha1")
        .need(Need::IfKnown)
}

impl WatchedResource {
    fn api_version(mut self, api_version: &'static str) -> Self {
        self.resource.type_meta = Some(TypeMeta {
            kind: self.id.kind().as_str(),
            api_version,
        });
        self
    }

    fn selector(mut self, selector: &'static str) -> Self {
        self.resource.selector = selector;
        self
    }

    fn page_size(mut self, page_size: u32) -> Self {
        self.resource.page_size = page_size;
        self
    }

    fn format(mut self, format: Format) -> Self {
        self.resource.format = format;
        self
    }

    fn need(mut self, need: Need) -> Self {
        self.resource.optional = matches!(need, Need::IfKnown | Need::IfMapped);
        self.need = need;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crd::{GROUP, VERSION};
    use kube_io::Target;

    #[test]
    fn the_name_of_every_resource_matches_its_path_and_version() {
        for watched in cluster_resources(ServiceSelection::All) {
            let path = watched.resource.path;
            assert_eq!(Target::of(path).full_resource(), watched.name);
            let ours = format!("/apis/{GROUP}/{VERSION}/");
            assert_eq!(
                path.starts_with(&ours),
                watched.name.ends_with(GROUP),
                "{}",
                watched.name
            );
            let api_version = watched.resource.type_meta.unwrap().api_version;
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let folder = if group.is_empty() {
                format!("/api/{version}/")
            } else {
                format!("/apis/{group}/{version}/")
            };
            assert!(path.starts_with(&folder), "{}", watched.name);
        }
    }

    #[test]
    fn kubernetes_kinds_are_requested_as_protobuf_and_custom_kinds_as_json() {
        for watched in cluster_resources(ServiceSelection::Proxied) {
            let expected = if watched.name.ends_with(GROUP) {
                Format::Json
            } else if watched.id.kind() == Kind::Namespace {
                Format::Metadata
            } else {
                Format::Protobuf
            };
            assert_eq!(watched.resource.format, expected, "{}", watched.name);
        }
    }

    #[test]
    fn kp_in_01_the_server_leaves_out_other_proxies_and_headless_services() {
        for kind in [Kind::Service, Kind::EndpointSlice] {
            let resources = cluster_resources(ServiceSelection::Proxied);
            let mut resources = resources.iter();
            let watched = resources.find(|watched| watched.id.kind() == kind).unwrap();
            let plain = watched.resource.selector;
            let plain = plain
                .replace("%21", "!")
                .replace("%2F", "/")
                .replace("%2C", ",");
            let selector =
                "!service.kubernetes.io/service-proxy-name,!service.kubernetes.io/headless";
            assert_eq!(plain, selector);
        }
    }

    #[test]
    fn all_services_are_requested_without_a_selector() {
        for services in [ServiceSelection::All, ServiceSelection::ProxiedAndHeadless] {
            for watched in cluster_resources(services) {
                assert_eq!(watched.resource.selector, "", "{}", watched.name);
            }
        }
    }
}
