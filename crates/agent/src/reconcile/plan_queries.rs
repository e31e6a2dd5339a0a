//! The queries of `ipvs-topo diff`, which are answered slice by slice, so that no change of the cluster waits for the whole
//! table (D13).

use std::collections::VecDeque;
use std::vec::IntoIter;

use dataplane::ipvs::ListedServer;
use tokio::sync::oneshot;
use topology_core::mirror::Mirror;
use topology_core::model::ObjectName;
use topology_core::plan::Step;

pub(super) type Reply = oneshot::Sender<Result<Vec<Step>, String>>;

/// The queries for the steps of a full pass. One is answered after the other.
#[derive(Debug, Default)]
pub(super) struct PlanQueries {
    pub(super) waiting: VecDeque<Reply>,
    pub(super) running: Option<PlanQuery>,
}

#[derive(Debug)]
pub(super) struct PlanQuery {
    pub(super) reply: Reply,
    /// The virtual servers that are read.
    pub(super) mirror: Mirror,
    pub(super) unread: IntoIter<ListedServer>,
    /// The Services that are not compared yet.
    pub(super) services: IntoIter<ObjectName>,
    pub(super) steps: Vec<Step>,
}

impl PlanQueries {
    pub(super) fn push(&mut self, reply: Reply) {
        self.waiting.push_back(reply);
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some() || !self.waiting.is_empty()
    }
}
