//! Lets the controller change nothing in an `EndpointSlice` but the hints.
//!
//! The right to patch a slice is the right to send the traffic of its Service elsewhere, and the rules of RBAC know no
//! fields.

use super::policy::{Check, Policy};

/// What others read of a slice besides its endpoints. Its address type never changes.
const SLICE_FIELDS: [&str; 5] = [
    "metadata.?labels",
    "metadata.?annotations",
    "metadata.?ownerReferences",
    "metadata.?finalizers",
    "?ports",
];
/// The fields of an endpoint in `discovery.k8s.io/v1`, without `hints` and without `deprecatedTopology`, which the API
/// server removes in every update of endpoints.
const ENDPOINT_FIELDS: [&str; 6] = [
    "addresses",
    "?conditions",
    "?hostname",
    NODE_NAME,
    "?targetRef",
    "?zone",
];
/// Where `deprecatedTopology` had the name of the node, the API server moves it to `nodeName` (`dropTopologyOnV1` in
/// `pkg/registry/discovery/endpointslice/strategy.go`).
const NODE_NAME: &str = "?nodeName.or(endpoint.?deprecatedTopology[?'kubernetes.io/hostname'])";
/// The controller's service account, in any namespace.
const ACCOUNT: &str = "ipvs-topo-controller";

pub(super) fn policy() -> Policy {
    let is_controller = format!(
        "request.userInfo.username.startsWith('system:serviceaccount:') && request.userInfo.username.endsWith(':{ACCOUNT}')"
    );
    let of_slice = SLICE_FIELDS.map(|field| {
        let holds = format!("object.{field} == oldObject.{field}");
        check(holds, field)
    });
    let of_endpoints = ENDPOINT_FIELDS.map(|field| {
        let values = |slice: &str| format!("{slice}.endpoints.map(endpoint, endpoint.{field})");
        let holds = format!("{} == {}", values("object"), values("oldObject"));
        let name = field.split('.').next().unwrap_or(field);
        check(holds, &format!("endpoints[].{name}"))
    });
    Policy {
        name: "ipvs-topo-hints-only",
        group: "discovery.k8s.io",
        version: "v1",
        resources: &["endpointslices"],
        only_if: vec![("the-controller-writes", is_controller)],
        variables: Vec::new(),
        checks: of_slice.into_iter().chain(of_endpoints).collect(),
    }
}

fn check(holds: String, field: &str) -> Check {
    let field = field.replace('?', "");
    Check::new(
        holds,
        format!(
            "the controller changes only the hints of an EndpointSlice, and not {field}; write the slice as its manager does, as another user"
        ),
    )
}
