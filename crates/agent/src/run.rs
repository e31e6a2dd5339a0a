//! One node's data plane: started with a configuration, read through a handle, ended by a signal.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cluster::source::Watch;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use topology_core::model::Cidr;
use topology_core::scheduler::Scheduler;

use crate::fuse::Fuse;
use crate::host::Machine;
use crate::metrics::Metrics;
use crate::ownership::Record;
use crate::reconcile::{Ended, Parts, Reconciler};
use crate::routes::RouteError;
use crate::routes::moves::Moves;
use crate::state::LoopEnds;
use crate::{other_proxy, preflight};

pub use crate::preflight::StartError;

/// Why the agent exits when the thread that reads the cluster is gone.
const SOURCE_LOST: &str = "the thread that follows the cluster ended; the agent exits so that it is started again, and \
                           the data plane goes on serving";

/// Everything the loop is told at start. Defaults belong to the command line.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// This node's name, as its Node object has it.
    pub node: Arc<str>,
    /// Whether other Nodes are known from the map, which tells few of their labels.
    pub mapped: bool,
    /// Service ranges used when the input has no `ServiceCIDR` object.
    pub service_cidrs: Vec<Cidr>,
    /// The node's own addresses, at most one of each family; empty: the Node object's `InternalIP`,
    /// then what the default route sends from, then the first global address. Only addresses that
    /// this machine has count.
    pub node_ips: Vec<IpAddr>,
    /// The scheduler of every virtual server, unless its Service asks for another.
    pub scheduler: Scheduler,
    /// How often the kernel is compared with what it should hold.
    pub check_period: Duration,
    /// How long a leaving real server may keep its connections.
    pub drain_timeout: Duration,
    /// Where the ownership record lives, `/run/ipvs-topo`.
    pub state_dir: PathBuf,
    /// Where the kernel's settings are, `/proc/sys`.
    pub sysctl_dir: PathBuf,
    /// Take over virtual servers of others whose address and port the cluster asks for.
    pub adopt: bool,
    /// Ports of this agent where a kube-proxy may answer in its place.
    pub ports: BTreeSet<u16>,
    /// For tests: kill the process after so many writes.
    pub crash_after: Option<u64>,
}

/// Runs the data plane until SIGTERM or SIGINT, or until `superseded` says why to end, which is returned. What it
/// programmed stays in the kernel.
///
/// Must be called within a tokio runtime with I/O and time enabled, in the network namespace of the
/// node.
///
/// # Errors
/// Only before anything is written: the module or a permission is missing, the ownership record
/// cannot be kept.
pub async fn run(
    config: AgentConfig,
    source: Watch,
    metrics: Metrics,
    ends: LoopEnds,
    superseded: impl Future<Output = String>,
) -> Result<Option<String>, StartError> {
    let LoopEnds { questions, pulse } = ends;
    let stop = Stop::listen().map_err(StartError::Signals)?;
    let kernel = preflight::ipvs().await?;
    let fuse = Arc::new(Fuse::new(config.crash_after));
    let (record, claims) = open_record(&config)?;
    let (news, other_proxy) = watch::channel(Vec::new());
    tokio::spawn(other_proxy::watch(
        config.ports.clone(),
        config.check_period,
        news,
    ));
    let host = Machine::open(
        record,
        config.sysctl_dir.clone(),
        other_proxy,
        Arc::clone(&fuse),
    )?;
    let moves = Moves::open().map_err(RouteError::from)?;
    let ours = claims.keys.into_iter().collect();
    tracing::info!(node = %config.node, "started");
    let parts = Parts {
        kernel,
        host,
        ours,
        metrics,
        pulse,
        fuse,
    };
    let mut why = None;
    let stop = async {
        tokio::select! {
            () = stop.requested() => {}
            words = superseded => why = Some(words),
        }
    };
    let ended = Reconciler::new(config, parts)
        .run(source, moves, questions, stop)
        .await;
    match ended {
        Ended::Stopped => Ok(why),
        Ended::SourceLost => Ok(Some(SOURCE_LOST.to_owned())),
    }
}

fn open_record(config: &AgentConfig) -> Result<(Record, crate::ownership::Claims), StartError> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let opened = boot.and_then(|boot| Record::open(&config.state_dir, boot.trim()));
    let (record, claims) = opened.map_err(|source| StartError::Record {
        directory: config.state_dir.clone(),
        source,
    })?;
    if claims.damaged > 0 {
        tracing::warn!(
            lines = claims.damaged,
            "the ownership record has lines that cannot be read; virtual servers named there are treated as foreign"
        );
    }
    Ok((record, claims))
}

/// SIGTERM and SIGINT.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn requested(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
