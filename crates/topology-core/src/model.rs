//! The cluster state as plain values: Nodes, Services, EndpointSlices, policies and drains.

mod address;
mod drain;
mod endpoint;
mod frontend;
mod labels;
mod name;
mod node;
mod node_pods;
mod node_port_addresses;
mod policy_name;
mod range;
mod selector;
mod service;
mod service_port;
mod topology_policy;

pub use address::{Family, Protocol};
pub use drain::{Drain, DrainScope, HardServices, OnLastDomain};
pub use endpoint::{Endpoint, EndpointSlice, Hints, SlicePort};
pub use frontend::{Frontend, FrontendKind};
/// All ranges in the model come from [`parse_range`] or [`range_around`], so their host bits are zero.
pub use ipnetwork::IpNetwork;
pub use labels::Labels;
pub use name::ObjectName;
pub use node::{CAPACITY_LABEL, Node};
pub use node_pods::NodePods;
pub use node_port_addresses::{NodePortAddresses, NodePortEntry, ParseNodePortEntryError};
pub use policy_name::{ParsePolicyNameError, PolicyKind, PolicyName};
pub use range::{ParseRangeError, parse_address, parse_range, range_around};
pub use selector::{Expression, Operator, Selector};
pub use service::{Faults, Service, TrafficPolicy, Unprogrammed};
pub use service_port::ServicePort;
pub use topology_policy::{Enforcement, OwnerLimits, TopologyPolicy};
