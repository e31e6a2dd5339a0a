//! The Kubernetes API server: how it is reached, asked, and followed.
//!
//! [`Access`] says where it is and who asks, [`Connection`] asks, [`watch()`] follows the whole cluster; HTTP, TLS and credentials are the `kube` crate's
//! client. What is asked are paths and JSON: no type of Kubernetes' own leaves this crate.

mod access;
mod cipher;
mod connection;
mod error;
mod meter;
mod path;
mod read;
mod watch;

pub use access::{Access, AccessError, Address, Credentials};
pub use connection::{Connection, Patch};
pub use error::{ApiError, Fault};
pub use meter::{Count, Requests};
pub use path::{Target, Verb};
pub use read::{FetchError, address, annotations, namespace, read};
pub use watch::{
    Following, MapGap, NodeSource, Phase, Relists, ResourceStatus, SyncStatus, Watcher,
    WatcherChange, follow, watch,
};
