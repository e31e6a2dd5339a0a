//! What the cluster says, as plain values: nodes, Services, EndpointSlices, policies and drains.

mod address;
mod drain;
mod endpoint;
mod frontend;
mod labels;
mod name;
mod node;
mod policy_name;
mod selector;
mod service;
mod topology_policy;

pub use address::{Cidr, Family, ParseCidrError, Protocol};
pub use drain::{Drain, DrainScope, HardServices, OnLastDomain};
pub use endpoint::{Endpoint, EndpointSlice, Hints, SlicePort};
pub use frontend::{Frontend, FrontendKind};
pub use labels::Labels;
pub use name::ObjectName;
pub use node::{CAPACITY_LABEL, Node};
pub use policy_name::{ParsePolicyNameError, PolicyKind, PolicyName};
pub use selector::{Expression, Operator, Selector};
pub use service::{Faults, Service, ServicePort, TrafficPolicy, Unprogrammed};
pub use topology_policy::{Enforcement, OwnerLimits, TopologyPolicy};
