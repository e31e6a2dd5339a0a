//! Writes one Event.

use kube_io::{ApiError, Connection, Fault, Patch};

use crate::event_recorder::Pending;

/// Creates or updates it. An Event that the former leader has created is no error.
pub(super) async fn write_event(connection: &Connection, event: &Pending) -> Result<(), ApiError> {
    let namespace = &event.namespace;
    let all = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let done = if event.is_known {
        let one = format!("{all}/{}", event.name);
        connection.patch(&one, Patch::Merge, &event.body).await
    } else {
        connection.create(&all, &event.body).await
    };
    match done {
        Err(error) if error.fault != Fault::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
