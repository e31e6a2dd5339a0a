//! Holds what the API knows beside the loop.

use std::sync::Arc;
use std::time::Instant;

use cluster::api::SyncStatus;

use crate::state::AgentHandle;

/// What the API knows beside the loop.
#[derive(Debug)]
pub struct Api {
    /// Asks the loop.
    pub handle: AgentHandle,
    /// This node's name.
    pub node: Arc<str>,
    /// Where the cluster is read from.
    pub source: String,
    /// How what is read from an API server stands; none for files.
    pub sync_status: Option<SyncStatus>,
    /// When this process started.
    pub started: Instant,
}
