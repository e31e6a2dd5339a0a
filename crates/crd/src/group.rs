//! Names the API group of our kinds, and its version.

/// The API group of every resource of ours.
pub const GROUP: &str = "topology.ipvs-topo.io";
/// The only version there is.
pub const VERSION: &str = "v1alpha1";
