//! What is watched: one line for each collection, with what is asked of the server about it.

use crate::object::Kind;
use kube_io::decode::{Encoding, TypeMeta};

/// One collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) kind: Kind,
    /// How the collection is called: `endpointslices.discovery.k8s.io`.
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    /// Which objects are wanted, for the server to leave out the others; escaped as a URL wants it.
    pub(crate) selector: &'static str,
    pub(crate) api_version: &'static str,
    /// Objects in a page: a page should stay below ten megabytes.
    pub(crate) page: u32,
    /// Whether it goes without: the server may not know the kind, or nothing may need it.
    pub(crate) need: Need,
    /// The form that is asked for.
    form: Encoding,
}

/// When a collection has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Always.
    Always,
    /// If the server knows the kind.
    IfKnown,
    /// If a policy selects by namespaces; only names and labels are asked for then.
    IfSelected,
    /// If it shall stand for the Nodes; the server may not know the kind.
    IfMapped,
}

/// kube-proxy's selector for Services and slices (KP-IN-01, KP-IN-02):
/// `!service.kubernetes.io/service-proxy-name,!service.kubernetes.io/headless`.
const OURS: &str =
    "%21service.kubernetes.io%2Fservice-proxy-name%2C%21service.kubernetes.io%2Fheadless";

/// Everything that is watched.
pub(crate) const RESOURCES: [Resource; 9] = [
    Resource::core(Kind::Node, "nodes", "/api/v1/nodes").page(200),
    Resource::core(Kind::Service, "services", "/api/v1/services").only(OURS),
    Resource::core(
        Kind::EndpointSlice,
        "endpointslices.discovery.k8s.io",
        "/apis/discovery.k8s.io/v1/endpointslices",
    )
    .version("discovery.k8s.io/v1")
    .only(OURS)
    .page(150),
    Resource::core(
        Kind::ServiceCidr,
        "servicecidrs.networking.k8s.io",
        "/apis/networking.k8s.io/v1/servicecidrs",
    )
    .version("networking.k8s.io/v1")
    .need(Need::IfKnown),
    Resource::ours(
        Kind::TopologyPolicy,
        "topologypolicies.topology.ipvs-topo.io",
        "/apis/topology.ipvs-topo.io/v1alpha1/topologypolicies",
    ),
    Resource::ours(
        Kind::ClusterTopologyPolicy,
        "clustertopologypolicies.topology.ipvs-topo.io",
        "/apis/topology.ipvs-topo.io/v1alpha1/clustertopologypolicies",
    ),
    Resource::ours(
        Kind::TopologyDrain,
        "topologydrains.topology.ipvs-topo.io",
        "/apis/topology.ipvs-topo.io/v1alpha1/topologydrains",
    ),
    Resource::core(Kind::Namespace, "namespaces", "/api/v1/namespaces").need(Need::IfSelected),
    // What it tells of are Nodes.
    Resource::ours(
        Kind::Node,
        "topologymaps.topology.ipvs-topo.io",
        "/apis/topology.ipvs-topo.io/v1alpha1/topologymaps",
    )
    .need(Need::IfMapped)
    .page(20),
];

/// The number of the Nodes in [`RESOURCES`].
pub(crate) const NODES: usize = 0;
/// The number of the maps in [`RESOURCES`].
pub(crate) const MAPS: usize = 8;

impl Resource {
    const fn core(kind: Kind, name: &'static str, path: &'static str) -> Self {
        Self {
            kind,
            name,
            path,
            selector: "",
            api_version: "v1",
            page: 500,
            need: Need::Always,
            form: Encoding::Protobuf,
        }
    }

    /// Any collection, by its path; nothing is asked about the kind of its objects.
    pub(crate) const fn at(path: &'static str) -> Self {
        Self::core(Kind::Node, "", path)
            .need(Need::IfKnown)
            .page(200)
            .json()
    }

    /// A kind that is defined by a `CustomResourceDefinition`.
    const fn ours(kind: Kind, name: &'static str, path: &'static str) -> Self {
        Self::core(kind, name, path)
            .version("topology.ipvs-topo.io/v1alpha1")
            .need(Need::IfKnown)
            .json()
    }

    const fn version(self, api_version: &'static str) -> Self {
        Self {
            api_version,
            ..self
        }
    }

    pub(crate) const fn only(self, selector: &'static str) -> Self {
        Self { selector, ..self }
    }

    const fn page(self, page: u32) -> Self {
        Self { page, ..self }
    }

    const fn json(self) -> Self {
        let form = Encoding::Json;
        Self { form, ..self }
    }

    const fn need(self, need: Need) -> Self {
        Self { need, ..self }
    }

    /// What its objects are.
    pub(crate) fn type_meta(&self) -> TypeMeta {
        TypeMeta {
            kind: self.kind.as_str(),
            api_version: self.api_version,
        }
    }

    /// In which form its objects are wanted, the best first.
    pub(crate) fn accept(&self, stream: bool) -> &'static str {
        match (self.form, self.need, stream) {
            (Encoding::Json, _, _) => "application/json",
            (Encoding::Protobuf, Need::IfSelected, false) => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
                 application/json"
            }
            (Encoding::Protobuf, Need::IfSelected, true) => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                 application/json"
            }
            (Encoding::Protobuf, _, _) => "application/vnd.kubernetes.protobuf,application/json",
        }
    }

    /// The path of a page; of the object `only` if one is named.
    pub(crate) fn page_path(&self, only: Option<&str>, token: Option<&str>, whole: bool) -> String {
        let mut path = format!("{}?{}", self.path, self.wanted(only));
        if !whole {
            path = format!("{path}limit={}", self.page);
        }
        match token {
            Some(token) => format!("{path}&continue={}", escaped(token)),
            None => path,
        }
    }

    /// The path of a stream that the server ends after about `seconds`: what changes after `version`, or everything
    /// and then what changes; of the object `only` if one is named.
    pub(crate) fn stream_path(
        &self,
        only: Option<&str>,
        version: Option<&str>,
        seconds: u64,
    ) -> String {
        let path = format!(
            "{}?{}watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}",
            self.path,
            self.wanted(only)
        );
        match version {
            Some(version) => format!("{path}&resourceVersion={}", escaped(version)),
            None => format!("{path}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        }
    }

    /// Which objects are wanted, as the beginning of a query.
    fn wanted(&self, only: Option<&str>) -> String {
        match (only, self.selector) {
            (Some(name), _) => format!("fieldSelector=metadata.name%3D{}&", escaped(name)),
            (None, "") => String::new(),
            (None, selector) => format!("labelSelector={selector}&"),
        }
    }
}

/// What a server gave, as a value in a URL.
fn escaped(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |value: u8| {
        DIGITS
            .get(usize::from(value))
            .map_or('0', |digit| char::from(*digit))
    };
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            escaped.push(char::from(byte));
        } else {
            escaped.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crd::{GROUP, VERSION};
    use kube_io::Target;

    fn input(kind: Kind) -> Resource {
        *RESOURCES.iter().find(|input| input.kind == kind).unwrap()
    }

    #[test]
    fn every_input_is_called_as_its_path_has_it_and_ours_are_of_our_version() {
        for input in RESOURCES {
            assert_eq!(Target::of(input.path).full_resource(), input.name);
            let ours = format!("/apis/{GROUP}/{VERSION}/");
            assert_eq!(
                input.path.starts_with(&ours),
                input.name.ends_with(GROUP),
                "{}",
                input.name
            );
            let (group, version) = input
                .api_version
                .split_once('/')
                .unwrap_or(("", input.api_version));
            let folder = if group.is_empty() {
                format!("/api/{version}/")
            } else {
                format!("/apis/{group}/{version}/")
            };
            assert!(input.path.starts_with(&folder), "{}", input.name);
        }
    }

    #[test]
    fn kubernetes_own_kinds_are_asked_for_as_protobuf_and_ours_as_json() {
        for input in RESOURCES {
            for stream in [false, true] {
                let accept = input.accept(stream);
                let is_ours = input.name.ends_with(GROUP);
                assert_eq!(accept == "application/json", is_ours, "{accept}");
                let best = accept.split(',').next().unwrap();
                let form = if is_ours {
                    Encoding::Json
                } else {
                    Encoding::Protobuf
                };
                assert_eq!(Encoding::of(best), form, "{accept}");
                assert!(accept.ends_with("application/json"), "{accept}");
                let only_metadata = best.contains(";as=PartialObjectMetadata");
                assert_eq!(only_metadata, input.kind == Kind::Namespace, "{accept}");
                assert_eq!(best.contains("List;"), only_metadata && !stream, "{accept}");
            }
        }
    }

    #[test]
    fn nodes_and_maps_are_where_their_numbers_say() {
        assert_eq!(RESOURCES[NODES].name, "nodes");
        assert_eq!(RESOURCES[MAPS].need, Need::IfMapped);
    }

    #[test]
    fn kp_in_01_the_server_leaves_out_other_proxies_and_headless_services() {
        for kind in [Kind::Service, Kind::EndpointSlice] {
            let path = input(kind).stream_path(None, Some("5"), 300);
            let plain = path
                .replace("%21", "!")
                .replace("%2F", "/")
                .replace("%2C", ",");
            let selector = "labelSelector=!service.kubernetes.io/service-proxy-name,!service.kubernetes.io/headless";
            assert!(plain.contains(selector), "{plain}");
        }
    }

    #[test]
    fn paths_say_where_to_go_on() {
        let nodes = input(Kind::Node);
        assert_eq!(
            nodes.page_path(None, None, false),
            "/api/v1/nodes?limit=200"
        );
        assert_eq!(
            nodes.page_path(None, Some("a b="), false),
            "/api/v1/nodes?limit=200&continue=a%20b%3D"
        );
        assert_eq!(nodes.page_path(None, None, true), "/api/v1/nodes?");
        assert_eq!(
            nodes.stream_path(None, Some("12"), 300),
            "/api/v1/nodes?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=12"
        );
        assert_eq!(
            nodes.page_path(Some("n1"), None, false),
            "/api/v1/nodes?fieldSelector=metadata.name%3Dn1&limit=200"
        );
    }
}
