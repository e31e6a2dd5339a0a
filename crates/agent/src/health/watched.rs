//! Derives the state of the loop from what it publishes, and detects a loop that hangs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use cluster::api::SyncStatus;
use jiff::Timestamp;
use tokio::time::timeout;

use super::{FamilyHealth, HealthSource, HealthState};
use crate::inputs;
use crate::state::{AgentHandle, Pulse};

/// How long the loop may take to respond before it counts as hanging for a probe.
const PATIENCE: Duration = Duration::from_secs(1);

/// The loop, as health sees it.
#[derive(Debug)]
pub(crate) struct Watched {
    handle: AgentHandle,
    sync_status: Option<SyncStatus>,
    /// Since when the loop has not responded to a probe.
    silent_since: Mutex<Option<Timestamp>>,
}

impl Watched {
    /// Watches the loop behind `handle`. Costs nothing without probes.
    pub(crate) fn new(handle: AgentHandle, sync_status: Option<SyncStatus>) -> Self {
        Self {
            handle,
            sync_status,
            silent_since: Mutex::new(None),
        }
    }
}

impl HealthSource for Watched {
    /// A loop that hangs publishes nothing, so its last state proves nothing: the probe queries it.
    async fn health_state(&self) -> HealthState {
        let answered = timeout(PATIENCE, self.handle.ping())
            .await
            .is_ok_and(|answer| answer.is_ok());
        let silent = {
            // No code that holds the lock panics.
            let mut silent = self
                .silent_since
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if answered {
                *silent = None;
            } else {
                silent.get_or_insert_with(Timestamp::now);
            }
            *silent
        };
        HealthState {
            inputs: self
                .sync_status
                .as_ref()
                .map(inputs::collections)
                .unwrap_or_default(),
            ..health_state(&self.handle.pulse(), silent)
        }
    }
}

fn health_state(pulse: &Pulse, silent_since: Option<Timestamp>) -> HealthState {
    let oldest_pending = if pulse.ready {
        [waiting_since(pulse), silent_since]
    } else {
        [first_pass_since(pulse), silent_since]
    };
    let oldest_pending = oldest_pending.into_iter().flatten().min();
    // Before the first pass a change counts as pending only if the pass could be done.
    let last_updated = pulse.last_pass.and_then(timestamp).or(oldest_pending);
    let family = last_updated.map(|last_updated| FamilyHealth {
        last_updated,
        oldest_pending,
    });
    HealthState {
        families: ["IPv4", "IPv6"]
            .into_iter()
            .filter_map(|name| Some((name, family?)))
            .collect::<BTreeMap<_, _>>(),
        programmed: pulse.ready,
        node_eligible: pulse.node_eligible,
        inputs: Vec::new(),
    }
}

/// Since when a change of the input waits, or routes or tables fail. `status` and metrics show a failed virtual server.
/// It does not make the whole proxy unhealthy, as in kube-proxy, unless nothing else is programmed.
fn waiting_since(pulse: &Pulse) -> Option<Timestamp> {
    let programmed = pulse.v4.virtual_servers + pulse.v6.virtual_servers;
    let servers = pulse.servers_failing.filter(|_| programmed == 0);
    let all = [pulse.input_pending, pulse.host_failing, servers];
    let waits = all.into_iter().flatten().min()?.elapsed();
    SystemTime::now().checked_sub(waits).and_then(timestamp)
}

/// Since when the first pass could be done: the required input is complete.
fn first_pass_since(pulse: &Pulse) -> Option<Timestamp> {
    let waits = pulse.input_since?.elapsed();
    SystemTime::now().checked_sub(waits).and_then(timestamp)
}

/// A time outside the range of a timestamp counts as none.
fn timestamp(time: SystemTime) -> Option<Timestamp> {
    Timestamp::try_from(time).ok()
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::state::{FamilyCounts, Query, channel};

    fn ago(seconds: u64) -> SystemTime {
        SystemTime::now() - Duration::from_secs(seconds)
    }

    #[test]
    fn t15_one_failed_virtual_server_does_not_make_the_proxy_unhealthy() {
        let counts = FamilyCounts {
            virtual_servers: 3,
            active: 3,
            draining: 0,
        };
        let failing = Pulse {
            ready: true,
            last_pass: Some(ago(1)),
            servers_failing: Some(Instant::now()),
            waiting: 1,
            v4: counts,
            ..Pulse::default()
        };
        let is_pending = |pulse: &Pulse| {
            let state = health_state(pulse, None);
            let pending = ["IPv4", "IPv6"].map(|family| state.families[family].oldest_pending);
            assert_eq!(pending[0], pending[1]);
            pending[0].is_some()
        };
        assert!(!is_pending(&failing));
        let stuck = Pulse {
            input_pending: Some(Instant::now()),
            ..failing.clone()
        };
        assert!(is_pending(&stuck), "a change waits, too");
        let without_routes = Pulse {
            host_failing: Some(Instant::now()),
            ..failing.clone()
        };
        assert!(is_pending(&without_routes));
        let nothing_works = Pulse {
            v4: FamilyCounts::default(),
            ..failing
        };
        assert!(is_pending(&nothing_works));
    }

    #[test]
    fn pain_16_a_first_pass_that_does_not_end_makes_the_proxy_unhealthy() {
        assert!(health_state(&Pulse::default(), None).families.is_empty());
        let hung = health_state(&Pulse::default(), timestamp(ago(70)));
        assert!(hung.families["IPv4"].oldest_pending.is_some());
        let late = Pulse {
            input_ready: true,
            input_since: Some(Instant::now()),
            ..Pulse::default()
        };
        assert!(
            health_state(&late, None).families["IPv6"]
                .oldest_pending
                .is_some()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn pain_16_a_loop_that_hangs_is_detected_despite_its_last_state() {
        let (handle, mut ends) = channel();
        ends.pulse.send_replace(Pulse {
            ready: true,
            last_pass: Some(ago(1)),
            ..Pulse::default()
        });
        let watched = Watched::new(handle, None);
        let silent = watched.health_state().await;
        assert!(silent.families["IPv4"].oldest_pending.is_some());

        // The loop continues. It answers queries whose clients no longer wait.
        let answering = tokio::spawn(async move {
            while let Some(query) = ends.queries.recv().await {
                if let Query::Ping(reply) = query {
                    let _answered = reply.send(());
                }
            }
        });
        let back = watched.health_state().await;
        assert_eq!(back.families["IPv4"].oldest_pending, None);
        answering.abort();
    }
}
