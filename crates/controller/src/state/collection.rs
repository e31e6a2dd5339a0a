//! The collections of objects that the controller follows.

use crd::{GROUP, VERSION};

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

    pub const fn resource(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::ClusterPolicies => "clustertopologypolicies",
            Self::Policies => "topologypolicies",
            Self::Drains => "topologydrains",
            Self::Agents => "topologyagents",
            Self::Maps => "topologymaps",
            Self::Services => "services",
            Self::Slices => "endpointslices",
            Self::Pods => "pods",
            Self::PodMaps => "podmaps",
            Self::PodLocators => "podlocators",
        }
    }

    pub const fn kind(self) -> &'static str {
        match self {
            Self::Nodes => "Node",
            Self::ClusterPolicies => "ClusterTopologyPolicy",
            Self::Policies => "TopologyPolicy",
            Self::Drains => "TopologyDrain",
            Self::Agents => "TopologyAgent",
            Self::Maps => "TopologyMap",
            Self::Services => "Service",
            Self::Slices => "EndpointSlice",
            Self::Pods => "Pod",
            Self::PodMaps => "PodMap",
            Self::PodLocators => "PodLocator",
        }
    }

    pub(super) fn version(self) -> String {
        match self {
            Self::Nodes | Self::Services | Self::Pods => "v1".to_owned(),
            Self::Slices => "discovery.k8s.io/v1".to_owned(),
            Self::ClusterPolicies
            | Self::Policies
            | Self::Drains
            | Self::Agents
            | Self::Maps
            | Self::PodMaps
            | Self::PodLocators => format!("{GROUP}/{VERSION}"),
        }
    }

    /// The path of all objects.
    pub const fn list_path(self) -> &'static str {
        match self {
            Self::Nodes => "/api/v1/nodes",
            Self::ClusterPolicies => "/apis/topology.ipvs-topo.io/v1alpha1/clustertopologypolicies",
            Self::Policies => "/apis/topology.ipvs-topo.io/v1alpha1/topologypolicies",
            Self::Drains => "/apis/topology.ipvs-topo.io/v1alpha1/topologydrains",
            Self::Agents => "/apis/topology.ipvs-topo.io/v1alpha1/topologyagents",
            Self::Maps => "/apis/topology.ipvs-topo.io/v1alpha1/topologymaps",
            Self::Services => "/api/v1/services",
            Self::Slices => "/apis/discovery.k8s.io/v1/endpointslices",
            Self::Pods => "/api/v1/pods",
            Self::PodMaps => "/apis/topology.ipvs-topo.io/v1alpha1/podmaps",
            Self::PodLocators => "/apis/topology.ipvs-topo.io/v1alpha1/podlocators",
        }
    }

    /// The label selector, percent-encoded. Selects slices that node proxies serve, without those of
    /// `endpointslice-controller.k8s.io`.
    pub const fn selector(self) -> &'static str {
        match self {
            Self::Slices => {
                "%21service.kubernetes.io%2Fservice-proxy-name%2C%21service.kubernetes.io%2Fheadless%2C\
                 endpointslice.kubernetes.io%2Fmanaged-by%21%3Dendpointslice-controller.k8s.io"
            }
            Self::Nodes
            | Self::ClusterPolicies
            | Self::Policies
            | Self::Drains
            | Self::Agents
            | Self::Maps
            | Self::Services
            | Self::Pods
            | Self::PodMaps
            | Self::PodLocators => "",
        }
    }

    /// The field selector, percent-encoded. Selects Pods that may have an address of their own: scheduled, not on the
    /// host network, not ended.
    pub const fn fields(self) -> &'static str {
        match self {
            Self::Pods => {
                "spec.nodeName%21%3D%2Cspec.hostNetwork%3Dfalse%2Cstatus.phase%21%3DSucceeded%2C\
                 status.phase%21%3DFailed"
            }
            Self::Nodes
            | Self::ClusterPolicies
            | Self::Policies
            | Self::Drains
            | Self::Agents
            | Self::Maps
            | Self::Services
            | Self::Slices
            | Self::PodMaps
            | Self::PodLocators => "",
        }
    }

    /// The path of the collection, or of one object in it.
    pub fn path(self, namespace: &str, name: &str) -> String {
        let version = self.version();
        let root = if version.contains('/') { "apis" } else { "api" };
        let mut path = format!("/{root}/{version}");
        if !namespace.is_empty() {
            path.extend(["/namespaces/", namespace]);
        }
        path.extend(["/", self.resource()]);
        if !name.is_empty() {
            path.extend(["/", name]);
        }
        path
    }
}
