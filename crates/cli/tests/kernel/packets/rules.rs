//! What a client gets, by the documentation of the Kubernetes API and not by our code. `docs/packets.md` is made of these
//! rules, and `packets.rs` holds a real kernel to them.
//!
//! Sources: the API reference of `internalTrafficPolicy` and `externalTrafficPolicy`, the pages "Service Internal Traffic
//! Policy", "Virtual IPs and Service Proxies" and "Using Source IP" of the documentation, and KEP-1669 for endpoints that
//! terminate. Where these are silent the nftables mode of kube-proxy decides.

/// Where a client runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    PodHere,
    PodElsewhere,
    /// A process of this node, or a pod in its network.
    ThisNode,
    /// A process of another node, or a pod in its network.
    OtherNode,
    Outside,
    /// The endpoint on this node.
    Endpoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frontend {
    ClusterIp,
    NodePort,
    LoadBalancer,
}

/// The traffic policy of the Service: both of the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Cluster,
    Local,
}

/// The endpoints of the Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoints {
    /// A ready one on this node and one on another node.
    Both,
    Here,
    Elsewhere,
    /// One on this node that terminates and still serves.
    Terminating,
    None,
}

/// A connection that the test opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) endpoints: Endpoints,
    pub(crate) frontend: Frontend,
    pub(crate) policy: Policy,
    pub(crate) client: Client,
}

/// The source address that the server sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Client,
    /// An address of this node.
    Node,
}

/// What the client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// An answer of the endpoint on this node or of the other one, each with the source address that it sees.
    Answer {
        here: Option<Source>,
        elsewhere: Option<Source>,
    },
    /// A TCP reset or "port unreachable".
    Refused,
    Dropped,
}

impl Client {
    pub(crate) const ALL: [Self; 6] = [
        Self::PodHere,
        Self::PodElsewhere,
        Self::ThisNode,
        Self::OtherNode,
        Self::Outside,
        Self::Endpoint,
    ];

    const fn is_pod(self) -> bool {
        matches!(self, Self::PodHere | Self::PodElsewhere | Self::Endpoint)
    }

    /// `externalTrafficPolicy` is about these.
    const fn is_external(self) -> bool {
        matches!(self, Self::OtherNode | Self::Outside)
    }
}

impl Frontend {
    pub(crate) const ALL: [Self; 3] = [Self::ClusterIp, Self::NodePort, Self::LoadBalancer];
}

impl Policy {
    pub(crate) const ALL: [Self; 2] = [Self::Cluster, Self::Local];
}

impl Endpoints {
    pub(crate) const ALL: [Self; 5] = [
        Self::Both,
        Self::Here,
        Self::Elsewhere,
        Self::Terminating,
        Self::None,
    ];

    const fn has_one_here(self) -> bool {
        matches!(self, Self::Both | Self::Here | Self::Terminating)
    }

    const fn has_one_elsewhere(self) -> bool {
        matches!(self, Self::Both | Self::Elsewhere)
    }
}

impl Cell {
    /// All cells of a state. A cluster IP is for clients on this node: each node serves its own.
    pub(crate) fn all(endpoints: Endpoints) -> Vec<Self> {
        let mut cells = Vec::new();
        for frontend in Frontend::ALL {
            for policy in Policy::ALL {
                cells.extend(Client::ALL.map(|client| Self {
                    endpoints,
                    frontend,
                    policy,
                    client,
                }));
            }
        }
        cells.retain(|cell| cell.is_possible());
        cells
    }

    fn is_possible(self) -> bool {
        let arrives = self.frontend != Frontend::ClusterIp
            || !(self.client.is_external() || self.client == Client::PodElsewhere);
        // Such a pod keeps its address, and the reply of an endpoint elsewhere may go another way, as with kube-proxy.
        let returns = self.client != Client::PodElsewhere
            || self.policy == Policy::Cluster
            || !self.endpoints.has_one_elsewhere();
        arrives && returns && (self.client != Client::Endpoint || self.endpoints.has_one_here())
    }

    pub(crate) fn outcome(self) -> Outcome {
        let is_limited = self.policy == Policy::Local
            && (self.frontend == Frontend::ClusterIp || self.client.is_external());
        let here = self.endpoints.has_one_here();
        let elsewhere = self.endpoints.has_one_elsewhere() && !is_limited;
        if here || elsewhere {
            return Outcome::Answer {
                here: here.then(|| self.source(self.client == Client::Endpoint)),
                elsewhere: elsewhere.then(|| self.source(false)),
            };
        }
        // A load balancer tries another node if packets are dropped; "behaves as if it has zero endpoints" otherwise.
        let others_have_some = self.endpoints.has_one_elsewhere();
        if others_have_some && self.frontend != Frontend::ClusterIp {
            Outcome::Dropped
        } else {
            Outcome::Refused
        }
    }

    /// The source address; `to_itself` if the client is the endpoint that answers.
    fn source(self, to_itself: bool) -> Source {
        let keeps = match (self.frontend, self.policy) {
            (Frontend::ClusterIp, _) => self.client.is_pod(),
            // Replies must come back through this node.
            (_, Policy::Cluster) => false,
            (_, Policy::Local) => self.client != Client::ThisNode,
        };
        // A pod would answer itself without the node.
        if keeps && !to_itself {
            Source::Client
        } else {
            Source::Node
        }
    }
}
