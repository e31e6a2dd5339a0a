//! The settings of the node as the agent set or found them.

use agent_api::status::TimeoutsView;

/// What decided about the node's settings when they were set, and what they were then.
#[derive(Debug, Default)]
pub(super) struct AppliedSettings {
    /// Whether they are those for schedulers that hash the client's address.
    pub(super) hashes: bool,
    /// Whether they are those for many virtual and real servers.
    pub(super) has_many_servers: bool,
    /// Whether the kernel's counters of servers stand still.
    pub(super) counters_stopped: bool,
    /// The timeouts of connections; `None` until they are read.
    pub(super) timeouts: Option<TimeoutsView>,
}
