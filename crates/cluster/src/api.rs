//! Watches a cluster through its API server ([`watch()`]), or reads it once ([`read()`]).
//!
//! [`kube_io`] connects, sends requests and decodes objects. This module turns the objects into
//! the events of [`event`](crate::event).

mod read;
mod watch;

pub use read::{FetchError, address, annotations, namespace, read};
pub use watch::{
    ClientNodes, Delivery, MapGap, NodeSource, Phase, Relists, ResourceStatus, SyncStatus,
    WatchOptions, follow, watch,
};
