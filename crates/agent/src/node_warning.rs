//! Warnings about this node, as opposed to the input.

/// The topic of a warning; a new warning on a topic replaces the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// Sysctls and `kube-ipvs0`.
    Settings,
    /// The node's own addresses and the Service ranges.
    Addresses,
    /// This Node has addresses inside the Service ranges.
    OwnClaim,
    /// Other Nodes have addresses inside the Service ranges.
    NodeClaim,
    /// Our routes.
    Routes,
    /// Our tables.
    Tables,
    Record,
    /// The deadlines of draining real servers.
    Deadlines,
    /// The record of firewall marks.
    FirewallMarks,
    /// Health check ports that cannot be opened.
    HealthPorts,
    /// Node ports that cannot be opened on loopback addresses.
    LoopbackPorts,
    /// Connection tracking.
    Conntrack,
    /// Reading the kernel.
    Kernel,
    /// Another proxy on the node.
    OtherProxy,
    /// Chains that drop forwarded packets.
    ForwardPolicy,
    /// Schedulers that the kernel does not have.
    Scheduler,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeWarning {
    /// What it is about.
    pub topic: Topic,
    /// The problem, its consequence and the remedy, on one line.
    pub text: String,
}

impl Topic {
    /// The code in output.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Settings => "Settings",
            Self::Addresses => "Addresses",
            Self::OwnClaim => "OwnClaim",
            Self::NodeClaim => "NodeClaim",
            Self::Routes => "Routes",
            Self::Tables => "Tables",
            Self::Record => "Record",
            Self::Deadlines => "Deadlines",
            Self::FirewallMarks => "FirewallMarks",
            Self::HealthPorts => "HealthPorts",
            Self::LoopbackPorts => "LoopbackPorts",
            Self::Conntrack => "Conntrack",
            Self::Kernel => "Kernel",
            Self::OtherProxy => "OtherProxy",
            Self::ForwardPolicy => "ForwardPolicy",
            Self::Scheduler => "Scheduler",
        }
    }

    /// Whether the warning belongs to this node's report. Every agent sees the addresses of other Nodes: if agents
    /// reported these, one kubelet could make all agents write.
    pub const fn is_of_this_node(self) -> bool {
        !matches!(self, Self::NodeClaim)
    }
}
