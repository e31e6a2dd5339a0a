//! How the rest of the process reads the loop: figures that are always there, and questions.
//!
//! The loop owns all state. It publishes a small [`Pulse`] after every turn, which health checks and
//! metrics read without waiting for it, and answers [questions](AgentHandle) between two turns, so an
//! answer is always of one moment. Decisions are not stored: they are resolved anew for each answer
//! by the function that programmed the kernel.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use topology_core::model::{ObjectName, Unprogrammed};
use topology_core::plan::Step;
use topology_core::resolve::{Finding, ResolvedServer};

use crate::agent_status::DecisionSummary;

pub use dataplane::ipvs::{KernelReal, KernelServer, Traffic};

use crate::node_warning::NodeWarning;
use agent_api::explain::ExplainInput;

/// What the loop says of itself after every turn. Cheap to read, never waits for the loop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pulse {
    /// Whether the first full pass is done: everything the cluster asked for at start is in the
    /// kernel, or failed and waits for its retry.
    pub ready: bool,
    /// Whether the cluster's first full read is done; before it nothing is programmed.
    pub input_ready: bool,
    /// When that was.
    pub input_since: Option<Instant>,
    /// When the last pass, or the last periodic comparison, ended.
    pub last_pass: Option<SystemTime>,
    /// When the last change of the input arrived.
    pub last_queued: Option<SystemTime>,
    /// When the oldest change arrived that is not in the kernel yet; failed keys count as waiting.
    pub oldest_pending: Option<Instant>,
    /// Changes of Services that no pass has taken up.
    pub pending_services: u64,
    /// Changes of `EndpointSlice`s that no pass has taken up.
    pub pending_slices: u64,
    /// What of ours is in the kernel, IPv4.
    pub v4: FamilyCounts,
    /// What of ours is in the kernel, IPv6.
    pub v6: FamilyCounts,
    /// Virtual servers of others, left alone.
    pub foreign: u64,
    /// Virtual servers, routes and tables that are not as they should be and wait for their retry.
    pub waiting: u64,
    /// Services that get something else than asked.
    pub fallbacks: u64,
    /// Services in the input.
    pub services: u64,
    /// Endpoints in the input.
    pub endpoints: u64,
    /// Whether traffic from outside may be sent to this node; `None` if the input has no Node at all.
    pub node_eligible: Option<bool>,
    /// What is wrong with this node rather than with the input.
    pub node_warnings: Arc<[NodeWarning]>,
    /// How the start went; all zero until then.
    pub start: StartTimes,
}

/// What of ours one family has in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FamilyCounts {
    /// Virtual servers.
    pub virtual_servers: u64,
    /// Real servers that take new connections.
    pub active: u64,
    /// Real servers with weight 0 that only finish what they have.
    pub draining: u64,
}

/// The parts of the first pass, as wall time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StartTimes {
    /// Reading what the kernel held.
    pub dump: Duration,
    /// Resolving every Service and comparing with the kernel.
    pub compute: Duration,
    /// Sending commands to IPVS until the last one was acknowledged.
    pub apply: Duration,
    /// Commands sent to IPVS.
    pub steps: u64,
    /// Everything from the first full read of the input to the end of the pass.
    pub total: Duration,
}

/// A Service as it stands now.
#[derive(Debug, Clone)]
pub struct ServiceState {
    /// Its name.
    pub name: ObjectName,
    /// Each of its virtual servers.
    pub servers: Vec<ServerState>,
    /// What is wrong with the Service, as far as resolving it showed.
    pub findings: Vec<Finding>,
    /// Parts of it that this version does not program.
    pub unprogrammed: Vec<Unprogrammed>,
}

/// One virtual server: what is wanted, why, and what the kernel has.
#[derive(Debug, Clone)]
pub struct ServerState {
    /// What is wanted, with the decision for every endpoint.
    pub wanted: ResolvedServer,
    /// Whether the kernel has it.
    pub standing: Standing,
    /// What the kernel has, with its counters; `None` if it has no such virtual server.
    pub kernel: Option<KernelServer>,
}

/// How a wanted virtual server stands in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// As it should be.
    Programmed,
    /// A step failed; it is tried again.
    Failed {
        /// The step as an ipvsadm command, and what the kernel said.
        error: String,
        /// Until the next try.
        retry_in: Duration,
    },
    /// It is never programmed: the reason and the remedy.
    Refused(String),
    /// Someone else's virtual server has this address and port; it is left alone.
    Foreign,
}

/// Some Services in the order of their names.
#[derive(Debug, Clone)]
pub struct Page {
    /// At most as many as were asked for.
    pub services: Vec<ServiceState>,
    /// Whether there are Services after the last one.
    pub more: bool,
}

/// What is on this node beside the Services.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Virtual servers that are not ours.
    pub foreign_servers: Vec<KernelServer>,
    /// Routes to Service addresses that are not ours, as `ip route` writes them.
    pub foreign_routes: Vec<String>,
    /// nftables tables that are not ours, as `ip kube-proxy`.
    pub foreign_tables: Vec<String>,
    /// Our routes, as `ip route` writes them.
    pub routes: Vec<String>,
    /// What is wrong with this node rather than with the input.
    pub warnings: Arc<[NodeWarning]>,
    /// What is wrong with the input, one line each, in the order of files and lines.
    pub input_warnings: Vec<cluster::warning::Warning>,
    /// Objects of kinds that are not read, by kind.
    pub skipped_kinds: Vec<(String, u64)>,
}

/// What metrics tell of the cluster's state; gathered without reading the kernel.
#[derive(Debug, Clone, Default)]
pub struct Overview {
    /// The virtual servers of Services that a policy or `internalTrafficPolicy: Local` decides.
    pub decided: Vec<ResolvedServer>,
    /// What is wrong with the input.
    pub input_warnings: Vec<cluster::warning::Warning>,
}

/// What the loop can be asked.
#[derive(Debug)]
pub(crate) enum Question {
    /// One Service.
    Service(ObjectName, oneshot::Sender<Option<ServiceState>>),
    /// What the explanation of one Service needs.
    ExplainInput(ObjectName, oneshot::Sender<Option<ExplainInput>>),
    /// Why the input has nothing to say of a Service.
    Missing(ObjectName, oneshot::Sender<String>),
    /// At most so many Services after a name.
    Services(Option<ObjectName>, usize, oneshot::Sender<Page>),
    /// Everything beside the Services.
    Surroundings(oneshot::Sender<Surroundings>),
    /// What would be written now, against the kernel as it is now.
    Plan(oneshot::Sender<Result<Vec<Step>, String>>),
    /// What metrics tell, with at most so many decided Services.
    Overview(usize, oneshot::Sender<Overview>),
    /// What there is to report of the decisions.
    DecisionSummary(oneshot::Sender<DecisionSummary>),
    /// Whether anybody is there.
    Ping(oneshot::Sender<()>),
}

/// The loop has ended, so there is nobody to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent is stopping")]
pub struct Stopped;

/// A way to read the running loop; clones share it.
#[derive(Debug, Clone)]
pub struct AgentHandle {
    questions: mpsc::Sender<Question>,
    pulse: watch::Receiver<Pulse>,
}

impl AgentHandle {
    /// What the loop said after its last turn.
    pub fn pulse(&self) -> Pulse {
        self.pulse.borrow().clone()
    }

    /// Waits until the first full pass is done.
    pub async fn ready(&mut self) -> Result<(), Stopped> {
        let ready = self.pulse.wait_for(|pulse| pulse.ready).await;
        ready.map(drop).map_err(|_closed| Stopped)
    }

    /// One Service; `None` if the input has none of that name.
    pub async fn service(&self, name: ObjectName) -> Result<Option<ServiceState>, Stopped> {
        self.ask(|answer| Question::Service(name, answer)).await
    }

    /// What the explanation of one Service needs; `None` if the input has none of that name.
    pub async fn case(&self, name: ObjectName) -> Result<Option<ExplainInput>, Stopped> {
        self.ask(|answer| Question::ExplainInput(name, answer))
            .await
    }

    /// Why [`service`](Self::service) and [`case`](Self::case) have nothing of that name, in words.
    pub async fn missing(&self, name: ObjectName) -> Result<String, Stopped> {
        self.ask(|answer| Question::Missing(name, answer)).await
    }

    /// At most `limit` Services whose names come after `after`. Reading page by page keeps the loop
    /// free in between; Services that change meanwhile are seen before or after.
    pub async fn services(&self, after: Option<ObjectName>, limit: usize) -> Result<Page, Stopped> {
        self.ask(|answer| Question::Services(after, limit, answer))
            .await
    }

    /// Everything beside the Services.
    pub async fn surroundings(&self) -> Result<Surroundings, Stopped> {
        self.ask(Question::Surroundings).await
    }

    /// What would be written now if every key were compared with the kernel as it is now: nothing,
    /// unless someone changed the kernel or steps have failed. The inner error is the kernel's, or says
    /// that the first pass is not done.
    pub async fn plan(&self) -> Result<Result<Vec<Step>, String>, Stopped> {
        self.ask(Question::Plan).await
    }

    /// What metrics tell of the cluster's state, with at most `limit` Services in `decided`.
    pub async fn overview(&self, limit: usize) -> Result<Overview, Stopped> {
        self.ask(|answer| Question::Overview(limit, answer)).await
    }

    /// What there is to report of the decisions.
    pub(crate) async fn decision_summary(&self) -> Result<DecisionSummary, Stopped> {
        self.ask(Question::DecisionSummary).await
    }

    /// Waits for the end of a turn that this handle has not heard of.
    pub(crate) async fn changed(&mut self) -> Result<(), Stopped> {
        self.pulse.changed().await.map_err(|_closed| Stopped)
    }

    /// Waits until the loop is between two turns.
    pub async fn ping(&self) -> Result<(), Stopped> {
        self.ask(Question::Ping).await
    }

    async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<T>) -> Question,
    ) -> Result<T, Stopped> {
        let (sender, receiver) = oneshot::channel();
        self.questions
            .send(question(sender))
            .await
            .map_err(|_closed| Stopped)?;
        receiver.await.map_err(|_closed| Stopped)
    }
}

/// The loop's ends of an [`AgentHandle`].
#[derive(Debug)]
pub struct LoopEnds {
    pub(crate) questions: mpsc::Receiver<Question>,
    pub(crate) pulse: watch::Sender<Pulse>,
}

/// A handle and the loop's ends of it, for [`crate::run::run`].
pub fn channel() -> (AgentHandle, LoopEnds) {
    let (ask, questions) = mpsc::channel(16);
    let (pulse, read) = watch::channel(Pulse::default());
    (
        AgentHandle {
            questions: ask,
            pulse: read,
        },
        LoopEnds { questions, pulse },
    )
}
