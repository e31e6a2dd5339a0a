//! Writes one Event.

use std::time::Duration;

use kube_io::{ApiError, Connection, Fault, Patch, Target, Verb};
use serde_json::json;
use tokio::time::timeout;

use crate::event_recorder::{EventWrite, Pending};

/// Creates or updates an Event; fails after `limit`. It is no error if the former leader has created the Event.
pub(super) async fn write_event(
    connection: &Connection,
    event: &Pending,
    limit: Duration,
) -> Result<(), ApiError> {
    let namespace = &event.namespace;
    let all = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let (verb, path) = match &event.write {
        EventWrite::Create(_) => (Verb::Create, all),
        EventWrite::Series(_) => (Verb::Patch, format!("{all}/{}", event.name)),
    };
    let send = async {
        match &event.write {
            EventWrite::Create(event) => connection.create(&path, &json!(event)).await,
            EventWrite::Series(series) => {
                let body = json!({ "series": series });
                connection.patch(&path, Patch::Merge, &body).await
            }
        }
    };
    match timeout(limit, send).await {
        Err(_elapsed) => {
            let message = format!("no answer within {} ms", limit.as_millis());
            let target = Target::of(&path);
            Err(ApiError::new(verb, &target, Fault::Timeout, &message))
        }
        Ok(Err(error)) if error.fault != Fault::AlreadyExists => Err(error),
        Ok(_) => Ok(()),
    }
}
