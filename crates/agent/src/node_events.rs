//! Events on this Node, with the reasons of kube-proxy (KP-EV-01): the start, and servers that cannot listen.
//!
//! They are for people: an Event that cannot be written is dropped after some tries.

use std::sync::Arc;
use std::time::Duration;

use cluster::api::SyncStatus;
use jiff::Timestamp;
use kube_io::{Access, ApiError, Connection, Fault};
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::sleep;

/// Events about objects without a namespace are in this one.
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
/// Events that wait for the API server; more are dropped.
const WAITING: usize = 8;
/// As in client-go.
const TRIES: u32 = 12;
const RETRY: Duration = Duration::from_secs(10);
/// The API server accepts names of 253 characters and instances of 128.
const NAME_LENGTH: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvent {
    reason: &'static str,
    /// `Normal` or `Warning`.
    severity: &'static str,
    note: String,
    at: Timestamp,
}

impl NodeEvent {
    /// The agent starts.
    pub fn starting() -> Self {
        Self {
            reason: "Starting",
            severity: "Normal",
            note: format!("ipvs-topo {} starts", env!("CARGO_PKG_VERSION")),
            at: Timestamp::now(),
        }
    }

    /// A server cannot listen.
    pub(crate) fn failed_to_start(reason: &'static str, note: String) -> Self {
        Self {
            reason,
            severity: "Warning",
            note,
            at: Timestamp::now(),
        }
    }
}

/// Accepts Events; never waits.
#[derive(Debug, Clone)]
pub(crate) struct NodeEvents(Sender<NodeEvent>);

impl NodeEvents {
    /// Accepts Events until the receiver is dropped.
    pub(crate) fn channel() -> (Self, Receiver<NodeEvent>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), receiver)
    }

    pub(crate) fn record(&self, event: NodeEvent) {
        // Without an API server nothing receives it; the log has it.
        drop(self.0.try_send(event));
    }
}

/// Writes the Events until all senders are dropped.
pub(crate) async fn keep(
    access: Access,
    node: Arc<str>,
    sync_status: SyncStatus,
    mut events: Receiver<NodeEvent>,
) {
    let connection = loop {
        match sync_status.connect(&access).await {
            Ok(connection) => break connection,
            // The report of the node logs the cause.
            Err(_) => sleep(RETRY).await,
        }
    };
    while let Some(event) = events.recv().await {
        if let Err(error) = write_patiently(&connection, &node, &event).await {
            tracing::warn!(
                "the Event {} of this Node is not written: {error}",
                event.reason
            );
        }
    }
}

async fn write_patiently(
    connection: &Connection,
    node: &str,
    event: &NodeEvent,
) -> Result<(), ApiError> {
    let mut tries = 1;
    loop {
        match write(connection, node, event).await {
            Err(error) if is_temporary(error.fault) && tries < TRIES => tries += 1,
            done => return done,
        }
        sleep(RETRY).await;
    }
}

/// Whether the same request may succeed later.
const fn is_temporary(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Unreachable
            | Fault::Unavailable
            | Fault::TooManyRequests
            | Fault::Timeout
            | Fault::Unauthorized
            | Fault::Certificate
    )
}

/// Creates the Event.
///
/// # Errors
/// The API server does not respond, or refuses.
pub async fn write(connection: &Connection, node: &str, event: &NodeEvent) -> Result<(), ApiError> {
    connection.create(EVENTS, &object(node, event)).await?;
    Ok(())
}

/// kubectl finds the Events of a Node by its name as the uid.
fn object(node: &str, event: &NodeEvent) -> Value {
    let start = node.get(..NAME_LENGTH).unwrap_or(node);
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{start}.{:x}", event.at.as_nanosecond()),
            "namespace": "default",
        },
        "regarding": { "kind": "Node", "name": node, "uid": node },
        "type": event.severity,
        "reason": event.reason,
        "action": "StartKubeProxy",
        "note": event.note,
        "eventTime": format!("{:.6}", event.at),
        "reportingController": "ipvs-topo.io/agent",
        "reportingInstance": start,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kp_ev_01_an_event_has_kube_proxys_reason_and_is_about_the_node() {
        let event = NodeEvent {
            at: Timestamp::from_second(1_000_000_000).unwrap(),
            ..NodeEvent::starting()
        };
        let object = object("n1", &event);
        let expected = json!({ "kind": "Node", "name": "n1", "uid": "n1" });
        assert_eq!(object["regarding"], expected);
        assert_eq!(
            (&object["type"], &object["reason"]),
            (&json!("Normal"), &json!("Starting"))
        );
        assert_eq!(object["metadata"]["name"], "n1.de0b6b3a7640000");
        assert_eq!(object["eventTime"], "2001-09-09T01:46:40.000000Z");
        let long = "n".repeat(253);
        let name = super::object(&long, &event)["metadata"]["name"].clone();
        assert!(name.as_str().unwrap().len() < 253);
    }

    #[test]
    fn events_that_nothing_writes_are_dropped() {
        let (events, receiver) = NodeEvents::channel();
        for _ in 0..2 * WAITING {
            events.record(NodeEvent::starting());
        }
        assert_eq!(receiver.len(), WAITING);
        drop(receiver);
        events.record(NodeEvent::starting());
    }
}
