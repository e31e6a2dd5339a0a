//! Writes one object.

use kube_io::{ApiError, Connection, Patch};
use serde_json::Value;
use topology_core::model::ObjectName;

use crate::state::{MANAGER, Write, WriteKind};

/// Sends the write. Returns the object in the response.
pub(super) async fn write(connection: &Connection, write: &Write) -> Result<Value, ApiError> {
    let collection = write.collection;
    let ObjectName { namespace, name } = &write.name;
    let path = collection.path(namespace, name);
    let written = match write.kind {
        WriteKind::Create => {
            let path = collection.path(namespace, "");
            connection.create(&path, &write.body).await
        }
        WriteKind::Replace => connection.replace(&path, &write.body).await,
        WriteKind::Status => {
            let path = format!("{path}/status");
            connection.replace(&path, &write.body).await
        }
        WriteKind::Delete => connection.delete(&path).await,
        WriteKind::Merge => {
            let path = format!("{path}?fieldManager={MANAGER}");
            connection.patch(&path, Patch::Merge, &write.body).await
        }
    };
    if written.is_ok() && write.is_transition {
        tracing::info!(object = %format!("{}/{}", collection.kind(), write.name), "written");
    }
    written
}
