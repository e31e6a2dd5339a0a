//! Reads and follows a cluster by its API server: [`watch()`] follows it, [`read()`] reads it once.
//!
//! Connection, requests and decoding are those of [`kube_io`]; here its objects become the events of
//! [`event`](crate::event).

mod read;
mod watch;

pub use read::{FetchError, address, annotations, namespace, read};
pub use watch::{
    Following, MapGap, NodeSource, Phase, Relists, ResourceStatus, SyncStatus, follow, watch,
};
