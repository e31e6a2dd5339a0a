//! The API group and version of the custom resources.

pub const GROUP: &str = "topology.ipvs-topo.io";
pub const VERSION: &str = "v1alpha1";
