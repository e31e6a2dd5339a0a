//! Generates clusters of any size for benches, the same for the same arguments.
//!
//! ```text
//!   Shape (how many of what)  ──node(i), service(i)──>  records  ──yaml──>  one file, or a folder
//! ```
//!
//! Every record is a pure function of the shape and an index: nothing is stored and nothing is random. A cluster of
//! 100,000 endpoints is written to disk in constant memory, and one Service can be written again without one endpoint.
//!
//! This crate depends neither on Kubernetes' types nor on the agent's: it prints text like `kubectl get -o yaml`, so
//! the benches measure the same path as an operator's files.

pub mod folder;
mod own_memory;
pub mod shape;
pub mod yaml;

pub use folder::{service_file, write_folder};
pub use own_memory::resident_kib;
pub use shape::{Detail, EndpointRecord, NodeRecord, ServiceRecord, Shape};
pub use yaml::{write_cluster, write_node, write_service};
