//! Runs the data plane of one node: starts it with a configuration, and ends it on a signal.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster::api::SyncStatus;
use cluster::source::Watch;
use dataplane::crash_point::CrashPoint;
use dataplane::host::{Machine, Records, SettingsConfig, WarningReceivers};
use dataplane::infrastructure::NetworkMonitor;
use dataplane::nftables::watch_forwarding;
use dataplane::other_proxy;
use dataplane::ownership::{
    self, Claims, Deadlines, Draining, MarkRecord, OwnershipRecord, SavedMarks, SettingsRecord,
};
use dataplane::preflight;
use dataplane::routes::RouteError;
use dataplane::routes::address_monitor::AddressMonitor;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::agent_config::AgentConfig;
use crate::metrics::Metrics;
use crate::reconcile::{Ended, InfrastructureChanges, Parts, Reconciler};
use crate::start_error::StartError;
use crate::state::LoopEnds;

/// Why the agent exits if the thread that reads the cluster has panicked.
const SOURCE_LOST: &str = "the thread that follows the cluster ended; the agent exits so that it is started again, and \
                           the data plane goes on serving";

/// Why the agent exits if the thread that deletes connection tracking entries has exited.
const CONNTRACK_LOST: &str = "the thread that deletes connection tracking entries ended; the agent exits so that it is \
                              started again, and the data plane goes on serving";

/// Why the agent exits if a task that looks at the node panics.
const SEARCH_LOST: &str = "the search for other proxies or for chains that drop packets ended; the agent exits so that \
                           it is started again, and the data plane goes on serving";

/// Runs the data plane until SIGTERM or SIGINT, or until `superseded` returns a reason to exit, which is returned.
/// Everything that was programmed stays in the kernel.
///
/// Must be called within a tokio runtime with I/O and time enabled, in the network namespace of the node.
///
/// # Errors
/// Only before anything is written: the module or a permission is missing, or the ownership record cannot be written.
pub(crate) async fn run(
    config: AgentConfig,
    source: Watch,
    metrics: Metrics,
    ends: LoopEnds,
    superseded: impl Future<Output = String>,
) -> Result<Option<String>, StartError> {
    let LoopEnds {
        queries,
        pulse,
        health_ports,
        loopback_ports,
        endpoint_connections,
    } = ends;
    let stop_signal = telemetry::stop_signal().map_err(StartError::Signals)?;
    let kernel = preflight::ipvs().await?;
    let crash_point = Arc::new(CrashPoint::new(config.crash_after));
    let boot = ownership::boot_id().map_err(unusable(&config))?;
    let (record, claims) = open_record(&config, &boot)?;
    let (draining, deadlines) = open_draining(&config, &boot);
    let (mark_record, saved_marks) = open_marks(&config, &boot);
    let (warnings, mut tasks) = watch_node(&config);
    let infrastructure = follow_infrastructure(&config, &source, &mut tasks).await?;
    let records = Records {
        owned: record,
        draining,
        marks: mark_record,
        settings: open_settings(&config, &boot),
    };
    let settings = SettingsConfig {
        sysctl_dir: config.sysctl_dir.clone(),
        conntrack: config.conntrack,
    };
    let host = Machine::open(records, settings, warnings, Arc::clone(&crash_point))?;
    let address_monitor = AddressMonitor::open().map_err(RouteError::from)?;
    tracing::info!(node = %config.node, "started");
    let parts = Parts {
        kernel,
        host,
        infrastructure,
        endpoint_connections,
        ours: claims.keys.into_iter().collect(),
        deadlines: deadlines.iter().collect(),
        marks: saved_marks.marks,
        epoch: booted(),
        metrics,
        pulse,
        health_ports,
        loopback_ports,
        crash_point,
    };
    let mut why = None;
    let stop = async {
        tokio::select! {
            () = stop_signal => {}
            words = superseded => why = Some(words),
            Some(Err(error)) = tasks.join_next() => why = Some(format!("{SEARCH_LOST}: {error}")),
        }
    };
    let ended = Reconciler::new(config, parts)
        .run(source, address_monitor, queries, stop)
        .await;
    Ok(lost(ended).map(str::to_owned).or(why))
}

/// Why the agent exits, unless it was stopped.
const fn lost(ended: Ended) -> Option<&'static str> {
    match ended {
        Ended::Stopped => None,
        Ended::SourceLost => Some(SOURCE_LOST),
        Ended::ConntrackLost => Some(CONNTRACK_LOST),
    }
}

/// Starts the tasks that look at the node.
fn watch_node(config: &AgentConfig) -> (WarningReceivers, JoinSet<()>) {
    let (proxies, other_proxy) = watch::channel(Vec::new());
    let (chains, forwarding) = watch::channel(Vec::new());
    let mut tasks = JoinSet::new();
    let period = config.check_period;
    tasks.spawn(other_proxy::watch(config.ports.clone(), period, proxies));
    tasks.spawn(watch_forwarding(period, chains));
    let warnings = WarningReceivers {
        other_proxy,
        forwarding,
    };
    (warnings, tasks)
}

/// Reads what the node depends on, and starts the task that follows it.
async fn follow_infrastructure(
    config: &AgentConfig,
    source: &Watch,
    tasks: &mut JoinSet<()>,
) -> Result<InfrastructureChanges, RouteError> {
    let monitor = NetworkMonitor::open().await?;
    let changes = InfrastructureChanges {
        network: monitor.changes(),
        api_servers: source.sync_status().map(SyncStatus::peers),
    };
    tasks.spawn(monitor.run(config.check_period));
    Ok(changes)
}

/// The boot time on a clock that stops during suspend, like the loop's clock.
fn booted() -> Instant {
    let since = clock_gettime(ClockId::Monotonic);
    let since = Duration::try_from(since).unwrap_or_default();
    let now = Instant::now();
    now.checked_sub(since).unwrap_or(now)
}

fn unusable(config: &AgentConfig) -> impl FnOnce(io::Error) -> StartError {
    let directory = config.state_dir.clone();
    |source| StartError::Record { directory, source }
}

fn open_record(config: &AgentConfig, boot: &str) -> Result<(OwnershipRecord, Claims), StartError> {
    let opened = OwnershipRecord::open(&config.state_dir, boot);
    let (record, claims) = opened.map_err(unusable(config))?;
    if claims.damaged > 0 {
        tracing::warn!(
            lines = claims.damaged,
            "the ownership record has lines that cannot be read; virtual servers named there are treated as foreign"
        );
    }
    Ok((record, claims))
}

/// Without this record the node still serves, so its errors do not end the agent.
fn open_draining(config: &AgentConfig, boot: &str) -> (Draining, Deadlines) {
    let (draining, deadlines) = Draining::open(&config.state_dir, boot);
    let deadlines = deadlines.unwrap_or_else(|error| {
        let place = config.state_dir.display();
        tracing::warn!(
            "the deadlines of draining real servers in {place} cannot be read: {error}; each has the whole \
             --drain-timeout again"
        );
        Deadlines::default()
    });
    if deadlines.damaged > 0 {
        tracing::warn!(
            lines = deadlines.damaged,
            "the deadlines of draining real servers have lines that cannot be read; what they name has the whole \
             --drain-timeout again"
        );
    }
    (draining, deadlines)
}

/// Without this record the node still serves, so its errors do not end the agent.
fn open_marks(config: &AgentConfig, boot: &str) -> (MarkRecord, SavedMarks) {
    let (record, saved) = MarkRecord::open(&config.state_dir, boot);
    let saved = saved.unwrap_or_else(|error| {
        let place = config.state_dir.display();
        tracing::warn!(
            "the firewall marks in {place} cannot be read: {error}; marks may change, and then connections from outside \
             of the cluster to Services with externalTrafficPolicy Local end"
        );
        SavedMarks::default()
    });
    if saved.damaged > 0 {
        tracing::warn!(
            lines = saved.damaged,
            "the record of firewall marks has lines that cannot be read; the marks of what they name may change"
        );
    }
    (record, saved)
}

/// Without this record the node still serves, so its errors do not end the agent.
fn open_settings(config: &AgentConfig, boot: &str) -> SettingsRecord {
    let (record, saved) = SettingsRecord::open(&config.state_dir, boot);
    match saved {
        Ok(saved) if saved.damaged > 0 => tracing::warn!(
            lines = saved.damaged,
            "the record of changed settings has lines that cannot be read; their old values cannot be restored"
        ),
        Ok(_) => {}
        Err(error) => {
            let place = config.state_dir.display();
            tracing::warn!(
                "the record of changed settings in {place} cannot be read: {error}; old values may be lost"
            );
        }
    }
    record
}
