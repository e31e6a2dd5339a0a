//! What a client gets, by the documentation of the Kubernetes API and not by our code. `docs/packets.md` is made of these
//! rules, and `packets.rs` holds a real kernel to them.
//!
//! Sources: the API reference of `internalTrafficPolicy`, `externalTrafficPolicy`, `sessionAffinity`,
//! `loadBalancerSourceRanges` and `healthCheckNodePort`, the pages "Service Internal Traffic Policy", "Virtual IPs and
//! Service Proxies" and "Using Source IP" of the documentation, and KEP-1669 for endpoints that terminate. Where these are
//! silent the nftables mode of kube-proxy decides, and `docs/topology.md` for topology policies.

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
    ExternalIp,
    /// `healthCheckNodePort`: the agent itself answers.
    HealthPort,
}

/// What the Service asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Cluster,
    /// `internalTrafficPolicy` and `externalTrafficPolicy`.
    Local,
    /// `internalTrafficPolicy` only.
    InternalLocal,
    /// `externalTrafficPolicy` only.
    ExternalLocal,
    /// `loadBalancerSourceRanges` with the outside host and the pods of this node.
    Ranges,
    /// The same with `externalTrafficPolicy: Local`.
    LocalRanges,
    /// `sessionAffinity: ClientIP`.
    Affinity,
    /// The same with `externalTrafficPolicy: Local`.
    LocalAffinity,
    /// A topology policy: endpoints on this node only.
    Hard,
    /// A topology policy: endpoints on this node first.
    Prefer,
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
    /// The same, and a ready one on another node.
    Leaving,
    /// One on this node that is not ready, and a ready one on another node.
    Unready,
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
    /// The status of a health check.
    Health(u16),
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

    const fn is_in_ranges(self) -> bool {
        matches!(self, Self::PodHere | Self::Endpoint | Self::Outside)
    }
}

impl Frontend {
    pub(crate) const ALL: [Self; 5] = [
        Self::ClusterIp,
        Self::NodePort,
        Self::LoadBalancer,
        Self::ExternalIp,
        Self::HealthPort,
    ];
}

impl Policy {
    pub(crate) const ALL: [Self; 10] = [
        Self::Cluster,
        Self::Local,
        Self::InternalLocal,
        Self::ExternalLocal,
        Self::Ranges,
        Self::LocalRanges,
        Self::Affinity,
        Self::LocalAffinity,
        Self::Hard,
        Self::Prefer,
    ];

    pub(crate) const fn is_internal_local(self) -> bool {
        matches!(self, Self::Local | Self::InternalLocal)
    }

    pub(crate) const fn is_external_local(self) -> bool {
        matches!(
            self,
            Self::Local | Self::ExternalLocal | Self::LocalRanges | Self::LocalAffinity
        )
    }

    pub(crate) const fn has_ranges(self) -> bool {
        matches!(self, Self::Ranges | Self::LocalRanges)
    }
}

impl Endpoints {
    pub(crate) const ALL: [Self; 7] = [
        Self::Both,
        Self::Here,
        Self::Elsewhere,
        Self::Terminating,
        Self::Leaving,
        Self::Unready,
        Self::None,
    ];

    const fn has_one_here(self) -> bool {
        matches!(
            self,
            Self::Both | Self::Here | Self::Terminating | Self::Leaving
        )
    }

    const fn has_one_elsewhere(self) -> bool {
        matches!(
            self,
            Self::Both | Self::Elsewhere | Self::Leaving | Self::Unready
        )
    }
}

impl Cell {
    /// All cells of a state.
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
        cells.retain(|cell| cell.is_possible() && cell.is_of_interest());
        cells
    }

    /// A cluster IP is for clients on this node: each node serves its own.
    fn is_possible(self) -> bool {
        let arrives = self.frontend != Frontend::ClusterIp
            || !(self.client.is_external() || self.client == Client::PodElsewhere);
        let has_port = self.frontend != Frontend::HealthPort || self.policy == Policy::Local;
        arrives && has_port && (self.client != Client::Endpoint || self.endpoints.has_one_here())
    }

    /// Whether the policy could make a difference.
    fn is_of_interest(self) -> bool {
        use Endpoints::{Both, Elsewhere, Leaving};
        let (frontend, client) = (self.frontend, self.client);
        let is_balanced = frontend == Frontend::LoadBalancer;
        match self.policy {
            Policy::Cluster | Policy::Local => true,
            Policy::InternalLocal | Policy::ExternalLocal => {
                let is_one = matches!(frontend, Frontend::ClusterIp | Frontend::NodePort);
                is_one && matches!(self.endpoints, Both | Elsewhere | Leaving)
            }
            Policy::Ranges => {
                self.endpoints == Both && (is_balanced || client == Client::OtherNode)
            }
            Policy::LocalRanges => self.endpoints == Both && is_balanced,
            Policy::Affinity | Policy::LocalAffinity => {
                self.endpoints == Both && !matches!(client, Client::OtherNode | Client::Endpoint)
            }
            Policy::Hard | Policy::Prefer => {
                let is_one = matches!(client, Client::PodHere | Client::ThisNode | Client::Outside);
                is_one && matches!(self.endpoints, Both | Elsewhere)
            }
        }
    }

    pub(crate) fn outcome(self) -> Outcome {
        if self.frontend == Frontend::HealthPort {
            return self.health();
        }
        let is_balanced = self.frontend == Frontend::LoadBalancer;
        if is_balanced && self.policy.has_ranges() && !self.client.is_in_ranges() {
            return Outcome::Dropped;
        }
        let here = self.endpoints.has_one_here() && self.may_stay_here();
        let elsewhere = self.endpoints.has_one_elsewhere() && self.may_go_elsewhere();
        if here || elsewhere {
            return Outcome::Answer {
                here: here.then(|| self.source(true)),
                elsewhere: elsewhere.then(|| self.source(false)),
            };
        }
        // A load balancer tries another node if packets are dropped; "behaves as if it has zero endpoints" otherwise.
        let others_have_some = self.endpoints.has_one_elsewhere();
        if others_have_some && self.frontend != Frontend::ClusterIp && self.is_limited() {
            Outcome::Dropped
        } else {
            Outcome::Refused
        }
    }

    /// A load balancer sends no new clients to endpoints that terminate.
    const fn health(self) -> Outcome {
        match self.endpoints {
            Endpoints::Both | Endpoints::Here => Outcome::Health(200),
            _ => Outcome::Health(503),
        }
    }

    /// Whether a traffic policy limits the client to endpoints on this node.
    fn is_limited(self) -> bool {
        if self.frontend == Frontend::ClusterIp {
            self.policy.is_internal_local()
        } else {
            self.policy.is_external_local() && self.client.is_external()
        }
    }

    /// An endpoint that terminates is for clients that have no ready one.
    fn may_stay_here(self) -> bool {
        self.endpoints != Endpoints::Leaving || self.is_limited()
    }

    fn may_go_elsewhere(self) -> bool {
        let is_allowed = match self.policy {
            Policy::Hard => false,
            Policy::Prefer => !self.endpoints.has_one_here(),
            _ => true,
        };
        is_allowed && !self.is_limited()
    }

    /// The source address that an endpoint on this node sees, or one on another node.
    fn source(self, is_here: bool) -> Source {
        let keeps = if self.frontend == Frontend::ClusterIp {
            self.client.is_pod()
        } else {
            // Replies must come back through this node.
            self.policy.is_external_local()
                && self.client != Client::ThisNode
                && (is_here || self.client != Client::PodElsewhere)
        };
        // A pod would answer itself without the node.
        let to_itself = is_here && self.client == Client::Endpoint;
        if keeps && !to_itself {
            Source::Client
        } else {
            Source::Node
        }
    }
}
