//! The port [`Kernel`]: what the loop needs of the IPVS table, in the words of `topology-core`.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use topology_core::mirror::{Mirror, ObservedServer, StepOutcome};
use topology_core::plan::Step;
use topology_core::virtual_server::VirtualServerKey;

/// What the loop needs of the kernel's IPVS table.
///
/// Reading never changes anything. Every method may be given up and called again.
#[expect(
    async_fn_in_trait,
    reason = "the loop runs on one thread, so no future has to be Send"
)]
pub trait Kernel {
    /// Every virtual server, without real servers.
    async fn list(&mut self) -> Result<Vec<Listed>, KernelError>;

    /// The real servers of a virtual server that was just listed; `None` if it is gone meanwhile.
    async fn fill(&mut self, listed: Listed) -> Result<Option<Reading>, KernelError>;

    /// One virtual server with its real servers; `None` if there is none.
    async fn read(&mut self, key: &VirtualServerKey) -> Result<Option<Reading>, KernelError>;

    /// One virtual server with all its counters; `None` if there is none.
    async fn show(&mut self, key: &VirtualServerKey) -> Result<Option<KernelServer>, KernelError>;

    /// Takes steps in their order and goes on after one that fails; one result for each.
    /// [`Step::ForgetFlows`] is not IPVS' business: it is passed over, and counts as done here.
    async fn apply(&mut self, steps: &[Step]) -> Vec<Result<(), StepError>>;
}

/// A virtual server as listed, without its real servers.
#[derive(Debug, Clone)]
pub struct Listed {
    pub key: VirtualServerKey,
    pub observed: ObservedServer,
}

/// A virtual server with its real servers and the connections (active and inactive) of each.
#[derive(Debug, Clone)]
pub struct Reading {
    pub observed: ObservedServer,
    pub connections: Vec<u64>,
}

/// A virtual server as the kernel has it.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelServer {
    /// Its address and port, or its mark.
    pub key: VirtualServerKey,
    /// The scheduler's name.
    pub scheduler: Arc<str>,
    /// Session affinity in seconds, if any.
    pub persistence: Option<u32>,
    /// Totals and rates of the virtual server.
    pub traffic: Traffic,
    /// By address and port.
    pub real_servers: Vec<KernelReal>,
}

/// A real server as the kernel has it.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelReal {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Its weight; 0 takes no new connections.
    pub weight: u32,
    /// Established connections.
    pub active: u32,
    /// Connections that are closing or held open for late packets.
    pub inactive: u32,
    /// Connections held by session affinity.
    pub persistent: u32,
    /// Totals and rates.
    pub traffic: Traffic,
    /// `None` if it does not drain; inside, how long it may still drain, `None` if it waits for the end of its
    /// connections.
    pub drain: Option<Option<Duration>>,
}

/// Totals since creation, and the kernel's estimate of rates (each second).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Connections.
    pub connections: u64,
    /// Bytes from clients.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
    /// Connections each second.
    pub connections_rate: u64,
    /// Bytes from clients each second.
    pub bytes_in_rate: u64,
    /// Bytes to clients each second.
    pub bytes_out_rate: u64,
}

/// Why the kernel could not be read or spoken to, with the remedy.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct KernelError(Arc<dyn std::error::Error + Send + Sync>);

impl KernelError {
    /// Keeps the source, so that a caller can look into it.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(Arc::from(source.into()))
    }
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepError {
    pub outcome: StepOutcome,
    /// Whether the kernel does not have the scheduler of the step.
    pub no_scheduler: bool,
    /// What and why, with the remedy.
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
