//! Keeps the report up to date: queries the loop, and writes when the rate limit permits.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use cluster::api::{Phase as Reading, ResourceStatus, SyncStatus};
use crd::topology_agent::{AgentCounts, AgentPhase, AgentStatus, NodeWarning};
use crd::{GROUP, MAX_WARNING_BYTES, MAX_WARNINGS};
use jiff::{SignedDuration, Timestamp};
use kube_io::{Access, ApiError};
use tokio::time::{Instant, sleep, sleep_until};

use super::compare::{difference, keep_times};
use super::rate_limit::{AMOUNTS, RateLimit, ReportLoad, SELDOM};
use super::share::{Room, first};
use super::{DecisionSummary, StatusClient, WriteResult};
use crate::state::{AgentHandle, Pulse, Stopped};

/// How long changes are collected before the loop is queried.
const SETTLE: Duration = Duration::from_secs(1);
/// A start that takes longer is reported. During a shorter one the previous agent's report about the kernel stays,
/// which is still true.
const START: Duration = Duration::from_secs(60);
/// Without news for this long, the state of a resource counts as stale.
const STALE: SignedDuration = SignedDuration::from_mins(3);
/// How often the object is read: an operator may have deleted it.
const LOOK: Duration = AMOUNTS;
/// Characters of the text of one warning.
const MAX_MESSAGE: usize = 480;
/// How often the watch states are read: they send no notification.
const GLANCE: Duration = Duration::from_secs(15);

/// Keeps the report of `node` up to date until the loop has ended.
pub(crate) async fn keep(
    access: Access,
    node: Arc<str>,
    handle: AgentHandle,
    sync_status: SyncStatus,
) {
    let mut was_logged = false;
    let connection = loop {
        match sync_status.connect(&access).await {
            Ok(connection) => break connection,
            Err(error) if !std::mem::replace(&mut was_logged, true) => {
                tracing::warn!("this node's TopologyAgent cannot be written: {error}");
            }
            Err(_) => {}
        }
        sleep(SELDOM).await;
    };
    let mut reporter = Reporter::new(StatusClient::new(connection, node), handle, sync_status);
    while reporter.step().await.is_ok() {}
}

/// The report of a running agent.
#[derive(Debug)]
struct Reporter {
    client: StatusClient,
    handle: AgentHandle,
    sync_status: SyncStatus,
    epoch: Instant,
    rate_limit: RateLimit,
    /// Whether the existing report was read: its times must not be lost.
    was_read: bool,
    /// The report in the API server, as far as known.
    written: Option<AgentStatus>,
    /// When to read the report again.
    look: Duration,
    /// The last logged error.
    trouble: Option<String>,
    /// Number of consecutive failures.
    failures: u32,
}

impl Reporter {
    /// Nothing was read or written yet.
    fn new(client: StatusClient, handle: AgentHandle, sync_status: SyncStatus) -> Self {
        Self {
            handle,
            sync_status,
            epoch: Instant::now(),
            rate_limit: RateLimit::of(client.node()),
            client,
            was_read: false,
            written: None,
            look: Duration::ZERO,
            trouble: None,
            failures: 0,
        }
    }

    async fn step(&mut self) -> Result<(), Stopped> {
        match self.turn().await? {
            Some(until) => self.rest(until).await,
            None => Ok(()),
        }
    }

    /// Does what is due. Returns when the next action is due if nothing changes.
    async fn turn(&mut self) -> Result<Option<Duration>, Stopped> {
        let now = self.epoch.elapsed();
        if now >= self.look {
            self.read(now).await;
        }
        if !self.was_read {
            return Ok(Some(self.look));
        }
        let report = self.compose(now).await?;
        let due = report.as_ref().and_then(|(report, nodes)| {
            let load = ReportLoad {
                nodes: *nodes,
                bytes: length(report),
            };
            let difference = difference(report, self.written.as_ref());
            self.rate_limit.due(now, difference, load)
        });
        match (report, due) {
            (Some((report, _)), Some(due)) if due <= now => {
                self.write(now, report).await;
                Ok(None)
            }
            (_, due) => Ok(Some(due.map_or(self.look, |due| due.min(self.look)))),
        }
    }

    /// Waits for a change, or until this time.
    async fn rest(&mut self, until: Duration) -> Result<(), Stopped> {
        let glance = self.epoch.elapsed() + GLANCE;
        tokio::select! {
            changed = self.handle.changed() => changed?,
            () = sleep_until(self.epoch + until.min(glance)) => return Ok(()),
        }
        sleep(SETTLE).await;
        Ok(())
    }

    /// The report and the number of nodes; `None` while the agent starts, or if the CRDs are not
    /// installed.
    async fn compose(&self, now: Duration) -> Result<Option<(AgentStatus, u64)>, Stopped> {
        let (pulse, inputs) = (self.handle.pulse(), self.sync_status.resources());
        if !pulse.ready && now < START || inputs.iter().any(is_not_installed) {
            return Ok(None);
        }
        let summary = self.handle.decision_summary().await?;
        let nodes = summary.nodes;
        let phase = phase(&pulse, &inputs, Timestamp::now());
        let mut report = compose(&pulse, phase, summary);
        if let Some(written) = &self.written {
            keep_times(&mut report, written);
        }
        Ok(Some((report, nodes)))
    }

    async fn read(&mut self, now: Duration) {
        match self.client.read().await {
            Ok(written) => {
                if written.is_some() {
                    (self.trouble, self.failures) = (None, 0);
                }
                self.look = now + LOOK;
                self.was_read = true;
                self.written = written;
            }
            Err(error) => {
                self.failed(now, &error);
                self.look = self.rate_limit.not_before();
            }
        }
    }

    async fn write(&mut self, now: Duration, report: AgentStatus) {
        let words = match self.client.write(&report, self.written.is_some()).await {
            Ok(WriteResult::Written) => {
                self.rate_limit.wrote(now);
                self.written = Some(report);
                self.failures = 0;
                if self.trouble.take().is_some() {
                    tracing::info!("this node's TopologyAgent is written again");
                }
                return;
            }
            Ok(WriteResult::NoKind) => {
                "TopologyAgent is not installed, so nothing is reported there; apply manifests/crds if reports are needed"
            }
            Ok(WriteResult::NoNode) => {
                "this node has no Node object, so nothing is reported in a TopologyAgent; check --node"
            }
            Err(error) => return self.failed(now, &error),
        };
        self.rate_limit.nowhere(now);
        if self.is_news(words) {
            tracing::info!("{words}");
        }
    }

    fn failed(&mut self, now: Duration, error: &ApiError) {
        self.rate_limit.failed(now, error.retry_after);
        self.failures = self.failures.saturating_add(1);
        if error.is_initializing(self.failures) {
            return;
        }
        if self.is_news(error.fault.as_str()) {
            tracing::warn!("this node's TopologyAgent cannot be written: {error}");
        }
    }

    /// Whether the error is new.
    fn is_news(&mut self, words: &str) -> bool {
        let before = self.trouble.replace(words.to_owned());
        before.as_deref() != Some(words)
    }
}

/// Whether the resource is one of our CRDs and is not installed.
fn is_not_installed(input: &ResourceStatus) -> bool {
    input.phase == Reading::Absent && input.name.ends_with(GROUP)
}

/// Length of a report as JSON.
fn length(report: &AgentStatus) -> u64 {
    serde_json::to_vec(report).map_or(0, |text| text.len() as u64)
}

fn compose(pulse: &Pulse, phase: AgentPhase, summary: DecisionSummary) -> AgentStatus {
    let sum = |part: fn(&crate::state::FamilyCounts) -> u64| part(&pulse.v4) + part(&pulse.v6);
    AgentStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        phase,
        counts: AgentCounts {
            services: pulse.services,
            virtual_servers: sum(|family| family.virtual_servers),
            real_servers: sum(|family| family.active + family.draining),
            failed: pulse.waiting,
            policies: summary.deciding,
            fallbacks: pulse.fallbacks,
        },
        policies: summary.policies,
        drains: summary.drains,
        fallbacks: summary.fallbacks,
        warnings: warnings(pulse),
    }
}

/// Warnings about the node, as far as there is space.
fn warnings(pulse: &Pulse) -> Vec<NodeWarning> {
    let mut room = Room {
        bytes: MAX_WARNING_BYTES,
        entries: MAX_WARNINGS,
    };
    let own = pulse
        .node_warnings
        .iter()
        .filter(|warning| warning.topic.is_of_this_node());
    let warnings = own.map(|warning| NodeWarning {
        code: warning.topic.code().to_owned(),
        message: warning.text.chars().take(MAX_MESSAGE).collect(),
    });
    first(warnings, &mut room)
}

/// The phase, from the state of the loop and the watches.
fn phase(pulse: &Pulse, inputs: &[ResourceStatus], now: Timestamp) -> AgentPhase {
    let is_stale = |input: &ResourceStatus| {
        let silence = input
            .last_received
            .map(|received| now.duration_since(received));
        input.phase == Reading::Stale && silence.is_none_or(|silence| silence > STALE)
    };
    if !pulse.ready || inputs.iter().any(|input| input.phase == Reading::Listing) {
        AgentPhase::Starting
    } else if pulse.waiting > 0 || inputs.iter().any(is_stale) {
        AgentPhase::Degraded
    } else {
        AgentPhase::Serving
    }
}
