//! Holds the configuration of the loop.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use topology_core::model::IpNetwork;
use topology_core::scheduler::Scheduler;

/// Configures the loop. The command line sets the defaults.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// This node's name, as its Node object has it.
    pub node: Arc<str>,
    /// Whether other Nodes are known from the map, which tells few of their labels.
    pub mapped: bool,
    /// Service ranges used when the input has no `ServiceCIDR` object.
    pub service_cidrs: Vec<IpNetwork>,
    /// The node's own addresses, at most one of each family; empty: the Node object's `InternalIP`,
    /// then what the default route sends from, then the first global address. Only addresses that
    /// this machine has count.
    pub node_ips: Vec<IpAddr>,
    /// The scheduler of every virtual server, unless its Service asks for another.
    pub scheduler: Scheduler,
    /// How often the kernel is compared with what it should hold.
    pub check_period: Duration,
    /// How long a leaving real server may keep its connections.
    pub drain_timeout: Duration,
    /// Where the ownership record lives, `/run/ipvs-topo`.
    pub state_dir: PathBuf,
    /// Where the kernel's settings are, `/proc/sys`.
    pub sysctl_dir: PathBuf,
    /// Take over virtual servers of others whose address and port the cluster asks for.
    pub adopt: bool,
    /// Ports of this agent where a kube-proxy may answer in its place.
    pub ports: BTreeSet<u16>,
    /// For tests: kill the process after so many writes.
    pub crash_after: Option<u64>,
}
