//! The state of the cluster, for the tasks that read it.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cluster::clock::Clock;
use cluster::event::Batch;
use cluster::index::Index;
use dns::{DnsAnswer, DnsQuestion, DnsTransport, Responder, ResponderOptions, Turn};
use hickory_proto::op::Query;
use hickory_proto::rr::Name;
use tokio::sync::watch;

/// What the cluster state says about a question.
#[derive(Debug)]
pub(crate) enum ClusterAnswer {
    Answer(Box<DnsAnswer>),
    /// The name is not one of the cluster.
    NotOurs,
    /// The first list of the cluster's objects has not ended.
    NotRead,
}

/// The state of the cluster. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ClusterState {
    live: Arc<Mutex<LiveCluster>>,
    /// Whether the first list of the cluster has ended.
    is_read: watch::Sender<bool>,
}

#[derive(Debug)]
struct LiveCluster {
    index: Index,
    responder: Responder,
    domain: Name,
    node: Arc<str>,
    clock: Clock,
}

impl ClusterState {
    pub(crate) fn new(options: ResponderOptions) -> Self {
        let live = LiveCluster {
            index: Index::default(),
            domain: options.domain.clone(),
            node: Arc::clone(&options.node),
            clock: Clock::system(),
            responder: Responder::new(options),
        };
        Self {
            live: Arc::new(Mutex::new(live)),
            is_read: watch::Sender::new(false),
        }
    }

    /// Applies changes of the cluster. The next answer has them. A Service that several of them change costs once.
    pub(crate) fn apply(&self, batches: Vec<Batch>) {
        let LiveCluster {
            index,
            responder,
            node,
            ..
        } = &mut *self.lock();
        let was_read = index.completeness().is_some();
        for warning in batches.into_iter().flat_map(|batch| index.apply(batch)) {
            tracing::warn!("{warning}");
        }
        let is_first_list = index.completeness().is_some() && !was_read;
        if is_first_list {
            log_first_list(index, node);
        }
        let snapshot = index.snapshot_mut();
        // No kernel uses the firewall marks of this snapshot, so each can be used again.
        drop(snapshot.take_changed_firewall_marks());
        snapshot.free_released_firewall_marks(|_| false);
        responder.update(snapshot);
        if is_first_list {
            self.is_read.send_replace(true);
        }
    }

    /// Answers a question of a client that takes replies of `most_bytes`.
    pub(crate) fn ask(
        &self,
        query: &Query,
        client: IpAddr,
        transport: DnsTransport,
        most_bytes: u16,
    ) -> ClusterAnswer {
        let LiveCluster {
            index,
            responder,
            domain,
            clock,
            ..
        } = &mut *self.lock();
        let name = query.name();
        if index.completeness().is_none() {
            let may_be_ours = domain.zone_of(name) || name.parse_arpa_name().is_ok();
            return if may_be_ours {
                ClusterAnswer::NotRead
            } else {
                ClusterAnswer::NotOurs
            };
        }
        let question = DnsQuestion {
            name,
            record_type: query.query_type(),
            client: client.to_canonical(),
            transport,
            most_bytes,
            now: clock.now().unwrap_or_default(),
        };
        let answer = responder.answer(index.snapshot(), question);
        answer.map_or(ClusterAnswer::NotOurs, |answer| {
            ClusterAnswer::Answer(Box::new(answer))
        })
    }

    /// The reply with this turn over UDP was truncated.
    pub(crate) fn truncated(&self, turn: &Turn) {
        self.lock().responder.truncated(turn);
    }

    /// Whether the first list of the cluster has ended.
    pub(crate) fn is_read(&self) -> bool {
        *self.is_read.borrow()
    }

    /// Receives when the first list of the cluster has ended.
    pub(crate) fn readiness(&self) -> watch::Receiver<bool> {
        self.is_read.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, LiveCluster> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_first_list(index: &Index, node: &str) {
    let snapshot = index.snapshot();
    let services = snapshot.services().count();
    tracing::info!("the cluster is read: {services} Services");
    if snapshot.node(node).is_none() {
        tracing::warn!(
            "the cluster has no Node {node}, so its zone is unknown and hard policies match nothing; check --node"
        );
    }
}
