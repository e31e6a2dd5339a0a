//! Clusters of any size, made up the same way every time: what the benches feed to the agent.
//!
//! ```text
//!   Shape (how many of what)  ──node(i), service(i)──>  records  ──yaml──>  one file, or a folder
//! ```
//!
//! Every record is a pure function of the shape and an index: nothing is stored, nothing is
//! random, so a cluster of 100,000 endpoints streams to disk in constant memory and one Service
//! of it can be written again later with one endpoint less.
//!
//! This crate knows neither Kubernetes' types nor the agent's: it prints text as `kubectl get -o
//! yaml` would, so the benches measure the same path that an operator's files take.

pub mod folder;
pub mod shape;
pub mod yaml;

pub use folder::{service_file, write_folder};
pub use shape::{Detail, EndpointRecord, NodeRecord, ServiceRecord, Shape};
pub use yaml::{write_cluster, write_node, write_service};
