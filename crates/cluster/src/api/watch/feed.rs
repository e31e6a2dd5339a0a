//! Holds the state that the readers of all resources share, and sends the batches in order.

use std::cell::RefCell;
use std::sync::Arc;

use kube_io::Connection;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::Instant;

use super::options::{Delivery, WatchOptions};
use super::reflector::Reflector;
use super::resources::{WatchedResource, cluster_resources};
use super::sync_status::SyncStatus;
use crate::event::Batch;

pub(super) struct Feed {
    pub(super) resources: Vec<WatchedResource>,
    pub(super) connection: Connection,
    pub(super) reflector: RefCell<Reflector>,
    pub(super) delivery: Delivery,
    pub(super) batches: mpsc::Sender<Batch>,
    /// Held while batches are sent: `Complete` must not overtake a batch that waits for room.
    pub(super) sending: Mutex<()>,
    pub(super) sync_status: SyncStatus,
    pub(super) server: Arc<str>,
    /// Notified when a policy selects by namespaces.
    pub(super) namespaces_needed: Notify,
    /// Notified when the readiness of the TopologyMaps may have changed.
    pub(super) readiness_changed: Notify,
    /// Notified when the query for Nodes may have changed.
    pub(super) query_changed: Notify,
    /// Notified when an object may wait for labels of Nodes.
    pub(super) labels_missing: Notify,
    pub(super) epoch: Instant,
}

impl Feed {
    pub(super) fn new(
        connection: Connection,
        options: &WatchOptions,
        batches: mpsc::Sender<Batch>,
    ) -> (Self, SyncStatus) {
        let resources = cluster_resources(options.services);
        let sync_status = SyncStatus::new(connection.clone(), &resources);
        let feed = Self {
            reflector: RefCell::new(Reflector::new(options, &resources)),
            delivery: options.delivery,
            resources,
            server: connection.server().into(),
            connection,
            batches,
            sending: Mutex::new(()),
            sync_status: sync_status.clone(),
            namespaces_needed: Notify::new(),
            readiness_changed: Notify::new(),
            query_changed: Notify::new(),
            labels_missing: Notify::new(),
            epoch: Instant::now(),
        };
        (feed, sync_status)
    }

    /// Sends the batches of the reflector. Returns `None` when the receiver is gone.
    pub(super) async fn send_batches(&self) -> Option<()> {
        let _sending = self.sending.lock().await;
        loop {
            let batch = self.reflector.borrow_mut().take();
            let Some(batch) = batch else { break };
            self.batches.send(batch).await.ok()?;
        }
        if self.reflector.borrow().needs_namespaces() {
            self.namespaces_needed.notify_one();
        }
        self.readiness_changed.notify_one();
        self.labels_missing.notify_one();
        self.query_changed.notify_one();
        Some(())
    }
}
