//! How the rest of the process reads the loop: published values and queries.
//!
//! The loop owns all state. It publishes a small [`Pulse`] after every turn, which health checks and metrics read
//! without waiting for it. It answers [queries](AgentHandle) between two turns, so a response is always consistent.
//! Decisions are not stored: they are resolved again for each response, by the function that programmed the kernel.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use topology_core::model::{ObjectName, Unprogrammed};
use topology_core::plan::Step;
use topology_core::resolve::{Finding, ResolvedServer};

use crate::agent_status::DecisionSummary;

pub(crate) use dataplane::ipvs::{DrainState, KernelReal, KernelServer};

use crate::endpoint_connections::EndpointConnections;
use crate::node_warning::NodeWarning;
use crate::service_ports::{HealthPorts, LoopbackPorts};
use agent_api::explain::ExplainInput;
use agent_api::status::TimeoutsView;

/// The loop's published values. Reading them is cheap and never waits for the loop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pulse {
    /// Whether the first full pass is done: everything that the cluster needs is in the kernel, or failed and waits for
    /// a retry.
    pub ready: bool,
    /// Whether the first complete read of the cluster is done; before it nothing is programmed.
    pub input_ready: bool,
    /// When that was.
    pub input_since: Option<Instant>,
    /// When the last pass, or the last periodic comparison, ended.
    pub last_pass: Option<SystemTime>,
    /// When the last change of the input arrived.
    pub last_queued: Option<SystemTime>,
    /// When the oldest pending change of the input arrived.
    pub input_pending: Option<Instant>,
    /// When the oldest failure of routes or tables began.
    pub host_failing: Option<Instant>,
    /// When the oldest failure of a virtual server began.
    pub servers_failing: Option<Instant>,
    /// Changes of Services that no pass has processed.
    pub pending_services: u64,
    /// Changes of EndpointSlices that no pass has processed.
    pub pending_slices: u64,
    /// Totals of our IPv4 objects in the kernel.
    pub v4: FamilyCounts,
    /// Totals of our IPv6 objects in the kernel.
    pub v6: FamilyCounts,
    /// Foreign virtual servers.
    pub foreign: u64,
    /// Virtual servers, routes and tables that failed and wait for a retry.
    pub waiting: u64,
    /// Services that get something else than requested.
    pub fallbacks: u64,
    /// Services in the input.
    pub services: u64,
    /// Endpoints in the input.
    pub endpoints: u64,
    /// Services with a traffic policy Local that have endpoints, but none on this node, by family and policy (`internal`
    /// or `external`).
    pub without_local: BTreeMap<(&'static str, &'static str), u64>,
    /// Services with a finding, by its code.
    pub findings: BTreeMap<&'static str, u64>,
    /// Whether external traffic may be sent to this node; `None` if the input has no Node.
    pub node_eligible: Option<bool>,
    /// Warnings about this node.
    pub node_warnings: Arc<[NodeWarning]>,
    /// Durations of the start; all zero until then.
    pub start: StartTimes,
    /// The timeouts of connections; `None` until they are read.
    pub timeouts: Option<TimeoutsView>,
}

impl Pulse {
    /// Since when the kernel is not as it should be: a change of the input is pending, or something failed.
    pub fn oldest_pending(&self) -> Option<Instant> {
        let all = [self.input_pending, self.host_failing, self.servers_failing];
        all.into_iter().flatten().min()
    }
}

/// Totals of one family in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FamilyCounts {
    /// Virtual servers.
    pub virtual_servers: u64,
    /// Real servers that get new connections.
    pub active: u64,
    /// Real servers with weight 0, which only finish their connections.
    pub draining: u64,
}

/// Durations of the parts of the first pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StartTimes {
    /// Reading the kernel.
    pub dump: Duration,
    /// Resolving every Service and comparing with the kernel.
    pub compute: Duration,
    /// Sending commands to IPVS until the last acknowledgement.
    pub apply: Duration,
    /// Commands sent to IPVS.
    pub steps: u64,
    /// From the first complete read of the input to the end of the pass.
    pub total: Duration,
}

/// The present state of a Service.
#[derive(Debug, Clone)]
pub struct ServiceState {
    pub name: ObjectName,
    /// Each of its virtual servers.
    pub servers: Vec<ServerState>,
    /// Problems found while resolving the Service.
    pub findings: Vec<Finding>,
    /// Parts of it that are not programmed.
    pub unprogrammed: Vec<Unprogrammed>,
}

/// A virtual server: the desired state, the decision, and the kernel's state.
#[derive(Debug, Clone)]
pub struct ServerState {
    /// The desired state, with the decision for every endpoint.
    pub wanted: ResolvedServer,
    /// Whether the kernel has it.
    pub status: ProgramStatus,
    /// The kernel's state, with counters; `None` if it does not exist.
    pub kernel: Option<KernelServer>,
}

/// The state of a desired virtual server in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramStatus {
    /// In the desired state.
    Programmed,
    /// A step failed; it is retried.
    Failed {
        /// The step as an ipvsadm command, and the kernel's error.
        error: String,
        /// Time until the next attempt.
        retry_in: Duration,
    },
    /// It is never programmed: the reason and the remedy.
    Refused(String),
    /// A foreign virtual server has this address and port; it is not changed.
    Foreign,
}

/// Some Services by name.
#[derive(Debug, Clone)]
pub struct Page {
    /// At most the requested number.
    pub services: Vec<ServiceState>,
    /// Whether there are Services after the last one.
    pub more: bool,
}

/// The node's state besides the Services.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Foreign virtual servers.
    pub foreign_servers: Vec<KernelServer>,
    /// Foreign routes to Service addresses, in the format of `ip route`.
    pub foreign_routes: Vec<String>,
    /// Foreign nftables tables, as `ip kube-proxy`.
    pub foreign_tables: Vec<String>,
    /// Our routes, in the format of `ip route`.
    pub routes: Vec<String>,
    /// Warnings about this node.
    pub warnings: Arc<[NodeWarning]>,
    /// Warnings about the input, one line each, in the order of files and lines.
    pub input_warnings: Vec<cluster::warning::Warning>,
    /// Objects of kinds that are not read, by kind.
    pub skipped_kinds: Vec<(String, u64)>,
}

/// The cluster's state for metrics; collected without reading the kernel.
#[derive(Debug, Clone, Default)]
pub struct Overview {
    /// The virtual servers of Services that a policy or `internalTrafficPolicy: Local` decides.
    pub decided: Vec<ResolvedServer>,
    /// Warnings about the input.
    pub input_warnings: Vec<cluster::warning::Warning>,
}

/// The queries that the loop answers.
#[derive(Debug)]
pub(crate) enum Query {
    /// One Service.
    Service(ObjectName, oneshot::Sender<Option<ServiceState>>),
    /// What the explanation of one Service needs.
    ExplainInput(ObjectName, oneshot::Sender<Option<ExplainInput>>),
    /// Why the input does not have a Service.
    Missing(ObjectName, oneshot::Sender<String>),
    /// At most so many Services after a name.
    Services(Option<ObjectName>, usize, oneshot::Sender<Page>),
    /// Everything besides the Services.
    Surroundings(oneshot::Sender<Surroundings>),
    /// The steps that a full pass would take now, compared with the present kernel.
    Plan(oneshot::Sender<Result<Vec<Step>, String>>),
    /// The state for metrics, with at most so many levels.
    Overview(usize, oneshot::Sender<Overview>),
    /// The report of the decisions.
    DecisionSummary(oneshot::Sender<DecisionSummary>),
    /// Whether the loop responds.
    Ping(oneshot::Sender<()>),
}

/// The loop has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent is stopping")]
pub struct Stopped;

/// A handle to query the running loop; clones share it.
#[derive(Debug, Clone)]
pub struct AgentHandle {
    queries: mpsc::Sender<Query>,
    pulse: watch::Receiver<Pulse>,
}

impl AgentHandle {
    /// The loop's values after its last turn.
    pub fn pulse(&self) -> Pulse {
        self.pulse.borrow().clone()
    }

    /// Waits until the first full pass is done.
    pub async fn ready(&mut self) -> Result<(), Stopped> {
        let ready = self.pulse.wait_for(|pulse| pulse.ready).await;
        ready.map(drop).map_err(|_closed| Stopped)
    }

    /// One Service; `None` if the input does not have it.
    pub async fn service(&self, name: ObjectName) -> Result<Option<ServiceState>, Stopped> {
        self.ask(|answer| Query::Service(name, answer)).await
    }

    /// The input of an explanation; `None` if the input does not have the Service.
    pub async fn explain_input(&self, name: ObjectName) -> Result<Option<ExplainInput>, Stopped> {
        self.ask(|answer| Query::ExplainInput(name, answer)).await
    }

    /// Why [`service`](Self::service) and [`explain_input`](Self::explain_input) return nothing for this name.
    pub async fn missing(&self, name: ObjectName) -> Result<String, Stopped> {
        self.ask(|answer| Query::Missing(name, answer)).await
    }

    /// At most `limit` Services whose names come after `after`. Reading page by page keeps the loop free in between;
    /// Services that change meanwhile have the state before or after.
    pub async fn services(&self, after: Option<ObjectName>, limit: usize) -> Result<Page, Stopped> {
        self.ask(|answer| Query::Services(after, limit, answer))
            .await
    }

    /// Everything besides the Services.
    pub async fn surroundings(&self) -> Result<Surroundings, Stopped> {
        self.ask(Query::Surroundings).await
    }

    /// The writes of a full comparison with the kernel now: none, unless another program changed the kernel or steps
    /// have failed. The inner error is the kernel's, or says that the first pass is not done.
    pub async fn plan(&self) -> Result<Result<Vec<Step>, String>, Stopped> {
        self.ask(Query::Plan).await
    }

    /// The state for metrics, with at most so many levels in `decided`.
    pub async fn overview(&self, most_levels: usize) -> Result<Overview, Stopped> {
        self.ask(|answer| Query::Overview(most_levels, answer))
            .await
    }

    /// The report of the decisions.
    pub(crate) async fn decision_summary(&self) -> Result<DecisionSummary, Stopped> {
        self.ask(Query::DecisionSummary).await
    }

    /// Waits for the end of a turn that this handle has not seen.
    pub(crate) async fn changed(&mut self) -> Result<(), Stopped> {
        self.pulse.changed().await.map_err(|_closed| Stopped)
    }

    /// Waits until the loop is between two turns.
    pub async fn ping(&self) -> Result<(), Stopped> {
        self.ask(Query::Ping).await
    }

    async fn ask<T>(&self, query: impl FnOnce(oneshot::Sender<T>) -> Query) -> Result<T, Stopped> {
        let (sender, receiver) = oneshot::channel();
        self.queries
            .send(query(sender))
            .await
            .map_err(|_closed| Stopped)?;
        receiver.await.map_err(|_closed| Stopped)
    }
}

/// The loop's ends of an [`AgentHandle`].
#[derive(Debug)]
pub(crate) struct LoopEnds {
    pub(crate) queries: mpsc::Receiver<Query>,
    pub(crate) pulse: watch::Sender<Pulse>,
    pub(crate) health_ports: HealthPorts,
    pub(crate) loopback_ports: LoopbackPorts,
    pub(crate) endpoint_connections: EndpointConnections,
}

/// Creates a handle and the loop's ends of it, for [`crate::run::run`].
pub(crate) fn channel() -> (AgentHandle, LoopEnds) {
    let (ask, queries) = mpsc::channel(16);
    let (pulse, read) = watch::channel(Pulse::default());
    (
        AgentHandle {
            queries: ask,
            pulse: read,
        },
        LoopEnds {
            queries,
            pulse,
            health_ports: HealthPorts::default(),
            loopback_ports: LoopbackPorts::default(),
            endpoint_connections: EndpointConnections::default(),
        },
    )
}
