//! The interface [`Kernel`] to the IPVS table, in the types of `topology-core`.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use topology_core::mirror::{Mirror, ObservedServer, StepOutcome};
use topology_core::plan::Step;
use topology_core::virtual_server::VirtualServerKey;

/// The kernel's IPVS table.
///
/// Reading changes nothing. Every future may be dropped and the method called again.
#[expect(
    async_fn_in_trait,
    reason = "the loop runs on one thread, so no future has to be Send"
)]
pub trait Kernel {
    /// Lists all virtual servers, without real servers.
    async fn list(&mut self) -> Result<Vec<ListedServer>, KernelError>;

    /// Reads the real servers of a listed virtual server; `None` if it was deleted meanwhile.
    async fn fill(&mut self, listed: ListedServer) -> Result<Option<ServerReading>, KernelError>;

    /// Reads a virtual server with its real servers; `None` if it does not exist.
    async fn read(&mut self, key: &VirtualServerKey) -> Result<Option<ServerReading>, KernelError>;

    /// Reads a virtual server with its counters; `None` if it does not exist.
    async fn show(&mut self, key: &VirtualServerKey) -> Result<Option<KernelServer>, KernelError>;

    /// Carries out steps in order, and continues after one that fails. Returns one result for each.
    /// [`Step::DeleteFlows`] does not concern IPVS: it is skipped and counts as done.
    async fn apply(&mut self, steps: &[Step]) -> Vec<Result<(), StepError>>;

    /// The timeouts of connections.
    async fn timeouts(&mut self) -> Result<IpvsTimeouts, KernelError>;

    /// Sets the timeouts of connections; `None` leaves one as it is.
    async fn set_timeouts(&mut self, timeouts: IpvsTimeouts) -> Result<(), KernelError>;
}

/// Timeouts of connections, in seconds. `None` is unknown, or leaves one as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IpvsTimeouts {
    /// Established TCP connections.
    pub tcp: Option<u32>,
    /// TCP connections after a FIN.
    pub tcp_fin: Option<u32>,
    pub udp: Option<u32>,
}

/// A virtual server from a list, without its real servers.
#[derive(Debug, Clone)]
pub struct ListedServer {
    pub key: VirtualServerKey,
    pub observed: ObservedServer,
}

/// A virtual server with its real servers, and the connections (active plus inactive) of each.
#[derive(Debug, Clone)]
pub struct ServerReading {
    pub observed: ObservedServer,
    pub connections: Vec<u64>,
}

/// A virtual server with its counters.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelServer {
    pub key: VirtualServerKey,
    pub scheduler: Arc<str>,
    /// Session affinity in seconds, if any.
    pub persistence: Option<u32>,
    /// In order of address and port.
    pub real_servers: Vec<KernelReal>,
}

/// A real server with its counters.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelReal {
    pub address: IpAddr,
    pub port: u16,
    /// The weight; with 0 it gets no new connections.
    pub weight: u32,
    pub active: u32,
    /// Closing connections, and those kept for late packets.
    pub inactive: u32,
    /// Connections kept by session affinity.
    pub persistent: u32,
    /// `None` if the kernel's counters stand still.
    pub traffic: Option<Traffic>,
    pub drain: DrainState,
}

/// Whether a real server drains, and when it is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainState {
    None,
    /// It is deleted when its connections have ended.
    UntilIdle,
    /// It is deleted when its connections have ended, and after this time at the latest.
    UntilDeadline(Duration),
}

/// Totals since creation, and the kernel's estimate of rates per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub connections: u64,
    /// Bytes from clients.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
    /// New connections per second.
    pub connections_rate: u64,
    /// Bytes from clients per second.
    pub bytes_in_rate: u64,
    /// Bytes to clients per second.
    pub bytes_out_rate: u64,
}

/// An error of a read, with the remedy.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct KernelError(Arc<dyn std::error::Error + Send + Sync>);

impl KernelError {
    /// Keeps the source error for callers that inspect it.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(Arc::from(source.into()))
    }
}

/// An error of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepError {
    pub outcome: StepOutcome,
    /// Whether the kernel lacks the scheduler of the step.
    pub no_scheduler: bool,
    /// The problem and the remedy.
    pub text: String,
}

/// Reads the whole table into `mirror`.
pub async fn observe_all<K: Kernel>(
    kernel: &mut K,
    mirror: &mut Mirror,
) -> Result<(), KernelError> {
    for listed in kernel.list().await? {
        let key = listed.key;
        if let Some(reading) = kernel.fill(listed).await? {
            mirror.observe(key, Some((reading.observed, &reading.connections)));
        }
    }
    Ok(())
}
