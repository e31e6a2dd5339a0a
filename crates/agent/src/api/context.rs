//! Holds what the API needs besides the loop.

use std::sync::Arc;
use std::time::Instant;

use cluster::api::SyncStatus;

use super::admission::Admission;
use crate::state::AgentHandle;

#[derive(Debug)]
pub(crate) struct Api {
    pub handle: AgentHandle,
    pub node: Arc<str>,
    /// The source of the cluster, for people.
    pub source: String,
    /// The state of the watches; none for files.
    pub sync_status: Option<SyncStatus>,
    pub started: Instant,
    /// Admits the connections of servers on this node.
    pub admission: Admission,
}
