//! What is wrong with this node rather than with the input, and the words for it.

/// What it is about; a new report on a topic replaces the former one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// Sysctls and `kube-ipvs0`.
    Settings,
    /// The node's own addresses and the Service ranges.
    Addresses,
    /// This Node claims addresses inside the Service ranges.
    OwnClaim,
    /// Other Nodes that claim addresses inside the Service ranges.
    NodeClaim,
    /// Our routes.
    Routes,
    /// Our tables.
    Guard,
    /// The ownership record.
    Record,
    /// The deadlines of draining real servers.
    Deadlines,
    /// Connection tracking.
    Conntrack,
    /// Reading the kernel.
    Kernel,
    /// A proxy beside this agent.
    OtherProxy,
    /// Schedulers that the kernel does not have.
    Scheduler,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeWarning {
    /// What it is about.
    pub topic: Topic,
    /// What is wrong, what follows from it, and what to do, on one line.
    pub text: String,
}

impl Topic {
    /// The word for it in output.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Settings => "Settings",
            Self::Addresses => "Addresses",
            Self::OwnClaim => "OwnClaim",
            Self::NodeClaim => "NodeClaim",
            Self::Routes => "Routes",
            Self::Guard => "Guard",
            Self::Record => "Record",
            Self::Deadlines => "Deadlines",
            Self::Conntrack => "Conntrack",
            Self::Kernel => "Kernel",
            Self::OtherProxy => "OtherProxy",
            Self::Scheduler => "Scheduler",
        }
    }

    /// Whether it is a matter of this node. Every agent sees what other kubelets claim: if it were reported, one kubelet
    /// could make all agents write.
    pub const fn is_of_this_node(self) -> bool {
        !matches!(self, Self::NodeClaim)
    }
}
