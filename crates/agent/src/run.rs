//! One node's data plane: started with a configuration, read through a handle, ended by a signal.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use topology_core::model::Cidr;

/// Everything the loop is told at start. Defaults belong to the command line.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// This node's name, as its Node object has it.
    pub node: Arc<str>,
    /// File or folder with Kubernetes YAML or JSON.
    pub cluster: PathBuf,
    /// Service ranges used when the input has no ServiceCIDR object.
    pub service_cidrs: Vec<Cidr>,
    /// The node's own addresses, at most one of each family; empty: the Node object's InternalIP,
    /// then what the default route sends from, then the first global address.
    pub node_ips: Vec<IpAddr>,
    /// The scheduler of every virtual server.
    pub scheduler: Arc<str>,
    /// How often the kernel is compared with what it should hold.
    pub check_period: Duration,
    /// How long a leaving real server may keep its connections.
    pub drain_timeout: Duration,
    /// Where the ownership record lives, `/run/ipvs-topo`.
    pub state_dir: PathBuf,
    /// Take over virtual servers of others whose address and port the cluster asks for.
    pub adopt: bool,
    /// For tests: kill the process after so many writes.
    pub crash_after: Option<u64>,
}
