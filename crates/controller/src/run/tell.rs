//! Writes one Event.

use cluster::api::{ApiError, Connection, Fault, Patch};

use crate::chronicle::Entry;

/// Writes it; one that the controller that led before has written is fine.
pub(super) async fn tell(connection: &Connection, entry: &Entry) -> Result<(), ApiError> {
    let namespace = &entry.namespace;
    let all = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let done = if entry.is_known {
        let one = format!("{all}/{}", entry.name);
        connection.patch(&one, Patch::Merge, &entry.body).await
    } else {
        connection.create(&all, &entry.body).await
    };
    match done {
        Err(error) if error.fault != Fault::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
