//! Explains a 404: the server may have the kind in another version.

use serde_json::Value;

use crate::connection::Connection;
use crate::error::{ApiError, Fault};
use crate::path::Target;

/// Replaces the error if the server does not know the kind of `path` in this version, but knows it
/// in another.
pub(crate) async fn explain_not_found(
    connection: &Connection,
    path: &str,
    error: ApiError,
) -> ApiError {
    if error.fault != Fault::NotFound {
        return error;
    }
    let target = Target::of(path);
    let own = path.split('/').nth(3).unwrap_or_default();
    let groups = connection.groups();
    let read = async |group: &str| read_group(connection, group).await;
    let known = groups.versions(&target, read).await;
    if known.is_empty() || known.iter().any(|version| version == own) {
        return error;
    }
    ApiError {
        fault: Fault::OtherVersion,
        message: format!("the server has it as {}, not as {own}", known.join(", ")),
        ..error
    }
}

/// Reads the versions of a group, each with its resources.
async fn read_group(connection: &Connection, group: &str) -> Vec<(String, Vec<String>)> {
    let group = format!("/apis/{group}");
    let mut found = Vec::new();
    for version in names(connection, &group, "/versions", "version").await {
        let listed = format!("{group}/{version}");
        let resources = names(connection, &listed, "/resources", "name").await;
        found.push((version, resources));
    }
    found
}

/// Reads the texts under `key` in the list at `pointer` of the document at `path`.
async fn names(connection: &Connection, path: &str, pointer: &str, key: &str) -> Vec<String> {
    let Ok(answer) = connection.get(path).await else {
        return Vec::new();
    };
    let entries = answer.pointer(pointer).and_then(Value::as_array);
    let texts = entries.into_iter().flatten();
    texts
        .filter_map(|entry| Some(entry.get(key)?.as_str()?.to_owned()))
        .collect()
}
