//! Describes `PodMap`: the addresses of the Pods on one Node.

use super::property::{Need, OBJECT_NAME, Object, Property, Resource, Shape, Text};
use super::status::AGE;

/// The limit of addresses in one `PodMap`.
pub const MAX_POD_ADDRESSES: usize = 2_048;

pub const POD_MAP: Resource = Resource {
    kind: "PodMap",
    plural: "podmaps",
    short: "pmap",
    namespaced: false,
    noun: "map",
    about: "The addresses of Pods on the Node of the same name, without Pods on the host network. With --pod-locator-namespaces the controller writes one for each Node that has Pods of the selected namespaces. ipvs-topo dns and ipvs-topo locate find the Node of a client by it, where spec.podCIDRs does not say it.",
    spec: Object {
        parts: &[SPEC],
        rules: &[],
        atomic: false,
    },
    status: Object::NOTHING,
    status_by: "",
    columns: &[AGE],
};

/// `namespace/name`.
pub(crate) const POD_NAME: Text = Text {
    what: "namespace/name",
    pattern: r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    fits: |text| match text.split_once('/') {
        Some((namespace, name)) => {
            !namespace.contains('.') && (OBJECT_NAME.fits)(namespace) && (OBJECT_NAME.fits)(name)
        }
        None => false,
    },
    remedy: "write the namespace and the name of the Pod, such as shop/cart-0",
    least: 3,
    most: 317,
};

const SPEC: &[Property] = &[Property {
    name: "pods",
    shape: Shape::Map {
        of: &Shape::Text(POD_NAME),
        most: MAX_POD_ADDRESSES,
        keys: "IP address",
    },
    need: Need::EmptyMap,
    about: "The Pod at each address.",
}];
