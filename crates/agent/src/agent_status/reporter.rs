//! Keeps the report up to date: asks the loop for the decisions, and writes when the rate limit allows.

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

/// Changes are gathered for so long before the loop is asked what they amount to.
const SETTLE: Duration = Duration::from_secs(1);
/// A start that takes longer is reported; a shorter one leaves what the agent before said of the kernel, which still holds.
const START: Duration = Duration::from_secs(60);
/// After so long without news of something, what is known of it counts as stale.
const STALE: SignedDuration = SignedDuration::from_mins(3);
/// How often the object is looked at: an operator may have removed it.
const LOOK: Duration = AMOUNTS;
/// Characters of the text of one warning.
const MAX_MESSAGE: usize = 480;
/// How often the collections are looked at: they make no sound when they change how they stand.
const GLANCE: Duration = Duration::from_secs(15);

/// Keeps the report of `node` until the loop has ended.
pub(crate) async fn keep(access: Access, node: Arc<str>, handle: AgentHandle, board: SyncStatus) {
    let mut was_logged = false;
    let connection = loop {
        match board.connect(&access).await {
            Ok(connection) => break connection,
            Err(error) if !std::mem::replace(&mut was_logged, true) => {
                tracing::warn!("this node's TopologyAgent cannot be written: {error}");
            }
            Err(_) => {}
        }
        sleep(SELDOM).await;
    };
    let mut reporter = Reporter::new(StatusClient::new(connection, node), handle, board);
    while reporter.step().await.is_ok() {}
}

/// The report of a running agent.
#[derive(Debug)]
struct Reporter {
    client: StatusClient,
    handle: AgentHandle,
    board: SyncStatus,
    epoch: Instant,
    rate_limit: RateLimit,
    /// Whether the API server ever said what it has: times that were reported before must not be lost.
    was_read: bool,
    /// What the API server has, as far as is known.
    written: Option<AgentStatus>,
    /// When the API server is asked again what it has.
    look: Duration,
    /// What stands in the way, in the words that were logged.
    trouble: Option<String>,
    /// How many requests in a row failed.
    failures: u32,
}

impl Reporter {
    /// Nothing is asked or written yet.
    fn new(client: StatusClient, handle: AgentHandle, board: SyncStatus) -> Self {
        Self {
            handle,
            board,
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

    /// Does what may be done now. Returns until when there is nothing more to do, if nothing changes.
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

    /// Waits for a change, or for this moment.
    async fn rest(&mut self, until: Duration) -> Result<(), Stopped> {
        let glance = self.epoch.elapsed() + GLANCE;
        tokio::select! {
            changed = self.handle.changed() => changed?,
            () = sleep_until(self.epoch + until.min(glance)) => return Ok(()),
        }
        sleep(SETTLE).await;
        Ok(())
    }

    /// What there is to report, and how many nodes there are; nothing while the agent starts, or where our kinds of
    /// objects are not installed.
    async fn compose(&self, now: Duration) -> Result<Option<(AgentStatus, u64)>, Stopped> {
        let (pulse, inputs) = (self.handle.pulse(), self.board.resources());
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
                "TopologyAgent is not installed, so nothing is reported there; apply manifests/crds if it is wanted"
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
        if self.is_news(error.fault.word()) {
            tracing::warn!("this node's TopologyAgent cannot be written: {error}");
        }
    }

    /// Whether it was not said before.
    fn is_news(&mut self, words: &str) -> bool {
        let before = self.trouble.replace(words.to_owned());
        before.as_deref() != Some(words)
    }
}

/// Whether it is of our own kinds, and the API server does not know it.
fn is_not_installed(input: &ResourceStatus) -> bool {
    input.phase == Reading::Absent && input.name.ends_with(GROUP)
}

/// The length of a report as JSON.
fn length(report: &AgentStatus) -> u64 {
    serde_json::to_vec(report).map_or(0, |text| text.len() as u64)
}

/// The report of this moment.
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

/// What is wrong with the node itself, as far as there is room.
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

/// How it goes, as the loop and the collections say.
fn phase(pulse: &Pulse, inputs: &[ResourceStatus], now: Timestamp) -> AgentPhase {
    let is_stale = |input: &ResourceStatus| {
        let silence = input.last_heard.map(|heard| now.duration_since(heard));
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
