//! Writes one Event.

use kube_io::{ApiError, Connection, Fault, Patch};

use serde_json::json;

use crate::event_recorder::{EventWrite, Pending};

/// Creates or updates an Event. It is no error if the former leader has created the Event.
pub(super) async fn write_event(connection: &Connection, event: &Pending) -> Result<(), ApiError> {
    let namespace = &event.namespace;
    let all = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let done = match &event.write {
        EventWrite::Create(event) => connection.create(&all, &json!(event)).await,
        EventWrite::Series(series) => {
            let path = format!("{all}/{}", event.name);
            let body = json!({ "series": series });
            connection.patch(&path, Patch::Merge, &body).await
        }
    };
    match done {
        Err(error) if error.fault != Fault::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
