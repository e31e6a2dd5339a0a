//! A kind of object that the server has, but not in the version that is asked for: that is not the same as none.

use serde_json::Value;

use crate::api::connection::Connection;
use crate::api::error::{ApiError, Fault};
use crate::api::path::Target;

/// The error that a request for the collection at `path` ended with; told apart if the server does not know the kind
/// in our version, and in another it does.
pub(super) async fn told_apart(connection: &Connection, path: &str, error: ApiError) -> ApiError {
    if error.fault != Fault::NotFound {
        return error;
    }
    let target = Target::of(path);
    let own = path.split('/').nth(3).unwrap_or_default();
    let versions = versions(connection, &target).await;
    if versions.is_empty() || versions.iter().any(|version| version == own) {
        return error;
    }
    ApiError {
        fault: Fault::OtherVersion,
        message: format!("the server has it as {}, not as {own}", versions.join(", ")),
        ..error
    }
}

/// The versions in which the server has the resource of `target`; none if it cannot be asked.
async fn versions(connection: &Connection, target: &Target) -> Vec<String> {
    let group = format!("/apis/{}", target.group);
    let mut found = Vec::new();
    for version in names(connection, &group, "/versions", "version").await {
        let listed = format!("{group}/{version}");
        let resources = names(connection, &listed, "/resources", "name").await;
        if resources.contains(&target.resource) {
            found.push(version);
        }
    }
    found
}

/// The texts under `key` in the list at `pointer` of what is at `path`.
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
