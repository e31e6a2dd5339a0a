//! Connects to a Kubernetes API server, sends requests and decodes what comes back.
//!
//! [`Access`] finds the address and the credentials, [`Connection`] sends requests, [`decode`]
//! turns JSON and protobuf into objects, [`list_watch`] lists and watches the resources that the
//! caller chooses. The `kube` crate provides HTTP, TLS and credential plugins.
//!
//! Contains no kind of object: paths and selectors come from the caller.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

mod access;
mod api_groups;
mod cipher;
mod connection;
pub mod decode;
mod error;
pub mod list_watch;
mod meter;
mod not_found;
mod path;

pub use access::{Access, AccessError, Address, Credentials};
pub use connection::{Connection, Patch};
pub use error::{ApiError, Fault};
pub use meter::{Count, Requests};
pub use path::{Target, Verb};
