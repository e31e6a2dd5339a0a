//! Events on this Node and on Services, with the reasons of kube-proxy (KP-EV-01): the start, and servers that cannot
//! listen.
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
use topology_core::model::ObjectName;

/// Events about objects without a namespace are in this one.
const NAMESPACE: &str = "default";
/// kube-proxy's action of Events on the Node.
const START: &str = "StartKubeProxy";
/// Events that wait for the API server; more are dropped.
const WAITING: usize = 8;
/// As in client-go.
const TRIES: u32 = 12;
const RETRY: Duration = Duration::from_secs(10);
/// The API server accepts names of 253 characters and instances of 128.
const NAME_LENGTH: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvent {
    /// `None` for this Node.
    service: Option<ObjectName>,
    action: &'static str,
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
            service: None,
            action: START,
            reason: "Starting",
            severity: "Normal",
            note: format!("ipvs-topo {} starts", env!("CARGO_PKG_VERSION")),
            at: Timestamp::now(),
        }
    }

    /// Whether the two differ by their time only.
    #[cfg(test)]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let at = self.at;
        *self
            == Self {
                at,
                ..other.clone()
            }
    }

    fn namespace(&self) -> &str {
        let service = self.service.as_ref();
        service.map_or(NAMESPACE, |service| &service.namespace)
    }

    /// A server cannot listen.
    pub(crate) fn failed_to_start(reason: &'static str, note: String) -> Self {
        Self {
            service: None,
            action: START,
            reason,
            severity: "Warning",
            note,
            at: Timestamp::now(),
        }
    }

    /// A health check node port cannot be opened (KP-HC-13).
    pub(crate) fn no_health_check(service: ObjectName, note: String) -> Self {
        Self {
            service: Some(service),
            action: "Listen",
            ..Self::failed_to_start("FailedToStartServiceHealthcheck", note)
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
            tracing::warn!("the Event {} is not written: {error}", event.reason);
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
    let namespace = event.namespace();
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    connection.create(&path, &object(node, event)).await?;
    Ok(())
}

fn object(node: &str, event: &NodeEvent) -> Value {
    let name = event.service.as_ref().map_or(node, |service| &service.name);
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{}.{:x}", start(name), event.at.as_nanosecond()),
            "namespace": event.namespace(),
        },
        "regarding": regarding(node, event.service.as_ref()),
        "type": event.severity,
        "reason": event.reason,
        "action": event.action,
        "note": event.note,
        "eventTime": format!("{:.6}", event.at),
        "reportingController": "ipvs-topo.io/agent",
        "reportingInstance": start(node),
    })
}

/// kubectl finds the Events of a Node by its name as the uid. That of a Service is kube-proxy's.
fn regarding(node: &str, service: Option<&ObjectName>) -> Value {
    let Some(service) = service else {
        return json!({ "kind": "Node", "name": node, "uid": node });
    };
    let ObjectName { namespace, name } = service;
    let uid = service.to_string();
    json!({ "kind": "Service", "namespace": **namespace, "name": **name, "uid": uid })
}

/// The beginning of a name, which a dot may follow.
fn start(name: &str) -> &str {
    let start = name.get(..NAME_LENGTH).unwrap_or(name);
    start.trim_end_matches(['.', '-'])
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
        let domain = format!("{}-.example.com", "n".repeat(NAME_LENGTH - 2));
        let name = super::object(&domain, &event)["metadata"]["name"].clone();
        let (start, _) = name.as_str().unwrap().split_once('.').unwrap();
        assert_eq!(start, "n".repeat(NAME_LENGTH - 2));
    }

    #[test]
    fn kp_hc_13_the_event_of_a_health_check_node_port_is_about_its_service() {
        let service = ObjectName::new("shop", "cart");
        let event = NodeEvent::no_health_check(service, "in use".to_owned());
        let object = object("n1", &event);
        let expected =
            json!({ "kind": "Service", "namespace": "shop", "name": "cart", "uid": "shop/cart" });
        assert_eq!(object["regarding"], expected);
        assert_eq!(object["metadata"]["namespace"], "shop");
        let name = object["metadata"]["name"].as_str().unwrap();
        assert!(name.starts_with("cart."), "{name}");
        assert_eq!(
            (&object["type"], &object["reason"], &object["action"]),
            (
                &json!("Warning"),
                &json!("FailedToStartServiceHealthcheck"),
                &json!("Listen")
            )
        );
        assert_eq!(object["reportingInstance"], "n1");
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
