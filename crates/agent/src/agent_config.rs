//! The configuration of the loop.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dataplane::ipvs::IpvsTimeouts;
use dataplane::nftables::Links;
use dataplane::sysctl::ConntrackSettings;
use topology_core::model::{IpNetwork, NodePortAddresses};
use topology_core::scheduler::Scheduler;
use topology_core::snapshot::MarkMask;

/// Configuration of the loop. The command line sets the defaults.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// This node's name, as in its Node object.
    pub node: Arc<str>,
    /// Whether other Nodes are read from the map, which has only some of their labels.
    pub mapped: bool,
    /// Service ranges used when the input has no `ServiceCIDR` object.
    pub service_cidrs: Vec<IpNetwork>,
    /// The node's own addresses, at most one of each family. If empty: the Node object's `InternalIP` and `ExternalIP`, then the source
    /// address of the default route, then the first global address. Only addresses that this node has count.
    pub node_ips: Vec<IpAddr>,
    /// The addresses of the cluster's pods; if empty, those of this node's pods are known from its Node object.
    pub cluster_cidrs: Vec<IpNetwork>,
    /// How packets of this node's pods are recognized.
    pub detect_local: DetectLocal,
    /// Masquerade every connection to a cluster IP.
    pub masquerade_all: bool,
    /// Where node ports are served.
    pub node_port_addresses: NodePortAddresses,
    /// The bits of firewall marks.
    pub mark_mask: MarkMask,
    /// The scheduler of virtual servers, unless a Service requests another one.
    pub scheduler: Scheduler,
    pub strict_arp: StrictArp,
    pub estimation: Estimation,
    /// The timeouts of IPVS. `None` and 0 keep one.
    pub ipvs_timeouts: IpvsTimeouts,
    /// Settings of connection tracking.
    pub conntrack: ConntrackSettings,
    /// Interval of the comparison of the kernel with the desired state.
    pub check_period: Duration,
    /// How long a leaving real server may keep its connections.
    pub drain_timeout: Duration,
    /// The folder of the ownership record, `/run/ipvs-topo`.
    pub state_dir: PathBuf,
    /// The folder of the sysctls, `/proc/sys`.
    pub sysctl_dir: PathBuf,
    /// Take over foreign virtual servers with an address and port that the cluster needs.
    pub adopt: bool,
    /// Ports of this agent where a kube-proxy may answer instead.
    pub ports: BTreeSet<u16>,
    /// For tests: kill the process after so many writes.
    pub crash_after: Option<u64>,
}

/// How packets of this node's pods are recognized: kube-proxy's `detectLocalMode`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DetectLocal {
    /// Their source is in a range of `cluster_cidrs`.
    #[default]
    ClusterCidr,
    /// Their source is in a range of this Node's `spec.podCIDRs`.
    NodeCidr,
    /// They come in on such a link.
    Links(Links),
}

/// Whether the kernel adds up counters and rates of every virtual and real server (`net.ipv4.vs.run_estimation`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Estimation {
    /// Not with 10,000 servers or more; with fewer its setting stays.
    #[default]
    Auto,
    /// It does.
    On,
    /// It does not.
    Off,
}

/// What the node does about ARP for Service addresses that are on none of its links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StrictArp {
    /// It answers no requests.
    #[default]
    NoReplies,
    /// In addition, its own requests do not have such an address as their sender.
    NoRepliesAndOwnSender,
    /// It answers requests, as the kernel does for any local address.
    Off,
}
