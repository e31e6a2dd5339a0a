//! What the cluster says, as plain values: nodes, Services, EndpointSlices and their parts.

mod address;
mod endpoint;
mod labels;
mod name;
mod node;
mod service;

pub use address::{Cidr, Family, ParseCidrError, Protocol};
pub use endpoint::{Endpoint, EndpointSlice, Hints, SlicePort};
pub use labels::Labels;
pub use name::ObjectName;
pub use node::{CAPACITY_LABEL, Node};
pub use service::{Service, ServicePort, TrafficPolicy, Unprogrammed};
